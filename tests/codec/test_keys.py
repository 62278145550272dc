"""Tests of L{rocketbroker.codec.keys}."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.codec.keys import hashes_of
from rocketbroker.records.hashing import index_hash, unsigned_hash
from rocketbroker.store.index.keys import MAX_KEYS, codes_of_one

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
