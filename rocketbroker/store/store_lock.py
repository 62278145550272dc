# -*- test-case-name: tests.store.test_store_lock -*-
"""The lock of a store against other brokers, and the mark of an unclean stop.

The file C{lock} keeps other brokers out. The file C{abort} exists while a broker runs:
the next start that finds it knows that the stop was not clean. Only its existence
counts, but it contains the process id, as RocketMQ's does, by which readers know whose
shared positions they see. A disk so full that neither can be written to is no reason
not to start: the lock is on the file and not in it, and a reader that does not know
whose shared positions it sees does without them.

The content of C{lock} shows the next start which broker wrote to the log last.
rocketbroker writes L{ZEROED} when nothing but zeros stands behind the log's end. Each
start of RocketMQ, 4.9 or 5.x, writes C{lock} over the first bytes of that before it
appends anything; and it leaves the tail of the log that it discards on the disk.

C{docs/facts/store.md} 1 and 14.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.files.misplaced_files import clear_for_file
from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.shared_positions import ABORT_MS, OWNER, SharedPositions

ABORT: Final = "abort"
LOCK: Final = "lock"
LOCK_TEXT: Final = b"lock"
ZEROED: Final = b"rocketbroker"


@final
class StoreLock:
    """The two files of one store.

    @ivar is_zeroed: whether zeros alone stood behind the log when the last process
        that may have appended to it began to.
    @ivar report: sentences about files that were in the way of these two.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        self._files = files
        self._root = root
        self._abort = os.path.join(root, ABORT)
        self._lock: IFile | None = None
        self.is_zeroed = False
        self.report: list[str] = []
        self._is_unclean = False

    def take(self) -> None:
        """I{Blocking.} Take the lock, before anything is changed.

        RocketMQ takes it after recovery; then two brokers both recover.

        @raise StoreError: another broker has it.
        @raise OSError: the file cannot be made.
        """
        lock = os.path.join(self._root, LOCK)
        is_store = any(
            self._files.exists(os.path.join(self._root, name))
            for name in ("commitlog", "consumequeue")
        )
        if is_store:
            # Any other directory may have one of that name: /var has.
            self.report += clear_for_file(self._files, lock)
        self._lock = self._files.open(lock, create=True)
        if not self._lock.lock():
            raise StoreError(self._taken(self._lock.record_lock_holder()))
        # If it cannot be read, it is not known.
        with contextlib.suppress(OSError):
            self.is_zeroed = self._lock.pread(len(ZEROED), 0) == ZEROED
        cleared = clear_for_file(self._files, self._abort) if is_store else []
        if cleared:
            # It was in the place of the mark of a stop that was not clean.
            self.mark_unclean()
            self.report += cleared

    def _taken(self, holder: int) -> str:
        """Say who has the lock.

        @param holder: the id of the process; 0 if it is not known.
        """
        of = f", process {holder}" if holder else ""
        return (
            f"The store {self._root} is used by another broker{of}. Stop that one, or "
            "give this one a directory of its own (storePathRootDir)."
        )

    def release(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def was_left_cleanly(self) -> bool:
        """Whether the last stop was a clean one."""
        return not self._files.exists(self._abort)

    def mark_unclean(self) -> None:
        """I{Blocking.} Mark the last stop as not clean: if this start changes something
        and does not finish, the next one must not believe it. Or, once the store is
        marked, keep the coming stop from counting as clean.

        @raise OSError: the file cannot be written.
        """
        self._is_unclean = True
        self._files.open(self._abort, create=True).close()
        self._files.sync_dir(self._root)

    def mark(self, positions: SharedPositions, zeroed: bool) -> None:
        """I{Blocking.} Mark the store as in use by this process.

        @param zeroed: whether zeros alone stand behind the log.
        @raise OSError: the files cannot be written.
        """
        assert self._lock is not None, "the lock is taken first"
        self._is_unclean = False
        self._lock.truncate(0)
        _write(self._lock, ZEROED if zeroed else LOCK_TEXT)
        self._lock.datasync()
        owner = os.getpid()
        file = self._files.open(self._abort, create=True)
        file.truncate(0)
        _write(file, str(owner).encode())
        file.datasync()
        file.close()
        self._files.sync_dir(self._root)
        view = positions.view
        view[OWNER] = owner
        view[ABORT_MS] = self._files.modified_ms(self._abort)

    def unmark(self) -> None:
        """I{Blocking.} Mark the stop as a clean one.

        @raise OSError: that failed; the next start checks everything.
        """
        if self._is_unclean:
            return
        self._files.remove(self._abort)
        self._files.sync_dir(self._root)


def _write(file: IFile, content: bytes) -> None:
    """Write the content of a file, if there is room."""
    try:
        file.pwrite(content, 0)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
