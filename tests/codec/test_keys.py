"""Tests of L{rocketbroker.codec.keys}."""

from __future__ import annotations

import struct
import sys
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec.keys import enter, hashes_of
from rocketbroker.records.hashing import index_hash, unsigned_hash
from rocketbroker.store.index.keys import MAX_KEYS, codes_of_one
from tests.examples import examples

PREFIX = unsigned_hash("Topic#")

_VALUES = st.text(st.sampled_from("aK \u00fc\x01"), max_size=6)
_NAMES = st.sampled_from(["KEYS", "UNIQ_KEY", "XKEYS", "KEY", "", "KEYS\x01KEYS"])
_PROPERTIES = st.lists(st.tuples(_NAMES, _VALUES)).map(
    lambda pairs: "\x02".join(f"{name}\x01{value}" for name, value in pairs).encode()
) | st.lists(
    st.sampled_from([b"KEYS", b"UNIQ_KEY", b"\x01", b"\x02", b" ", b"a", b"\xff"])
).map(b"".join)


class KeyTests(SynchronousTestCase):
    """The hashes are those that pure Python has."""

    def test_hash(self) -> None:
        """They are the index's, of the unique key first."""
        codes, counts = hashes_of(
            [PREFIX, PREFIX],
            [b"KEYS\x01k1  k2 \x02UNIQ_KEY\x01u\x02", b"TAGS\x01A"],
            MAX_KEYS,
        )
        keys = ("u", "k1", "k2")
        self.assertEqual(codes, [index_hash("Topic", key) for key in keys])
        self.assertEqual(counts, [3, 0])

    def test_sign(self) -> None:
        """The hash without a counterpart is 0, as Java has it."""
        # 0x80000000 before no character at all cannot be; before one it can.
        prefix = (0x80000000 - 97) * pow(31, -1, 1 << 32) % (1 << 32)
        self.assertEqual(hashes_of([prefix], [b"KEYS\x01a"], 9), ([0], [1]))

    def test_most(self) -> None:
        """No more keys are taken than that."""
        codes, counts = hashes_of([PREFIX], [b"KEYS\x01" + b"k " * 9], 4)
        self.assertEqual((len(codes), counts), (4, [4]))

    @examples()
    @given(st.lists(_PROPERTIES, max_size=4))
    def test_same(self, properties: list[bytes]) -> None:
        """Any properties have the hashes that L{codes_of_one} finds, or are left."""
        prefixes = [PREFIX + number for number in range(len(properties))]
        codes, counts = hashes_of(prefixes, properties, MAX_KEYS)
        at = 0
        for prefix, own, count in zip(prefixes, properties, counts, strict=True):
            if count < 0:
                self.assertFalse(own.isascii())
                continue
            self.assertEqual(tuple(codes[at : at + count]), codes_of_one(prefix, own))
            at += count
        self.assertEqual(at, len(codes))


class EnterTests(SynchronousTestCase):
    """Keys enter the slots, and get entries."""

    def slots(self, *numbers: int) -> memoryview:
        """Slots with these numbers, as they stand in the file."""
        return memoryview(bytearray(struct.pack(f">{len(numbers)}I", *numbers))).cast(
            "I"
        )

    def entered(self, codes: list[int], view: memoryview) -> list[tuple[int, ...]]:
        """Hash, position, seconds and number before, of the entries from 4 on."""
        positions = [(1 << 40) + at for at in range(len(codes))]
        seconds = [9 + at for at in range(len(codes))]
        content, self.fresh = enter(
            codes, positions, seconds, view, len(view), 4, sys.byteorder == "little"
        )
        found = list(struct.iter_unpack(">iqii", content))
        self.assertEqual([each[1] for each in found], positions)
        self.assertEqual([each[2] for each in found], seconds)
        return found

    def test_enter(self) -> None:
        """A slot leads to the newest entry, and that to the one before."""
        view = self.slots(0, 2, 0)
        found = self.entered([0x7FFFFFFF, 4, 7, 3], view)
        self.assertEqual(
            [(each[0], each[3]) for each in found],
            [(0x7FFFFFFF, 2), (4, 4), (7, 5), (3, 0)],
        )
        self.assertEqual(struct.unpack(">3I", view.tobytes()), (7, 6, 0))
        self.assertEqual(self.fresh, 1)

    def test_broken(self) -> None:
        """A number that cannot be right counts as none."""
        found = self.entered([0, 1, 2], self.slots(4, 1 << 31, 3))
        self.assertEqual([each[3] for each in found], [0, 0, 3])
        self.assertEqual(self.fresh, 2)

    def test_order(self) -> None:
        """A machine with the high byte first reads the slots as they stand."""
        view = memoryview(bytearray(struct.pack("=2I", 3, 0))).cast("I")
        content, fresh = enter([0, 1], [5, 6], [0, 0], view, 2, 4, False)
        whole = list(chain.from_iterable(struct.iter_unpack(">iqii", content)))
        self.assertEqual(whole, [0, 5, 0, 3, 1, 6, 0, 0])
        self.assertEqual((view.tolist(), fresh), ([4, 5], 1))
