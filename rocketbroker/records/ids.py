# -*- test-case-name: tests.records.test_ids -*-
"""The two ids of a message: where it is stored, and the one its producer gave it.

I{Offset id}: store host (address of 4 or 16 bytes, port as i32) and physical offset
(i64), in upper-case hex: 32 or 56 characters.

I{Unique key}, the id that users see::

    ========  =========================================================
    bytes     content
    ========  =========================================================
    4 or 16   address of the client
    2         process id, low 16 bits
    4         a number that stays the same as long as the process
    4         milliseconds since the month began, 32 bits
    2         counter, one more for each id
    ========  =========================================================

C{docs/facts/client.md} 6.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, final

from rocketbroker.records import hosts
from rocketbroker.records.malformed import Malformed

_POSITION: Final = struct.Struct(">q")

DAY_MS: Final = 86_400_000

#: Unique keys of one process repeat only if it makes more than this many in 1 ms.
COUNTER_SIZE: Final = 0x10000


class OffsetId(NamedTuple):
    """What an offset id says.

    @ivar host: 8 or 20 bytes, as a record has it.
    @ivar position: the physical offset.
    """

    host: bytes
    position: int


def offset_id(host: bytes, position: int) -> str:
    """The offset id of the record at C{position}, stored by C{host}."""
    return (host + _POSITION.pack(position)).hex().upper()


def offset_ids(host: bytes, positions: Sequence[int]) -> str:
    """The offset ids of many records, one for all of a batch, with commas between."""
    each = host.hex().upper() + "%016X"
    return ",".join([each] * len(positions)) % tuple(positions)


def parse_offset_id(text: str) -> OffsetId:
    """What an offset id says; lower case is taken too.

    @raise Malformed: it is not one.
    """
    data = _unhex(text, "a message id")
    if len(data) not in (hosts.V4_SIZE + 8, hosts.V6_SIZE + 8):
        raise Malformed(f"a message id of {len(text)} characters")
    return OffsetId(data[:-8], _POSITION.unpack(data[-8:])[0])


def _unhex(text: str, what: str) -> bytes:
    try:
        data = bytes.fromhex(text)
    except ValueError:
        data = b""
    if not data or len(data) * 2 != len(text):
        raise Malformed(f"{what} that is not hexadecimal")
    return data


def month_start_ms(now_ms: int, utc_offset_ms: int) -> int:
    """When the month of C{now_ms} began.

    @param utc_offset_ms: how much the local time is ahead of UTC.
    """
    day = (now_ms + utc_offset_ms) // DAY_MS
    return (day - _day_of_month(day)) * DAY_MS - utc_offset_ms


def _day_of_month(day: int) -> int:
    """The day of the month, from 0, of a day counted from 1970-01-01.

    Years begin with March here, so the leap day is the last day of a year, and of the
    400 years after which the calendar repeats.
    """
    of_era = (day + 719_468) % 146_097
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    return of_year - (153 * month + 2) // 5


@final
class UniqueKeys:
    """Makes the unique keys of one process.

    @ivar made: how many.
    """

    def __init__(
        self,
        address: bytes,
        process_id: int,
        token: int,
        now_ms: Callable[[], int],
        first: int = 0,
        utc_offset_ms: int = 0,
    ) -> None:
        """
        @param address: 4 or 16 bytes.
        @param token: any number; two processes with the same address and process id
            (containers) are told apart by it.
        @param now_ms: the wall clock.
        @param first: where the counter begins.
        @param utc_offset_ms: how much the local time is ahead of UTC.
        """
        assert len(address) in (4, 16)
        process = struct.pack(">HI", process_id & 0xFFFF, token & 0xFFFFFFFF)
        self._prefix = (address + process).hex().upper()
        self._now_ms = now_ms
        self._counter = first % COUNTER_SIZE
        self._utc_offset_ms = utc_offset_ms
        self._month_start_ms = 0
        self._month_end_ms = 0
        self.made = 0

    def make(self) -> str:
        """The next unique key."""
        now_ms = self._now_ms()
        if now_ms >= self._month_end_ms:
            self._enter_month(now_ms)
        since = max(now_ms - self._month_start_ms, 0) & 0xFFFFFFFF
        counter = self._counter
        self._counter = (counter + 1) % COUNTER_SIZE
        self.made += 1
        return f"{self._prefix}{since:08X}{counter:04X}"

    def _enter_month(self, now_ms: int) -> None:
        self._month_start_ms = month_start_ms(now_ms, self._utc_offset_ms)
        in_next = self._month_start_ms + 32 * DAY_MS
        self._month_end_ms = month_start_ms(in_next, self._utc_offset_ms)
