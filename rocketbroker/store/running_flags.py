# -*- test-case-name: tests.store.test_running_flags -*-
"""The running flags: a number whose bits show what a store can do at the moment.

Operators read it, and RocketMQ's tools know its bits::

    ====  =====================================================================
    bit   meaning
    ====  =====================================================================
    1     nothing may be read
    2     nothing may be appended
    4     a consume queue could not be written
    8     the index could not be written
    16    the disk is full
    32    fenced: another broker is the master
    64    the disk of the consume queues is full
    ====  =====================================================================

C{docs/facts/store.md} 5.3.
"""

from __future__ import annotations

import threading
from typing import Final, final

NOT_READABLE: Final = 1
NOT_WRITEABLE: Final = 2
WRITE_LOGICS_QUEUE_ERROR: Final = 4
WRITE_INDEX_FILE_ERROR: Final = 8
DISK_FULL: Final = 16
FENCED: Final = 32
LOGIC_DISK_FULL: Final = 64

#: While one of these is set nothing is appended. An index that cannot be written is no
#: reason, though RocketMQ makes it one: it is built from the log when it can be.
NOT_APPENDABLE: Final = (
    NOT_WRITEABLE | WRITE_LOGICS_QUEUE_ERROR | DISK_FULL | FENCED | LOGIC_DISK_FULL
)


@final
class RunningFlags:
    """The bits of one store.

    Several parts may hold the same bit, each with its reason: it is set as long as one
    of them does. They are set from several threads.

    @ivar bits: all that are set.
    """

    __slots__ = ("_held", "_lock", "bits")

    def __init__(self) -> None:
        self.bits = 0
        self._held: dict[tuple[int, str], str] = {}
        self._lock = threading.Lock()

    def set(self, bit: int, on: bool = True, reason: str = "", by: str = "") -> None:
        """Hold or release a bit.

        @param reason: for people; of a bit that is held it may be another every time.
        @param by: which part of the store holds it.
        """
        with self._lock:
            if on:
                self._held[bit, by] = reason
            else:
                self._held.pop((bit, by), None)
            self.bits = self._bits("")

    def has(self, bit: int) -> bool:
        """Whether a bit is set."""
        return bool(self.bits & bit)

    def held_by_others(self, by: str) -> int:
        """The bits that other parts hold, too or alone."""
        with self._lock:
            return self._bits(by)

    def reasons(self, mask: int) -> str:
        """Why some bits are set, each reason once."""
        with self._lock:
            held = sorted(self._held.items())
        return "; ".join(
            dict.fromkeys(reason for (bit, _), reason in held if bit & mask and reason)
        )

    def _bits(self, but: str) -> int:
        bits = 0
        for bit, by in self._held:
            if not but or by != but:
                bits |= bit
        return bits
