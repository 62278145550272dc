# -*- test-case-name: tests.filtering.test_bloom -*-
"""The bloom filter that tells of each entry of a queue which groups' filters matched.

Each pair of group and topic has C{k} positions in a map of C{m} bits. When a message is
stored, the positions of all filters that match are set; later a filter whose positions
are not all set has not matched. The numbers have to be RocketMQ's, as the maps are
in files (C{docs/facts/store.md} 8).

C{docs/facts/broker.md} 13.3.
"""

from __future__ import annotations

import math
from typing import Final, final

_WORD: Final = (1 << 64) - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 64 - bits) & _WORD


def _finished(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _WORD
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _WORD
    return value ^ value >> 33


def murmur3_low(data: bytes) -> int:
    """The lower half of Murmur3 with 128 bits for 64-bit machines, with seed 0."""
    first = second = 0
    whole = len(data) - len(data) % 16
    for at in range(0, whole, 16):
        first ^= _mixed(data[at : at + 8], _C1, 31, _C2)
        first = (_rotated(first, 27) + second) * 5 + 0x52DCE729 & _WORD
        second ^= _mixed(data[at + 8 : at + 16], _C2, 33, _C1)
        second = (_rotated(second, 31) + first) * 5 + 0x38495AB5 & _WORD
    second ^= _mixed(data[whole + 8 :], _C2, 33, _C1)
    first ^= _mixed(data[whole : whole + 8], _C1, 31, _C2)
    first ^= len(data)
    second ^= len(data)
    first = first + second & _WORD
    second = second + first & _WORD
    return _finished(first) + _finished(second) & _WORD


def _mixed(data: bytes, before: int, bits: int, after: int) -> int:
    word = int.from_bytes(data, "little") * before & _WORD
    return _rotated(word, bits) * after & _WORD


def _signed(value: int) -> int:
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


@final
class BloomFilter:
    """The form of all maps of a broker.

    @ivar groups: for how many filters of one topic that holds.
    @ivar hashes: how many positions each filter has.
    @ivar bits: the size of a map, a multiple of 8.
    """

    def __init__(self, error_percent: int = 20, groups: int = 32) -> None:
        """
        @param error_percent: how often a filter that did not match seems to have, 1
            to 99.
        @param groups: 1 or more.
        """
        assert 0 < error_percent < 100 and groups > 0, (error_percent, groups)
        self.groups = groups
        share = error_percent / 100
        self.hashes = math.ceil(math.log(share) / math.log(0.5))
        bits = math.ceil(groups * math.log2(1 / share) * math.log2(math.e))
        self.bits = -(-bits // 8) * 8

    def positions(self, group: str, topic: str) -> list[int]:
        """The positions of a group's filter for a topic."""
        low = murmur3_low(f"{group}#{topic}".encode("utf-8", "surrogatepass"))
        first, second = _signed(low), _signed(low >> 32)
        found = []
        for number in range(1, self.hashes + 1):
            value = _signed(first + number * second)
            found.append((~value if value < 0 else value) % self.bits)
        return found

    def empty(self) -> bytearray:
        """A map in which nothing has matched."""
        return bytearray(self.bits // 8)


def add(matched: bytearray, positions: list[int]) -> None:
    """Say in a map that a filter has matched."""
    for position in positions:
        matched[position >> 3] |= 1 << (position & 7)


def mask(positions: list[int]) -> int:
    """The bits at the positions of a filter, for L{may_match}."""
    return sum(1 << each for each in set(positions))


def may_match(matched: bytes | bytearray, mask: int) -> bool:
    """Whether a filter may have matched."""
    return int.from_bytes(matched, "little") & mask == mask
