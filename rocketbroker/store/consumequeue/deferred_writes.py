# -*- test-case-name: tests.store.consumequeue.test_deferred_writes -*-
"""Deferred writes of queue files: entries that wait in memory for room on the disk.

A message that is in the log is acknowledged, so it has to be found, and a store that
starts on a full disk has to find its last messages too. So entries that cannot be
written to a queue's file are kept in memory, where readers find them, and written when
there is room again. Until then nothing is appended, so they are never more than one
step of the dispatch, or one start, has to enter. The checkpoint does not move either:
after a stop they are made again from the log.
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
    """The count of deferred writes of all queues of a store.

    @ivar bytes: how many bytes are deferred.
    @ivar lock: held while deferred writes are added or written.
    """

    def __init__(
        self, flags: RunningFlags, describe_refusal: Callable[[str, OSError], str]
    ) -> None:
        """
        @param describe_refusal: makes a sentence of an action that failed and its
            error.
        """
        self.bytes = 0
        self.lock = threading.Lock()
        self._flags = flags
        self._describe_refusal = describe_refusal

    def add(self, size: int, error: OSError) -> None:
        """Add deferred bytes, with the error that deferred them."""
        self.bytes += size
        reason = self._describe_refusal(
            "a consume queue in {} cannot be written", error
        )
        self._flags.set(WRITE_LOGICS_QUEUE_ERROR, True, reason, _BY)

    def remove(self, size: int) -> None:
        """Subtract bytes that have been written or cut away."""
        self.bytes -= size
        if self.bytes == 0:
            self._flags.set(WRITE_LOGICS_QUEUE_ERROR, False, by=_BY)


@final
class PendingWrites:
    """The deferred writes to the files of one queue, in order.

    @ivar pieces: positions and contents; replaced, not changed, so that readers need
        no lock.
    """

    __slots__ = ("_deferred_writes", "_write", "pieces")

    def __init__(
        self, deferred_writes: DeferredWrites, write: Callable[[int, bytes], None]
    ) -> None:
        """
        @param write: writes; raises C{OSError} if the disk refuses.
        """
        self.pieces: list[tuple[int, bytes]] = []
        self._deferred_writes = deferred_writes
        self._write = write

    def put(self, position: int, content: bytes) -> None:
        """Write, after all deferred writes; defer it if there is no room.

        @raise OSError: the disk refused for another reason.
        """
        with self._deferred_writes.lock:
            try:
                self._write_all()
                self._write(position, content)
            except OSError as error:
                if error.errno not in NO_ROOM:
                    raise
                self.pieces = [*self.pieces, (position, content)]
                self._deferred_writes.add(len(content), error)

    def write_all(self) -> None:
        """I{Blocking.} Write all deferred writes.

        @raise OSError: there is still no room.
        """
        with self._deferred_writes.lock:
            self._write_all()

    def _write_all(self) -> None:
        while self.pieces:
            position, content = self.pieces[0]
            self._write(position, content)
            self.pieces = self.pieces[1:]
            self._deferred_writes.remove(len(content))

    def cut(self, position: int) -> None:
        """Drop the deferred writes from a position on."""
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


def overlay(
    found: bytes, position: int, size: int, pieces: list[tuple[int, bytes]]
) -> bytes:
    """The bytes of a file with its deferred writes laid over them.

    @param found: the bytes in the file at the position.
    @param size: how many bytes of one file are wanted.
    @param pieces: the deferred writes.
    """
    seen = bytearray()
    end = position + size
    for start, content in pieces:
        low, high = max(start, position), min(start + len(content), end)
        if low < high:
            seen = seen or bytearray(found.ljust(size, b"\0"))
            seen[low - position : high - position] = content[low - start : high - start]
    return bytes(seen) or found
