# -*- test-case-name: tests.store.timerwheel.test_timers -*-
"""The units of the timer log.

Layout::

    ======  =============================================================
    offset  field
    ======  =============================================================
    0       size, i32: 52
    4       position of the unit before it in its chain, i64; -1: none
    12      magic, i32: bit 0 always; bit 1: roll; bit 2: delete
    16      the wheel's write time when it was entered, ms, i64
    24      its slot's time less that, ms, i32
    28      physical offset of the message, i64
    36      size of its record, i32
    40      Java's hash of its real topic, i32
    44      0, i64
    ======  =============================================================

A unit that rolls is due before its message is: the message is entered anew then. A unit
that deletes has a message with the key of another one, which is not delivered.

Where no unit fits any more, the rest of a segment begins with its length (i32), 0
(i64), and another magic (i32).

C{docs/facts/transaction-timer-pop.md} B3.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from rocketbroker.records.hashing import java_hash

SIZE: Final = 52

#: What stands in place of a position where there is none.
NONE: Final = -1

#: The bits of the magic.
DEFAULT: Final = 1
ROLL: Final = 2
DELETE: Final = 4
ALL_BITS: Final = 0xF

_UNIT: Final = struct.Struct(
    ">"
    "i"  # size
    "q"  # the unit before it
    "i"  # magic
    "q"  # write time
    "i"  # delay
    "q"  # physical offset
    "i"  # size of the record
    "i"  # hash of the real topic
    "q"  # 0
)
assert _UNIT.size == SIZE

_BLANK: Final = struct.Struct(
    ">"
    "i"  # the bytes that are left
    "q"  # 0
    "i"  # magic
)

BLANK_SIZE: Final = _BLANK.size
BLANK_MAGIC: Final = -875286124
assert BLANK_MAGIC & 0xFFFFFFFF == 0xCBD43194

iterate = _UNIT.iter_unpack


class Unit(NamedTuple):
    """A unit of the timer log.

    @ivar previous: the unit before it in its chain.
    @ivar magic: its bits.
    @ivar write_ms: when it was entered.
    @ivar delay_ms: how long after that it is due.
    @ivar position: where its message is.
    @ivar size: the length of its record.
    @ivar topic_hash: Java's, of the real topic.
    """

    previous: int
    magic: int
    write_ms: int
    delay_ms: int
    position: int
    size: int
    topic_hash: int

    @property
    def due_ms(self) -> int:
        """The time of its slot."""
        return self.write_ms + self.delay_ms

    @property
    def rolls(self) -> bool:
        """Whether its message is only entered anew when it is due."""
        return bool(self.magic & ROLL)

    @property
    def deletes(self) -> bool:
        """Whether its message takes another one away."""
        return bool(self.magic & DELETE)

    def encode(self) -> bytes:
        """Its 52 bytes."""
        return _UNIT.pack(SIZE, *self, 0)


def decode(data: bytes, start: int = 0) -> Unit | None:
    """The unit that stands there; None if there is none."""
    if len(data) - start < SIZE:
        return None
    fields = _UNIT.unpack_from(data, start)
    if fields[0] != SIZE or fields[2] & ~ALL_BITS:
        return None
    return Unit._make(fields[1:8])


def blank(rest: int) -> bytes:
    """What stands at the end of a segment that has C{rest} bytes left."""
    return _BLANK.pack(rest, 0, BLANK_MAGIC)


def is_blank(data: bytes, start: int = 0) -> bool:
    """Whether the rest of a segment is empty."""
    if len(data) - start < BLANK_SIZE:
        return False
    return bool(_BLANK.unpack_from(data, start)[2] == BLANK_MAGIC)


def topic_hash(topic: str) -> int:
    """What a unit has of the real topic of its message."""
    return java_hash(topic)
