"""Tests of L{rocketbroker.records.bulkhashing}."""

from __future__ import annotations

import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.bulkhashing import MAX_ROWS, index_hashes
from rocketbroker.records.hashing import index_hash, unsigned_hash


def hashes(topics: list[str], keys: list[str]) -> list[int]:
    """The hashes of keys of one length, by their columns."""
    rows = "".join(keys).encode()
    columns = [rows[at :: len(keys[0])] for at in range(len(keys[0]))]
    return list(index_hashes(columns, [unsigned_hash(t + "#") for t in topics]))


class BulkHashingTests(SynchronousTestCase):
    """They are Java's, as L{index_hash} has them."""

    def check(self, topics: list[str], keys: list[str]) -> None:
        """Compare with one at a time."""
        expected = [index_hash(*each) for each in zip(topics, keys, strict=True)]
        self.assertEqual(hashes(topics, keys), expected)

    def test_lengths(self) -> None:
        """Keys of any length and any characters."""
        luck = random.Random(1)
        for length in (1, 7, 8, 9, 16, 17, 32, 100):
            keys = [
                "".join(chr(luck.randrange(128)) for _ in range(length))
                for _ in range(50)
            ]
            self.check(["T"] * 50, keys)
            self.check([luck.choice(["T", "topic", ""]) for _ in keys], keys)

    def test_columns(self) -> None:
        """Keys that differ in some columns only, or in none."""
        for text in ("{n:04X}" + "0" * 28, "A" * 28 + "{n:04X}", "A{n:02X}" * 9, "A"):
            keys = [text.format(n=n) for n in range(200)]
            self.check(["T"] * 200, keys)

    def test_edges(self) -> None:
        """The hash that has no positive counterpart is 0; -1 and 1 are the same."""
        self.assertEqual(hashes(["T"], ["k1"]), [2539445])
        # The prefix alone makes the hash with one character of code 0.
        inverse = pow(31, -1, 1 << 32)
        for hashed, expected in ((1 << 31, 0), ((1 << 32) - 1, 1), (1, 1), (0, 0)):
            prefix = hashed * inverse % (1 << 32)
            self.assertEqual(index_hashes([b"\0"], [prefix]), (expected,))
            self.assertEqual(index_hashes([b"\0\0"], [prefix, 0])[1], 0)

    def test_most(self) -> None:
        """As many rows as go at once."""
        keys = [f"key-{n:06d}" for n in range(MAX_ROWS)]
        self.check(["T"] * MAX_ROWS, keys)
