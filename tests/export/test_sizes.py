"""How many bytes ranges have."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.sizes import PLACES, Sizes
from rocketbroker.sources.ranges import Queue, Range
from tests.sources.messages import stored
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)


class CountingOrigin(MemoryOrigin):
    """Counts the messages that are asked for.

    @ivar count: how many these were.
    """

    count = 0

    def message(self, queue: Queue, number: int) -> bytes:
        """See L{MemoryOrigin}; each hundredth one is large."""
        self.count += 1
        return stored(number, bytes(900 if number % 100 == 0 else 9))


class SizesTests(SynchronousTestCase):
    """L{Sizes}."""

    def test_small(self) -> None:
        """Of few messages the sizes are exact."""
        origin = CountingOrigin({QUEUE: 150})
        whole = sum(len(origin.message(QUEUE, number)) for number in range(150))
        sizes = Sizes(origin, [Range(QUEUE, 0, 150)])
        self.assertEqual(sizes.size(Range(QUEUE, 0, 150)), whole)

    def test_many(self) -> None:
        """Of many only some are looked at, all over the range."""
        origin = CountingOrigin({QUEUE: 100_000})
        wanted = Range(QUEUE, 0, 100_000)
        sizes = Sizes(origin, [wanted])
        self.assertTrue(origin.count <= PLACES * 32)
        whole = 99_000 * len(stored(1, bytes(9))) + 1000 * len(stored(1, bytes(900)))
        self.assertTrue(0.9 < sizes.size(wanted) / whole < 1.1)
        half = sizes.offset(wanted, sizes.size(wanted) // 2)
        self.assertTrue(48_000 < half < 52_000, half)

    def test_inverse(self) -> None:
        """Offsets by size are never outside of the part."""
        sizes = Sizes(CountingOrigin({QUEUE: 1000}), [Range(QUEUE, 0, 1000)])
        part = Range(QUEUE, 100, 200)
        self.assertEqual(sizes.offset(part, 0), 100)
        self.assertEqual(sizes.offset(part, sizes.size(part)), 200)
        self.assertEqual(sizes.offset(part, 10**9), 200)

    def test_damaged(self) -> None:
        """What cannot be read is taken to be like the rest."""
        origin = MemoryOrigin({QUEUE: 100})
        whole = sum(len(origin.message(QUEUE, number)) for number in range(100))
        origin.records = {0: b"garbage", 40: b"", 99: b"garbage"}
        found = Sizes(origin, [Range(QUEUE, 0, 100)]).size(Range(QUEUE, 0, 100))
        self.assertTrue(0.98 < found / whole < 1.02)

    def test_sameFromAnySource(self) -> None:
        """It does not matter in which pieces messages come."""
        found = {
            Sizes(CountingOrigin({QUEUE: 9000}, step), [Range(QUEUE, 5, 9000)]).size(
                Range(QUEUE, 77, 8000)
            )
            for step in (1, 7, 100)
        }
        self.assertEqual(len(found), 1)
