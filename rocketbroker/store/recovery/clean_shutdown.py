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

Most queues are as they were. Beside their ends stand the stamps of their files and
directories (L{rocketbroker.files.interfaces.IFiles.stamp}). Where these are the same,
nobody has changed a byte or a name since, and the start neither lists the directory nor
reads an entry: with tens of thousands of queues that is most of what it has to do. A
disk may have become unable to read such a file; whoever comes upon that is refused, as
anywhere else in a file, and the next start makes the queues again.

The offsets of queues count only as long as no other broker has appended since: then the
log has not grown. Another broker may also have deleted a topic. Then the table of
topics has another version than at the stop, and a queue without entries counts as
deleted.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, final
from zlib import crc32

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.records.entries import SIZE
from rocketbroker.records.names import is_lmq
from rocketbroker.store.consumequeue.queue import NO_HINT, Queue

NAME: Final = "rocketbroker.ends"

#: Before the rest of the content: its CRC.
_SEAL: Final = re.compile(rb'\{"crc": (\d{1,10}), ')


class _Left(NamedTuple):
    """A queue at the stop.

    @ivar end: the offset behind its last entry.
    @ivar begin: the offset of the first entry in its files.
    @ivar low: the first offset whose record was there.
    @ivar position: the end of its last record.
    @ivar stamps: those of its directory and its files; none if it has no ordinary
        files, or something else is there.
    """

    topic: str
    queue_id: int
    end: int
    begin: int
    low: int
    position: int
    stamps: list[int]


@final
class CleanShutdown:
    """The record of a clean shutdown: the file C{rocketbroker.ends}.

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
        self._size = 0
        self._left: dict[tuple[str, int], _Left] = {}
        self._unchanged: set[Queue] = set()

    def save(self, first: int, published: int, queues: Sequence[Queue]) -> None:
        """I{Blocking.} Write the file.

        @param first: where the log begins.
        @param published: where the log ends.
        @param queues: all queues; their files are on the disk.
        @raise OSError: the disk refused.
        """
        content = {
            "first": first,
            "published": published,
            "size": queues[0].files.size if queues else 0,
            "queues": [self._now(each) for each in queues],
            "topics": topics_version(self._files, self._root),
        }
        data = sealed(content)
        file = self._files.open(self._path, create=True)
        try:
            file.truncate(0)
            file.pwrite(data, 0)
            file.datasync()
        finally:
            file.close()

    def _now(self, queue: Queue) -> _Left:
        return _Left(
            queue.topic,
            queue.queue_id,
            queue.max_offset,
            _begin(queue),
            queue.min_offset,
            queue.max_position,
            self._stamps(queue),
        )

    def _stamps(self, queue: Queue) -> list[int]:
        """See L{_Left}; now."""
        files = queue.files
        if not files.all or files.has_others or queue.batch or queue.extension:
            return []
        stamp = self._files.stamp
        try:
            return [stamp(files.folder), *(stamp(each.path) for each in files.all)]
        except OSError:
            return []

    def load(self) -> None:
        """I{Blocking.} Read the file, if it is there and whole."""
        if not self._files.exists(self._path):
            return
        content = unsealed(self._files.read(self._path))
        with contextlib.suppress(KeyError, TypeError, ValueError):
            rows = map(_Left._make, content["queues"])
            self._left = {(row.topic, row.queue_id): row for row in rows}
            self._size = content["size"]
            self.published = content["published"]
            self.first = content["first"]
            version = topics_version(self._files, self._root)
            self.is_undeleted = content["topics"] == version

    def restore(self, queue: Queue) -> None:
        """I{Blocking.} Give a queue the files that it had at the stop, if nothing about
        them has changed since."""
        left = self._left.get((queue.topic, queue.queue_id))
        files = queue.files
        if left is None or not left.stamps or self._size != files.size:
            return
        files.know(left.begin * SIZE, len(left.stamps) - 1)
        if self._stamps(queue) == left.stamps:
            self._unchanged.add(queue)
        else:
            files.close()

    def set_range(self, queue: Queue, lowest: int) -> bool:
        """Set the range of a queue that has not changed to what L{Queue.bound} would
        find.

        @param lowest: where the log begins; it ends where it did, or behind.
        @return: whether it was set; not if the log does not begin where it did.
        """
        if queue not in self._unchanged or lowest != self.first:
            return False
        left = self._left[queue.topic, queue.queue_id]
        queue.set_offsets(left.low, left.end)
        queue.max_position = left.position
        return True

    def doubt(self) -> bool:
        """Take no queue for unchanged any more.

        @return: whether one was.
        """
        had_some = bool(self._unchanged)
        self._unchanged.clear()
        return had_some

    def forget(self) -> None:
        """I{Blocking.} Remove the file: its content has been used, or is of no use."""
        self._left.clear()
        self._unchanged.clear()
        if self._files.exists(self._path):
            self._files.remove(self._path)

    def end_of(self, topic: str, queue_id: int) -> int:
        """The end of a queue at the stop; 0 if it is not known."""
        left = self._left.get((topic, queue_id))
        return left.end if left is not None else 0

    def hint_of(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Where a queue probably begins and ends."""
        left = self._left.get((topic, queue_id))
        return (left.low, left.end) if left is not None else NO_HINT

    def queues(self) -> list[tuple[str, int]]:
        """The queues that had a message at the stop; a name may be no topic's."""
        return [
            key
            for key, left in self._left.items()
            if left.end > 0 and left.queue_id < 1 << 31
        ]

    def _begin_of(self, queue: Queue, first: int) -> int:
        """The offset at which the files of a queue have to begin, at the latest.

        @param first: where the log begins.
        """
        begin = 0 if first == 0 else _begin(queue)
        left = self._left.get((queue.topic, queue.queue_id))
        return left.begin if left is not None and self.first == first else begin

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


def sealed(content: dict[str, Any]) -> bytes:
    """JSON that begins with a CRC of what follows it."""
    text = json.dumps(content).encode()[1:]
    return b'{"crc": %d, %b' % (crc32(text), text)


def unsealed(data: bytes) -> dict[str, Any]:
    """The content of such a JSON; nothing if it is damaged."""
    seal = _SEAL.match(data)
    if seal is None or crc32(data[seal.end() :]) != int(seal[1]):
        return {}
    content: dict[str, Any] = json.loads(data)
    return content


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
