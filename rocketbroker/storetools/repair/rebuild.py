# -*- test-case-name: tests.storetools.repair.test_loss_report -*-
"""Files that a repair moves away, so that a start makes them again from the log.

These are damaged queues, and the index; and the file that the last clean stop has
written, if it cannot be read.
"""

from __future__ import annotations

import os
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.recovery.clean_shutdown import NAME as ENDS
from rocketbroker.storetools.repair.backup import Backup, Done

#: The room on the disk that a repair needs and that cannot be known before: the
#: positions that processes share, the checkpoint, a queue that had no files, blocks of
#: directories.
RESERVE: Final = 16 << 20

#: So long is a line in the list of changes, about.
LINE: Final = 256

#: Queues of a topic are in one of these.
QUEUE_FOLDERS: Final = ("consumequeue", "consumequeue_ext", BATCHES)

#: Files that may be moved are in one of these.
FOLDERS: Final = (*QUEUE_FOLDERS, "index")


@final
class Rebuild:
    """The files that one repair moves away."""

    def __init__(self, files: IFiles, root: str) -> None:
        self._files = files
        self._root = root
        self._paths: list[str] = []
        self._new: list[str] = []

    def queues(self, damaged: set[tuple[str, int]]) -> None:
        """Move these queues."""
        for topic, queue_id in sorted(damaged):
            paths = [
                os.path.join(self._root, folder, topic, str(queue_id))
                for folder in QUEUE_FOLDERS
            ]
            there = [path for path in paths if self._files.exists(path)]
            self._paths += there
            if not there:
                self._new.append(paths[0])

    def ends(self) -> None:
        """Move the file of the last clean stop."""
        self._paths.append(os.path.join(self._root, ENDS))

    def index(self) -> None:
        """Move all files of the index."""
        folder = os.path.join(self._root, "index")
        paths = [os.path.join(folder, name) for name in self._files.list(folder)]
        self._paths += [path for path in paths if not self._files.is_dir(path)]

    def size(self) -> int:
        """The approximate number of bytes that the new files will have."""
        total = 0
        for path in self._paths:
            if self._files.is_dir(path):
                total += sum(max(size, 0) for _, size in self._files.lengths(path))
            else:
                total += self._files.size(path)
        return total

    def expected(self) -> list[Done]:
        """The moves, before they are done."""
        return self._new_queues() + [
            Done("moved", path, 0, 0, "it is made again from the log")
            for path in self._paths
        ]

    def move(self, copies: Backup) -> list[Done]:
        """I{Blocking.} Move all files.

        @raise OSError: the disk refused.
        """
        moved = self._new_queues()
        for path in self._paths:
            text = f"made again from the log; as it was: {copies.move(path)}"
            moved.append(Done("moved", path, 0, 0, text))
        return moved

    def _new_queues(self) -> list[Done]:
        text = "there was none; it is made from the log"
        return [Done("moved", path, 0, 0, text) for path in self._new]
