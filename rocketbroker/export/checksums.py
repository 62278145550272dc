# -*- test-case-name: tests.export.test_checksums -*-
"""CRC-32C (Castagnoli) of many megabytes, with numpy.

No package that we need computes it. A loop over bytes in Python takes 10 s for what a
disk writes in one; so the bytes are cut into lanes of 256, all lanes advance by four
bytes at a time through two tables of 65536 entries, and neighbouring lanes are then
joined, twice as long each time. Joining uses that a CRC is linear: the CRC of A
followed by B is that of A moved on by the length of B, xor that of B.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

SharedPositions: TypeAlias = npt.NDArray[np.uint32]

#: The polynomial, lowest power first.
POLYNOMIAL: Final = 0x82F63B78

#: Bytes of a lane; must be a multiple of four.
LANE: Final = 256

#: More lanes at once than this fall out of the processor's cache.
MAX_LANES: Final = 4096

ONES: Final = 0xFFFFFFFF


@lru_cache(maxsize=1)
def byte_table() -> tuple[int, ...]:
    """How each byte changes the state."""
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


@lru_cache(maxsize=1)
def word_tables() -> tuple[SharedPositions, SharedPositions]:
    """How the lower and the upper half of four bytes change the state."""
    single = np.array(byte_table(), np.uint32)
    # One byte, moved on by one, two and three bytes.
    moved = [single]
    for _ in range(3):
        moved.append(single[moved[-1] & 255] ^ moved[-1] >> np.uint32(8))
    low, high = np.arange(65536) & 255, np.arange(65536) >> 8
    return moved[3][low] ^ moved[2][high], moved[1][low] ^ moved[0][high]


def times(matrix: Sequence[int], word: int) -> int:
    """A matrix over two elements, by a word of 32 of them."""
    result = 0
    for column in matrix:
        if word & 1:
            result ^= column
        word >>= 1
    return result


@lru_cache(maxsize=128)
def mover(power: int) -> tuple[int, ...]:
    """The matrix that moves a state on by C{2 ** power} zero bytes."""
    if power == 0:
        table = byte_table()
        return tuple(table[(1 << bit) & 255] ^ (1 << bit) >> 8 for bit in range(32))
    half = mover(power - 1)
    return tuple(times(half, column) for column in half)


@lru_cache(maxsize=64)
def mover_tables(power: int) -> tuple[SharedPositions, ...]:
    """The same as four tables, one for each byte of the state."""
    matrix = mover(power)
    return tuple(
        np.array([times(matrix, value << shift) for value in range(256)], np.uint32)
        for shift in (0, 8, 16, 24)
    )


def moved(state: int, size: int) -> int:
    """A state, moved on by C{size} zero bytes."""
    power = 0
    while size:
        if size & 1:
            state = times(mover(power), state)
        size >>= 1
        power += 1
    return state


def lanes(data: npt.NDArray[np.uint8], count: int) -> int:
    """The state after C{count} lanes, a power of two, from the state 0."""
    low, high = word_tables()
    columns = data.view("<u4").reshape(count, LANE // 4).T
    state: Any = np.zeros(count, np.uint32)
    for column in columns:
        state = state ^ column
        state = low[state & 0xFFFF] ^ high[state >> np.uint32(16)]
    power = LANE.bit_length() - 1
    while len(state) > 1:
        one, two, three, four = mover_tables(power)
        left = state[0::2]
        state = state[1::2] ^ (
            one[left & 255]
            ^ two[left >> np.uint32(8) & 255]
            ^ three[left >> np.uint32(16) & 255]
            ^ four[left >> np.uint32(24)]
        )
        power += 1
    return int(state[0])


def crc32c(data: Any, value: int = 0) -> int:
    """The CRC-32C of C{data}.

    @param data: anything that has a buffer.
    @param value: the CRC of what comes before.
    """
    buffer = np.frombuffer(data, np.uint8) if len(data) else np.empty(0, np.uint8)
    state = value ^ ONES
    position, size = 0, len(buffer)
    while size - position >= LANE:
        fitting = min((size - position) // LANE, MAX_LANES)
        count = 1 << (fitting.bit_length() - 1)
        length = count * LANE
        part = lanes(buffer[position : position + length], count)
        state = moved(state, length) ^ part
        position += length
    table = byte_table()
    for byte in buffer[position:].tolist():
        state = table[(state ^ byte) & 255] ^ state >> 8
    return state ^ ONES
