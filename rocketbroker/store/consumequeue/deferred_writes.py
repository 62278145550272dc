# -*- test-case-name: tests.store.consumequeue.test_deferred_writes -*-
"""What the disk had no room for, of files that can be made again from the log.

A message that is in the log is acknowledged, so it has to be found, and a store that
starts on a full disk has to find its last messages too. So what cannot be written to a
queue's file is kept in memory, where readers find it, and written when there is room
again. Until then nothing is appended, which bounds it: it is what one step of the
dispatch, or one start, has to enter. The checkpoint does not move either, so that after
a stop it is made again from the log.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, final

from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.running_flags import WRITE_LOGICS_QUEUE_ERROR, RunningFlags

_BY: Final = "queues"


@final
class DeferredWrites:
    """What all queues of a store owe to their disk.

    @ivar bytes: how much.
    @ivar lock: held by who changes what is owed.
    """

    def __init__(
        self, flags: RunningFlags, told: Callable[[str, OSError], str]
    ) -> None:
        """
        @param told: makes a sentence of what cannot be done and why.
        """
        self.bytes = 0
        self.lock = threading.Lock()
        self._flags = flags
        self._told = told

    def add(self, size: int, error: OSError) -> None:
        """So much more is owed, for a reason."""
        self.bytes += size
        said = self._told("a consume queue in {} cannot be written", error)
        self._flags.set(WRITE_LOGICS_QUEUE_ERROR, True, said, _BY)

    def remove(self, size: int) -> None:
        """So much less is."""
        self.bytes -= size
        if self.bytes == 0:
            self._flags.set(WRITE_LOGICS_QUEUE_ERROR, False, by=_BY)


@final
class OwedWrites:
    """What one row of files owes, in the order in which it was to be written.

    @ivar pieces: positions and contents; replaced, not changed, so that readers need
        no lock.
    """

    __slots__ = ("_deferred_writes", "_write", "pieces")

    def __init__(
        self, deferred_writes: DeferredWrites, write: Callable[[int, bytes], None]
    ) -> None:
        """
        @param write: writes; raises L{OSError} if the disk refuses.
        """
        self.pieces: list[tuple[int, bytes]] = []
        self._deferred_writes = deferred_writes
        self._write = write

    def put(self, position: int, content: bytes) -> None:
        """Write, behind what is owed; what there is no room for is owed.

        @raise OSError: the disk refused for another reason.
        """
        with self._deferred_writes.lock:
            try:
                self._pay()
                self._write(position, content)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self.pieces = [*self.pieces, (position, content)]
                self._deferred_writes.add(len(content), error)

    def pay(self) -> None:
        """I{Blocking.} Write what is owed.

        @raise OSError: there is still no room.
        """
        with self._deferred_writes.lock:
            self._pay()

    def _pay(self) -> None:
        while self.pieces:
            position, content = self.pieces[0]
            self._write(position, content)
            self.pieces = self.pieces[1:]
            self._deferred_writes.remove(len(content))

    def cut(self, position: int) -> None:
        """Forget what is owed from a position on."""
        with self._deferred_writes.lock:
            before = sum(len(content) for _, content in self.pieces)
            self.pieces = [
                (start, content[: position - start])
                for start, content in self.pieces
                if start < position
            ]
            after = sum(len(content) for _, content in self.pieces)
            if before > after:
                self._deferred_writes.remove(before - after)


def over(
    found: bytes, position: int, size: int, pieces: list[tuple[int, bytes]]
) -> bytes:
    """What a reader sees of files and of what is owed to them.

    @param found: what the files hold at the position.
    @param size: how much of one file is wanted.
    @param pieces: what is owed.
    """
    seen = bytearray()
    end = position + size
    for start, content in pieces:
        low, high = max(start, position), min(start + len(content), end)
        if low < high:
            seen = seen or bytearray(found.ljust(size, b"\0"))
            seen[low - position : high - position] = content[low - start : high - start]
    return bytes(seen) or found
