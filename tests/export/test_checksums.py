"""CRC-32C."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.checksums import LANE, MAX_LANES, byte_table, crc32c
from tests.examples import examples


def byte_by_byte(data: bytes) -> int:
    """The definition."""
    state = 0xFFFFFFFF
    for byte in data:
        state = byte_table()[(state ^ byte) & 255] ^ state >> 8
    return state ^ 0xFFFFFFFF


class ChecksumTests(SynchronousTestCase):
    """L{crc32c}."""

    def test_vectors(self) -> None:
        """The check value of the polynomial, and the examples of RFC 3720."""
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(bytes(32)), 0x8A9136AA)
        self.assertEqual(crc32c(b"\xff" * 32), 0x62A8AB43)
        self.assertEqual(crc32c(bytes(range(32))), 0x46DD794E)
        self.assertEqual(crc32c(b""), 0)

    @examples()
    @given(st.integers(0, 5 * LANE), st.integers(0, 2**32))
    def test_anyLength(self, size: int, seed: int) -> None:
        """Lanes and left over bytes give what a walk over the bytes gives."""
        data = bytes((seed * i * i >> 7) & 255 for i in range(size))
        self.assertEqual(crc32c(data), byte_by_byte(data))

    def test_large(self) -> None:
        """So do more lanes than go at once."""
        data = bytes(i % 251 for i in range(LANE * (MAX_LANES + 5) + 3))
        self.assertEqual(crc32c(data), byte_by_byte(data))

    @examples()
    @given(st.binary(max_size=600), st.binary(max_size=600))
    def test_goesOn(self, first: bytes, second: bytes) -> None:
        """The CRC of a part is where the next one begins."""
        self.assertEqual(crc32c(second, crc32c(first)), crc32c(first + second))
