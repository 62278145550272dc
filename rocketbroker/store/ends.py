# -*- test-case-name: tests.store.test_ends -*-
"""Where each queue ended when the store was stopped.

After a clean stop the queues are believed as they stand. One that has lost its last
entries since, in a copy that was not complete or on a bad disk, looks like one that
ended earlier: nothing in RocketMQ's files tells. So a clean stop writes down where each
queue ended, in the file C{rocketbroker.ends}, which the next start reads and removes.
If it says more than what stands in a queue, the queues are made again from the log.
Where the log began and ended tells what is missing of its files.

It counts only as long as nobody else has written to the store: then the log has not
grown since, and who deleted a topic has removed its directory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.consumequeue import Queue

NAME: Final = "rocketbroker.ends"

#: What a content that was not ours may lead to: any nesting, any number.
_SENSELESS: Final = ValueError, TypeError, KeyError, OverflowError, RecursionError


@final
class Ends:
    """The file.

    @ivar first: where the log began by what it says; -1 if nothing is known.
    @ivar published: where the log ended by what it says; the same.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        self._files = files
        self._path = os.path.join(root, NAME)
        self.first = -1
        self.published = -1
        self._ends: dict[tuple[str, int], int] = {}

    def save(self, first: int, published: int, queues: Sequence[Queue]) -> None:
        """I{Blocking.} Write down where the queues end.

        @param first: where the log begins.
        @param published: where the log ends.
        @raise OSError: the disk refused.
        """
        ends = [[each.topic, each.queue_id, each.max_offset] for each in queues]
        said = {"first": first, "published": published, "queues": ends}
        content = json.dumps(said).encode()
        file = self._files.open(self._path, create=True)
        try:
            file.truncate(0)
            file.pwrite(content, 0)
            file.datasync()
        finally:
            file.close()

    def load(self) -> None:
        """I{Blocking.} Read the file, if it is there and makes sense."""
        if not self._files.exists(self._path):
            return
        with contextlib.suppress(*_SENSELESS):
            said = json.loads(self._files.read(self._path))
            published = int(said["published"])
            self._ends = {(str(t), int(q)): int(end) for t, q, end in said["queues"]}
            self.published = published
            self.first = int(said["first"])

    def forget(self) -> None:
        """I{Blocking.} Remove the file: what it says is used, or of no use."""
        if self._files.exists(self._path):
            self._files.remove(self._path)

    def end_of(self, topic: str, queue_id: int) -> int:
        """Where a queue ended by what it says; 0 if it did not know it."""
        return self._ends.get((topic, queue_id), 0)

    def missing(self, published: int, queues: Sequence[Queue]) -> str:
        """A sentence about a queue that has lost entries; empty if none is known to.

        @param published: where the log ends, by what the queues say.
        """
        if published > self.published:
            return ""
        for queue in queues:
            end = self.end_of(queue.topic, queue.queue_id)
            if queue.has_files and queue.max_offset < end:
                return (
                    f"{queue.topic}/{queue.queue_id} ends at offset "
                    f"{queue.max_offset}; it ended at {end} when the store was "
                    "stopped. All queues are made again."
                )
        return ""
