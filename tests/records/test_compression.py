"""Bodies made small and large again."""

from __future__ import annotations

import contextlib
import zlib

import zstandard
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import compression
from rocketbroker.records.malformed import Malformed
from tests.examples import examples

KINDS = (compression.LZ4, compression.ZSTD, compression.ZLIB)
BODY = b"to be or not to be, " * 50


def without_size(body: bytes) -> bytes:
    """A zstd frame as Java's stream writes it: it does not say how long it becomes."""
    return zstandard.ZstdCompressor(write_content_size=False).compress(body)


class CompressionTests(SynchronousTestCase):
    """All three formats."""

    @examples()
    @given(st.binary(), st.sampled_from(KINDS))
    def test_roundTrip(self, body: bytes, kind: int) -> None:
        """What was made small becomes the same again."""
        small = compression.compress(body, kind)
        self.assertEqual(compression.decompress(small, kind), body)

    def test_heads(self) -> None:
        """The formats are those that clients know by their first bytes."""
        heads = [compression.compress(BODY, kind)[:4].hex() for kind in KINDS]
        self.assertEqual(heads[:2], ["04224d18", "28b52ffd"])
        self.assertEqual(heads[2][:4], "785e")

    def test_oldZlib(self) -> None:
        """Kind 0 is zlib too."""
        small = compression.compress(BODY, compression.OLD_ZLIB)
        self.assertEqual(compression.decompress(small, compression.ZLIB), BODY)
        self.assertEqual(compression.decompress(small, compression.OLD_ZLIB), BODY)

    def test_cut(self) -> None:
        """A body cut anywhere is refused, not shortened."""
        bodies = [(kind, compression.compress(BODY, kind)) for kind in KINDS]
        for kind, small in [*bodies, (compression.ZSTD, without_size(BODY))]:
            for size in range(len(small)):
                self.assertRaises(Malformed, compression.decompress, small[:size], kind)

    def test_leftOver(self) -> None:
        """What follows the stream is passed over."""
        for kind in KINDS:
            small = compression.compress(BODY, kind)
            self.assertEqual(compression.decompress(small + b"rest", kind), BODY)

    @examples()
    @given(st.sampled_from(KINDS), st.integers(min_value=0), st.integers(0, 255))
    def test_mutated(self, kind: int, at: int, byte: int) -> None:
        """A changed byte gives a body or the declared error."""
        small = bytearray(compression.compress(BODY, kind))
        small[at % len(small)] = byte
        with contextlib.suppress(Malformed):
            compression.decompress(bytes(small), kind, 100_000)

    def test_limit(self) -> None:
        """A body may become as large as allowed, and not a byte more."""
        bombs = [(kind, compression.compress(bytes(100_000), kind)) for kind in KINDS]
        bombs.append((compression.ZSTD, without_size(bytes(100_000))))
        for kind, small in bombs:
            plain = compression.decompress(small, kind, 100_000)
            self.assertEqual(len(plain), 100_000)
            self.assertRaises(Malformed, compression.decompress, small, kind, 99_999)

    def test_defaultLimit(self) -> None:
        """Unless told otherwise, nothing becomes larger than the named limit."""
        stream = zlib.compressobj(1)
        piece = bytes(1024 * 1024)
        rounds = compression.MAX_PLAIN_BYTES // len(piece)
        small = b"".join(stream.compress(piece) for _ in range(rounds))
        small += stream.compress(b"x") + stream.flush()
        self.assertRaises(Malformed, compression.decompress, small, compression.ZLIB)

    def test_unknownKind(self) -> None:
        """A kind that nobody knows is refused."""
        self.assertRaises(Malformed, compression.compress, b"a", 7)
        self.assertRaises(Malformed, compression.decompress, b"a", 7)
