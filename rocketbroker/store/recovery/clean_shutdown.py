# -*- test-case-name: tests.store.recovery.test_clean_shutdown -*-
"""The file of a clean shutdown: the first and last offset of each queue, and of the
log.

After a clean stop the queues are trusted as they stand. One that has lost its last
entries since, in a copy that was not complete or on a bad disk, looks like one that
ended earlier: RocketMQ's files do not show the difference. So a clean stop writes the
begin and the end of each queue to the file C{rocketbroker.ends}, which the next start
reads and removes. If a queue has fewer entries than that, all queues are made again
from the log. The begin and the end of the log show which of its files are missing.
And a start that knows where a queue probably begins and ends reads two entries of it to
see that it is so, where a search takes twenty reads.

The offsets of queues count only as long as no other broker has appended since: then the
log has not grown. Another broker may also have deleted a topic. Then the table of
topics has another version than at the stop, and a queue without entries counts as
deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.records.entries import SIZE
from rocketbroker.records.names import is_lmq
from rocketbroker.store.consumequeue.queue import NO_HINT, Queue

NAME: Final = "rocketbroker.ends"

#: The errors of a content that is not ours: any nesting, any number.
_SENSELESS: Final = ValueError, TypeError, KeyError, OverflowError, RecursionError


@final
class CleanShutdown:
    """The file C{rocketbroker.ends}.

    @ivar first: the position where the log began at the stop; -1 if not known.
    @ivar published: the position where it ended; the same.
    @ivar is_undeleted: whether no topic can have been deleted since.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        self._files = files
        self._root = root
        self._path = os.path.join(root, NAME)
        self.first = -1
        self.published = -1
        self.is_undeleted = False
        self._ends: dict[tuple[str, int], int] = {}
        self._begins: dict[tuple[str, int], int] = {}
        self._lows: dict[tuple[str, int], int] = {}

    def save(self, first: int, published: int, queues: Sequence[Queue]) -> None:
        """I{Blocking.} Write the begin and the end of the queues and of the log.

        @param first: where the log begins.
        @param published: where the log ends.
        @raise OSError: the disk refused.
        """
        ends = [[each.topic, each.queue_id, each.max_offset] for each in queues]
        begins = [[each.topic, each.queue_id, _begin(each)] for each in queues]
        content = {
            "first": first,
            "published": published,
            "queues": ends,
            "begins": begins,
            "lows": [each.min_offset for each in queues],
            "topics": topics_version(self._files, self._root),
        }
        data = json.dumps(content).encode()
        file = self._files.open(self._path, create=True)
        try:
            file.truncate(0)
            file.pwrite(data, 0)
            file.datasync()
        finally:
            file.close()

    def load(self) -> None:
        """I{Blocking.} Read the file, if it is there and makes sense."""
        if not self._files.exists(self._path):
            return
        with contextlib.suppress(*_SENSELESS):
            content = json.loads(self._files.read(self._path))
            published = int(content["published"])
            self._ends = {(str(t), int(q)): int(end) for t, q, end in content["queues"]}
            self.published = published
            self.first = int(content["first"])
            version = topics_version(self._files, self._root)
            self.is_undeleted = content.get("topics") == version
            begins = content.get("begins", ())
            self._begins = {(str(t), int(q)): int(begin) for t, q, begin in begins}
            lows = map(int, content.get("lows", ()))
            self._lows = dict(zip(self._ends, lows, strict=False))

    def forget(self) -> None:
        """I{Blocking.} Remove the file: its content has been used, or is of no use."""
        if self._files.exists(self._path):
            self._files.remove(self._path)

    def end_of(self, topic: str, queue_id: int) -> int:
        """The end of a queue at the stop; 0 if it is not known."""
        return self._ends.get((topic, queue_id), 0)

    def hint_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Where a queue probably begins and ends."""
        key = topic, queue_id
        return self._lows.get(key, NO_HINT[0]), self._ends.get(key, NO_HINT[1])

    def queues(self) -> list[tuple[str, int]]:
        """The queues that had a message at the stop; a name may be no topic's."""
        return [key for key, end in self._ends.items() if end > 0 and key[1] < 1 << 31]

    def _begin_of(self, queue: Queue, first: int) -> int:
        """The offset at which the files of a queue have to begin, at the latest.

        @param first: where the log begins.
        """
        begin = 0 if first == 0 else _begin(queue)
        if self.first != first:
            return begin
        return self._begins.get((queue.topic, queue.queue_id), begin)

    def missing(self, first: int, published: int, queues: Sequence[Queue]) -> str:
        """A sentence about a queue that has lost entries; empty if none is known to.

        @param first: where the log begins.
        @param published: where the log ends, according to the queues.
        """
        for queue in queues:
            change = ""
            end = self.end_of(queue.topic, queue.queue_id)
            begin = self._begin_of(queue, first)
            if not (queue.max_offset or self.is_undeleted or is_lmq(queue.topic)):
                continue
            if queue.max_offset < end and published <= self.published:
                change = f"ends at offset {queue.max_offset}; it ended at {end}"
            elif begin < _begin(queue):
                change = (
                    f"has entries from offset {_begin(queue)} on; it had from {begin}"
                )
            if change:
                return (
                    f"{queue.topic}/{queue.queue_id} {change} when the store was "
                    "stopped. All queues are made again."
                )
        return ""


def _begin(queue: Queue) -> int:
    """The offset that the first entry in the files of a queue has; 0 of none."""
    files = queue.files.all
    return files[0].start // SIZE if files else 0


def topics_version(files: IFiles, root: str) -> list[int] | None:
    """The version of the table of topics, which each change of a topic moves on, in
    RocketMQ's broker and in ours: the time of its last change, in ms, and the number of
    its changes; None if they cannot be read. See C{docs/facts/store.md} 21.

    @param root: the directory of the store.
    """
    path = os.path.join(root, "config", "topics.json")
    try:
        content = JsonFile(files, path).load(_version)
        return _version(content) if content else None
    except (OSError, ValueError, StoreError):
        return None


def _version(content: bytes) -> list[int]:
    """The version that a table has."""
    try:
        version = json.loads(content)["dataVersion"]
        return [int(version["timestamp"]), int(version["counter"])]
    except (TypeError, KeyError, OverflowError, RecursionError):
        raise ValueError("it is no table of topics") from None
