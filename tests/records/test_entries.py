"""Entries of a consume queue."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import entries
from rocketbroker.records.malformed import Malformed


class EntryTests(SynchronousTestCase):
    """20 bytes each."""

    def test_vector(self) -> None:
        """Fields are big-endian and the tag code keeps its sign."""
        data = bytes.fromhex("0000000000001000 00000065 ffffffffffffffff")
        self.assertEqual(entries.encode(4096, 101, -1), data)
        self.assertEqual(entries.decode(data * 2), [(4096, 101, -1)] * 2)

    def test_cut(self) -> None:
        """Part of an entry is none."""
        data = entries.encode(4096, 101, 5)
        for size in range(1, entries.SIZE):
            self.assertRaises(Malformed, entries.decode, data[:size])
            self.assertRaises(Malformed, entries.decode, data + data[:size])
        self.assertEqual(entries.decode(b""), [])

    def test_filled(self) -> None:
        """What is written before the first entry has the largest size."""
        self.assertEqual(entries.FILLED.hex(), "00" * 8 + "7fffffff" + "00" * 8)
