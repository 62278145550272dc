# -*- test-case-name: tests.storetools.repair.test_loss_report -*-
"""Files that a repair moves away, so that a start makes them again from the log.

These are damaged queues, and of the index either all files or those that a start after
a crash does not trust and would remove. The file that the last clean stop has written
is moved too if it cannot be read or makes no sense: the next stop writes it again.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.index.file import HEADER, file_size
from rocketbroker.store.recovery.clean_shutdown import NAME as ENDS
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
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

    def index(self, most: int, log_end: int) -> None:
        """Move files of the index.

        @param most: how many entries a file takes, where those that are full and were
            flushed stay; 0 if none does.
        @param log_end: where the log ends: entries that lead there or beyond are not
            trusted.
        """
        folder = os.path.join(self._root, "index")
        names = [
            name
            for name in self._files.list(folder)
            if not self._files.is_dir(os.path.join(folder, name))
        ]
        safe = 0
        if most:
            checkpoint = Checkpoint(self._files, self._root)
            with contextlib.suppress(OSError):
                checkpoint.load()
            for name in names:
                path = os.path.join(folder, name)
                if not self._is_safe(path, most, log_end, checkpoint):
                    break
                safe += 1
        self._paths += [os.path.join(folder, name) for name in names[safe:]]

    def _is_safe(
        self, path: str, most: int, log_end: int, checkpoint: Checkpoint
    ) -> bool:
        head = self._head(path)
        if head is None:
            return False
        _, end_ms, _, end_position, _, count = head
        is_flushed = checkpoint.has_index_file(end_ms, end_position)
        return count >= most and is_flushed and end_position < log_end

    def _head(self, path: str) -> tuple[int, ...] | None:
        """The header of an index file; None if it cannot be read."""
        file = self._files.open_readonly(path)
        try:
            data = file.pread(HEADER.size, 0)
        except OSError:
            return None
        finally:
            file.close()
        return HEADER.unpack(data) if len(data) == HEADER.size else None

    def size(self, slots: int) -> int:
        """The approximate number of bytes that the new files will have.

        @param slots: the hash slots of a file of the index.
        """
        total = 0
        for path in self._paths:
            if self._files.is_dir(path):
                for name in self._files.list(path):
                    each = os.path.join(path, name)
                    total += 0 if self._files.is_dir(each) else self._files.size(each)
            else:
                # Made for many more than it may hold.
                head = self._head(path)
                count = head[5] if head is not None else 0
                most = file_size(slots, max(count, 0))
                total += min(self._files.size(path), most)
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


def wrong_ends(files: IFiles, root: str) -> list[Done]:
    """The file that the last clean stop has written, as a step that moves it away;
    empty if it is good or missing."""
    path = os.path.join(root, ENDS)
    if not files.exists(path):
        return []
    ends = CleanShutdown(files, root)
    why = "it makes no sense"
    try:
        ends.load()
    except OSError as error:
        why = f"it cannot be read ({error.strerror})"
    if ends.published >= 0:
        return []
    text = f"{why}; what can be known without it is, and it is made again"
    return [Done("changed", path, 0, 0, text)]
