"""Offset ranges and splits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.sources.ranges import Queue, Range, splits
from tests.examples import examples

QUEUES = [Queue("T", "broker-a", number) for number in range(5)]


def ranges(*pairs: tuple[int, int]) -> list[Range]:
    """A range for each of the first queues."""
    return [
        Range(queue, start, until)
        for queue, (start, until) in zip(QUEUES, pairs, strict=False)
    ]


class SplitTests(SynchronousTestCase):
    """L{splits}."""

    def test_nothing(self) -> None:
        """Empty ranges are no splits."""
        self.assertEqual(splits([], 4), [])
        self.assertEqual(splits(ranges((5, 5)), 4), [])

    def test_even(self) -> None:
        """A range is cut evenly into as many splits as are wanted at least."""
        found = splits(ranges((0, 10)), 4)
        self.assertEqual([split.size for split in found], [2, 3, 2, 3])

    def test_small(self) -> None:
        """Several small queues share a split."""
        (found,) = splits(ranges((0, 2), (0, 3), (7, 8)), 1)
        self.assertEqual(list(found.ranges), ranges((0, 2), (0, 3), (7, 8)))

    def test_mostRecords(self) -> None:
        """More splits than wanted where these would be too large."""
        found = splits(ranges((0, 10)), 1, 4)
        self.assertEqual([split.size for split in found], [3, 3, 4])

    def test_fewerMessagesThanSplits(self) -> None:
        """There is never an empty split."""
        self.assertEqual(len(splits(ranges((0, 3)), 8)), 3)

    def test_words(self) -> None:
        """A range says what it is."""
        self.assertEqual(str(ranges((1, 2))[0]), "[1, 2) of queue 0 of T on broker-a")

    @examples()
    @given(
        st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=5),
        st.integers(0, 9),
        st.integers(1, 60),
    )
    def test_exact(self, sizes: list[tuple[int, int]], least: int, most: int) -> None:
        """Each message is in exactly one split, in order, and no split is too large."""
        wanted = ranges(*[(start, start + count) for start, count in sizes])
        found = splits(wanted, least, most)
        messages = [
            (piece.queue, offset)
            for split in found
            for piece in split.ranges
            for offset in range(piece.start, piece.until)
        ]
        self.assertEqual(
            messages,
            [
                (piece.queue, offset)
                for piece in wanted
                for offset in range(piece.start, piece.until)
            ],
        )
        counts = [split.size for split in found]
        self.assertTrue(all(0 < count <= most for count in counts))
        self.assertTrue(len(found) >= min(least, len(messages)))
        self.assertTrue(not counts or max(counts) - min(counts) <= 1)
