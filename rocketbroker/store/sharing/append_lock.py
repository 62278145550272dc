# -*- test-case-name: tests.store.sharing.test_sharing -*-
"""The append lock between the processes of one store, as its owner has it.

It is a lock of threads and one of processes, C{flock} on the file
C{rocketbroker.append}: the kernel releases that when its holder dies. A dispatch and
the cleaner need only the first of them, as no other process has to do with queues.
"""

from __future__ import annotations

import contextlib
import os
from threading import Lock
from types import TracebackType
from typing import Final, final

from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.shared_positions import (
    APPENDING,
    OTHER_APPENDS,
    POSITIONS_NAME,
    VERSION,
    SharedPositions,
)
from rocketbroker.store.sharing.append_journal import JOURNAL_BYTES, AppendJournal

APPEND_NAME: Final = "rocketbroker.append"


def take_over(files: IFiles, root: str) -> None:
    """I{Blocking.} Let processes that have joined the store under an owner that died
    append no longer, though they have not ended yet.

    Before the positions of that owner are removed.

    @raise OSError: the disk refused.
    """
    path = os.path.join(root, APPEND_NAME)
    if not files.exists(path):
        return
    file = files.open(path)
    positions = os.path.join(root, POSITIONS_NAME)
    file.lock_alone()
    try:
        if files.exists(positions) and files.size(positions) > 8 * VERSION:
            words = files.open(positions)
            words.pwrite(bytes(8), 8 * VERSION)
            words.close()
        # Those who wait for it find the word; nobody finds this file any more.
        files.remove(path)
    finally:
        file.unlock()
        file.close()


@final
class SharedAppendLock:
    """The lock of the owner.

    Whoever has it finds no append of a process that died: it is mended first.

    @ivar mended: how many appends of others were undone.
    """

    def __init__(
        self, threads: Lock, files: IFiles, root: str, positions: SharedPositions
    ) -> None:
        """Make the file.

        @param threads: held together with it.
        @raise OSError: there is no room.
        """
        self.mended = 0
        self._threads = threads
        self._files = files
        self._path = os.path.join(root, APPEND_NAME)
        self._positions = positions
        self._segments: Segments | None = None
        self._file: IFile = files.open(self._path, create=True)
        try:
            self._file.allocate(0, JOURNAL_BYTES)
            self._file.pwrite(bytes(JOURNAL_BYTES), 0)
            self._journal = AppendJournal(self._file, positions)
        except OSError:
            self.remove()
            raise

    def mend_in(self, segments: Segments) -> None:
        """Mend appends from now on.

        @param segments: of the log.
        """
        self._segments = segments

    def acquire(self) -> bool:
        """Wait for it, take it, and mend."""
        self._threads.acquire()
        try:
            self._file.lock_alone()
            if self._positions.view[APPENDING] == OTHER_APPENDS:
                assert self._segments is not None, "nobody has joined yet"
                self.mended += self._journal.mend(self._segments)
        except BaseException:
            self._threads.release()
            raise
        return True

    def release(self) -> None:
        """Let others have it."""
        self._file.unlock()
        self._threads.release()

    def __enter__(self) -> bool:
        """The same as L{acquire}."""
        return self.acquire()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
        /,
    ) -> None:
        """The same as L{release}."""
        self.release()

    def close(self) -> None:
        """Close the file, and keep it."""
        self._file.close()

    def remove(self) -> None:
        """Close the file, and remove it."""
        self._file.close()
        with contextlib.suppress(OSError):
            self._files.remove(self._path)
