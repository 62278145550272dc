# -*- test-case-name: tests.records.test_tag_codes -*-
"""The tag codes that a reader wants, and a quick search for them in queue entries.

Of a code in an entry 32 bits count. A read of a queue looks at many entries and wants
few of them, so most are never taken apart: their last bytes, which are the last of the
codes, are marked all at once, and only an entry whose byte is the last one of a wanted
code is looked at. That costs a few ns an entry, where a call costs 200.

C{docs/facts/store.md} 7.2 and 16.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from rocketbroker.records.entries import ENTRY, SIZE

#: Where the bytes of an entry's size stand; and the last one of its tag code.
_SIZE_AT: Final = 8
_LAST: Final = SIZE - 1

_BYTES: Final = bytes(range(256))
_MARK: Final = b"\1"


@final
class TagCodes:
    """The tag codes that a reader wants.

    Called with a code as it stands in an entry, or None if it is not known, it says
    whether the message may be wanted.

    @ivar codes: the codes, of 32 bits, with a sign.
    """

    __slots__ = ("_marks", "codes")

    def __init__(self, codes: Iterable[int]) -> None:
        self.codes = frozenset(codes)
        self._marks = b""

    def __call__(self, code: int | None) -> bool:
        return (
            code is None
            or ((code + 0x80000000) & 0xFFFFFFFF) - 0x80000000 in self.codes
        )

    def pick(
        self, blob: bytes, most: int, room: int
    ) -> tuple[list[int], bytes, int] | None:
        """Pick the entries that have a wanted code.

        @param blob: whole entries.
        @param most: how many to pick, one or more.
        @param room: how many bytes their records may have together.
        @return: the numbers of the picked, themselves, and how many were passed; None
            if each has to be looked at: they and any other one together may have more
            bytes, or most look like wanted ones.
        """
        marks, codes = self._marks, self.codes
        if not marks:
            # Not made before it is used: most subscriptions are only looked at.
            marked = bytearray(256)
            for code in codes:
                marked[code & 0xFF] = 1
            self._marks = marks = bytes(marked)
        lasts = blob[_LAST::SIZE].translate(marks)
        if lasts.count(_MARK) * 2 > len(lasts):
            return None
        numbers: list[int] = []
        picked: list[bytes] = []
        number = lasts.find(_MARK)
        while number >= 0:
            entry = blob[number * SIZE : number * SIZE + SIZE]
            _, size, code = ENTRY.unpack(entry)
            if ((code + 0x80000000) & 0xFFFFFFFF) - 0x80000000 in codes:
                numbers.append(number)
                picked.append(entry)
                room -= size
                if len(numbers) == most:
                    break
            number = lasts.find(_MARK, number + 1)
        if not _fit(blob, room):
            return None
        passed = number + 1 if number >= 0 else len(lasts)
        return numbers, b"".join(picked), passed


def _fit(blob: bytes, room: int) -> bool:
    """Whether surely the record of no entry has more than C{room} bytes, or less than
    none.

    @param blob: whole entries.
    """
    return room >= 0 and not (
        blob[_SIZE_AT::SIZE].strip(b"\0")
        or blob[_SIZE_AT + 1 :: SIZE].strip(b"\0")
        or (
            room >> 16 == 0
            and blob[_SIZE_AT + 2 :: SIZE].translate(None, _BYTES[: room >> 8])
        )
    )
