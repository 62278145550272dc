# -*- test-case-name: tests.store.sharing.test_append_lock -*-
"""The append lock between the processes of one store, as its owner has it.

It is a lock of threads and one of processes, C{flock} on the file
C{rocketbroker.append}: the kernel releases that when its holder dies. A dispatch and
the cleaner need only the first of them, as no other process has to do with queues.

A holder that hangs keeps it. So the owner waits for it once, for a bounded time, and
from then on hardly at all, until it was taken again.
"""

from __future__ import annotations

import contextlib
import os
from threading import Lock
from typing import Final, final

from rocketbroker.errors import StoreError
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
from rocketbroker.store.sharing.joined_processes import JoinedProcesses

APPEND_NAME: Final = "rocketbroker.append"

#: How long a start, and a stop, wait for a holder that was killed, in s.
KILLED_SECONDS: Final = 5.0

#: How long a stop waits for a holder before it is killed, in s.
HOLDER_SECONDS: Final = 2.0

#: How long an append waits for a lock that another one has waited for in vain, in s: so
#: that it is taken again where many compete for it, and a hanging holder costs little.
HELD_SECONDS: Final = 0.005


def take_over(files: IFiles, root: str, joined: JoinedProcesses) -> None:
    """I{Blocking.} End the processes that have joined the store under an owner that
    died, and let them append no longer, though they may not have ended yet.

    Before the positions of that owner are removed.

    @raise OSError: the disk refused.
    @raise StoreError: one of them does not end, and is in an append; one sentence.
    """
    joined.end_all()
    path = os.path.join(root, APPEND_NAME)
    if not files.exists(path):
        return
    file = files.open(path)
    positions = os.path.join(root, POSITIONS_NAME)
    if not file.lock_alone(KILLED_SECONDS):
        holder = file.lock_holder()
        file.close()
        raise StoreError(
            f"The store {root} cannot be used: {joined.describe(holder)} is in an "
            "append to it, and does not end."
        )
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
    @ivar is_held: whether the last wait for another process was in vain.
    """

    def __init__(
        self, threads: Lock, files: IFiles, root: str, positions: SharedPositions
    ) -> None:
        """Make the file.

        @param threads: held together with it.
        @raise OSError: there is no room.
        """
        self.mended = 0
        self.is_held = False
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

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See L{AppendLock}; then mend."""
        threads = self._threads
        if not threads.acquire(blocking, timeout):
            return False
        try:
            if not self._file.lock_alone(HELD_SECONDS if self.is_held else timeout):
                self.is_held = True
                threads.release()
                return False
        except BaseException:
            threads.release()
            raise
        self.is_held = False
        try:
            if self._positions.view[APPENDING] == OTHER_APPENDS:
                assert self._segments is not None, "nobody has joined yet"
                self.mended += self._journal.mend(self._segments)
        except BaseException:
            self.release()
            raise
        return True

    def wait(self, seconds: float) -> bool:
        """Take it as L{acquire} does, however long others have waited in vain."""
        self.is_held = False
        return self.acquire(True, seconds)

    def holder(self) -> int:
        """The id of the process that has it; 0 if it is not known."""
        return self._file.lock_holder()

    def release(self) -> None:
        """Let others have it."""
        self._file.unlock()
        self._threads.release()

    def close(self) -> None:
        """Close the file, and keep it."""
        self._file.close()

    def remove(self) -> None:
        """Close the file, and remove it."""
        self._file.close()
        with contextlib.suppress(OSError):
            self._files.remove(self._path)
