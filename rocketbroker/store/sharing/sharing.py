# -*- test-case-name: tests.store.sharing.test_sharing -*-
"""The sharing of a store with other processes, as its owner does it.

On a disk so full that there is no room for the lock's file nobody can join; the owner
goes on alone.
"""

from __future__ import annotations

from threading import Lock
from typing import final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles, IProcesses
from rocketbroker.store.append_lock import MAX_WAIT_SECONDS, AppendLock
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.writer import CommitLog
from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.shared_positions import (
    MAX,
    READ_VERSION,
    VERSION,
    SharedPositions,
)
from rocketbroker.store.sharing.append_lock import (
    HOLDER_SECONDS,
    KILLED_SECONDS,
    SharedAppendLock,
    take_over,
)
from rocketbroker.store.sharing.joined_processes import JoinedProcesses


@final
class Sharing:
    """The append lock of a store, and what other processes may do.

    @ivar threads: excludes the threads of this process.
    @ivar append_lock: excludes the other processes, too.
    @ivar joined: the processes that may have joined.
    @ivar problem: a sentence about the holder of the lock; or empty.
    """

    def __init__(
        self,
        files: IFiles,
        root: str,
        is_wanted: bool,
        processes: IProcesses | None = None,
    ) -> None:
        """
        @param is_wanted: whether others may join.
        @param processes: those of this machine; None: they are not known.
        """
        self.joined = JoinedProcesses(files, root, processes)
        self.problem = ""
        self.threads = Lock()
        self.append_lock: AppendLock = self.threads
        self._files = files
        self._root = root
        self._is_wanted = is_wanted
        self._shared: SharedAppendLock | None = None
        self._positions: SharedPositions | None = None
        self._log: CommitLog | None = None

    def begin(self) -> SharedPositions:
        """I{Blocking.} Shut out those that have joined under an owner that died; then
        make shared positions and lock, by which nobody may append yet.

        @raise OSError: the disk refused.
        @raise StoreError: one of them is in an append and does not end; one sentence.
        """
        files, root = self._files, self._root
        take_over(files, root, self.joined)
        self.joined.close()
        self._positions = positions = SharedPositions(files, root)
        if self._is_wanted:
            try:
                shared = SharedAppendLock(self.threads, files, root, positions)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    positions.remove()
                    raise
            else:
                self.append_lock = self._shared = shared
        return positions

    def attach(self, log: CommitLog, segments: Segments) -> None:
        """Set the log that others will append to."""
        self._log = log
        if self._shared is not None:
            self._shared.mend_in(segments)

    @property
    def is_on(self) -> bool:
        """Whether others can append."""
        positions = self._positions
        return (
            self._shared is not None and positions is not None and positions.is_shared
        )

    @property
    def mended(self) -> int:
        """How many appends of processes that died were undone."""
        return self._shared.mended if self._shared is not None else 0

    def let_append(self, version: int) -> None:
        """Let others append by this version of what they were told, and by no other.

        @param version: another one than all before; 0: they may append nothing.
        """
        assert self._positions is not None
        self._positions.view[VERSION] = version if self.is_on else 0

    def let_read(self, version: int) -> None:
        """Let others read by this version of what they were told; see L{let_append}."""
        assert self._positions is not None
        self._positions.view[READ_VERSION] = version if self.is_on else 0

    def end_of(self, slot: int) -> int:
        """The end of the queue with that slot."""
        assert self._positions is not None
        return int(self._positions.view[slot + MAX])

    def appended(self, messages: int, size: int, store_ms: int) -> None:
        """Count messages that others have appended."""
        log = self._log
        assert log is not None
        log.appended_messages += messages
        log.appended_bytes += size
        log.published_ms = max(log.published_ms, store_ms)

    @property
    def is_held(self) -> bool:
        """Whether the last append has waited in vain for another process."""
        shared = self._shared
        return shared is not None and shared.is_held

    def mend(self) -> bool:
        """Undo what another process has left that died in an append.

        @return: False if another one has the lock; then who takes it next does that.
        """
        if not self.append_lock.acquire(True, MAX_WAIT_SECONDS):
            return False
        self.append_lock.release()
        return True

    def holder(self) -> int:
        """The id of the process that has the lock; 0 if it is not known."""
        shared = self._shared
        return shared.holder() if shared is not None else 0

    def end(self) -> None:
        """I{Blocking.} Let nobody append any more.

        A process that hangs in an append is killed, and its append undone: it would go
        on with it some time.

        @raise StoreError: it does not end.
        """
        shared = self._shared
        if shared is not None:
            if not shared.wait(HOLDER_SECONDS):
                holder = shared.holder()
                self.joined.end(holder)
                if not shared.wait(KILLED_SECONDS):
                    raise StoreError(
                        f"The store {self._root} is not stopped cleanly: "
                        f"{self.joined.describe(holder)} is in an append to it."
                    )
            try:
                self.let_append(0)
                self.let_read(0)
            finally:
                shared.release()
            self._shared = None
            self.append_lock = self.threads
            shared.remove()
        self.joined.close()
