# -*- test-case-name: tests.store.test_flags -*-
"""What a store can do at the moment, as one number.

Operators read it, and the reference's tools know its bits:

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

The store sheet, section 5.3.
"""

from __future__ import annotations

from typing import Final, final

NOT_READABLE: Final = 1
NOT_WRITEABLE: Final = 2
WRITE_LOGICS_QUEUE_ERROR: Final = 4
WRITE_INDEX_FILE_ERROR: Final = 8
DISK_FULL: Final = 16
FENCED: Final = 32
LOGIC_DISK_FULL: Final = 64


@final
class RunningFlags:
    """The bits of one store.

    @ivar bits: all that are set.
    """

    __slots__ = ("bits",)

    def __init__(self) -> None:
        self.bits = 0

    def set(self, bit: int, on: bool = True) -> None:
        """Set a bit, or take it back."""
        if on:
            self.bits |= bit
        else:
            self.bits &= ~bit

    def has(self, bit: int) -> bool:
        """Whether a bit is set."""
        return bool(self.bits & bit)
