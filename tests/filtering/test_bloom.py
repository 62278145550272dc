"""The bloom filter of consumer filters."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.filtering.bloom import BloomFilter, add, mask, may_match, murmur3_low


class BloomFilterTests(SynchronousTestCase):
    """With the numbers of RocketMQ."""

    def test_form(self) -> None:
        """20 % and 32 groups give 3 positions in 112 bits."""
        bloom = BloomFilter()
        self.assertEqual((bloom.hashes, bloom.bits), (3, 112))
        self.assertEqual(len(bloom.empty()), 14)

    def test_positions(self) -> None:
        """RocketMQ's, for two groups."""
        bloom = BloomFilter()
        self.assertEqual(bloom.positions("CG", "T"), [0, 73, 34])
        self.assertEqual(bloom.positions("CID_demo", "TopicTest"), [34, 108, 73])

    def test_hash(self) -> None:
        """Published values, of every length of the rest."""
        self.assertEqual(murmur3_low(b""), 0)
        self.assertEqual(
            murmur3_low(b"The quick brown fox jumps over the lazy dog"),
            0xE34BBC7BBC071B6C,
        )
        found = {murmur3_low(b"x" * size) for size in range(40)}
        self.assertEqual(len(found), 40)

    def test_map(self) -> None:
        """What was added may match; others mostly do not."""
        bloom = BloomFilter()
        matched = bloom.empty()
        for number in range(4):
            add(matched, bloom.positions(f"group{number}", "T"))
        for number in range(4):
            self.assertTrue(
                may_match(matched, mask(bloom.positions(f"group{number}", "T")))
            )
        others = [
            may_match(matched, mask(bloom.positions(f"other{number}", "T")))
            for number in range(200)
        ]
        self.assertLess(sum(others), 20)
