"""The limits of a micro-batch."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.sources.ranges import Queue
from rocketbroker.spark.limits import shares, shares_of_bytes
from tests.examples import examples

QUEUES = st.builds(Queue, st.sampled_from("TU"), st.just("b"), st.integers(0, 9))
WAITING = st.dictionaries(QUEUES, st.integers(1, 10**12))
SIZES = st.dictionaries(
    QUEUES, st.tuples(st.integers(1, 10**9), st.integers(1, 1 << 22))
)

A, B, C = (Queue("T", "b", number) for number in range(3))


class ShareTests(SynchronousTestCase):
    """L{shares} and L{shares_of_bytes}."""

    def test_byBacklog(self) -> None:
        """Queues share a limit by what waits in them, after one message of each."""
        self.assertEqual(shares({A: 1000, B: 100}, 110), {A: 99, B: 11})

    def test_atLeastOne(self) -> None:
        """A short queue beside a long one gives a message, too."""
        self.assertEqual(shares({A: 10**9, B: 1, C: 2}, 10), {A: 8, B: 1, C: 1})
        self.assertEqual(shares({A: 10**9, B: 1, C: 2}, 1), {A: 1, B: 1, C: 1})

    @examples()
    @given(WAITING, st.integers(1, 10**12))
    def test_shares(self, waiting: dict[Queue, int], limit: int) -> None:
        """A limit is used up, and exceeded only for one message of each queue."""
        found = shares(waiting, limit)
        self.assertEqual(found.keys(), waiting.keys())
        for queue, number in found.items():
            self.assertTrue(1 <= number <= waiting[queue])
        most = max(limit, len(waiting))
        self.assertEqual(sum(found.values()), min(most, sum(waiting.values())))

    @examples()
    @given(WAITING, st.integers(1, 10**12))
    def test_fair(self, waiting: dict[Queue, int], limit: int) -> None:
        """A longer queue never gives less than a shorter one."""
        found = shares(waiting, limit)
        by_length = sorted(waiting, key=lambda queue: (waiting[queue], found[queue]))
        numbers = [found[queue] for queue in by_length]
        self.assertEqual(numbers, sorted(numbers))

    @examples()
    @given(SIZES, st.integers(1, 10**15))
    def test_bytes(self, queues: dict[Queue, tuple[int, int]], limit: int) -> None:
        """Bytes are exceeded by a message of each queue at most."""
        waiting = {queue: number for queue, (number, _) in queues.items()}
        sizes = {queue: size for queue, (_, size) in queues.items()}
        found = shares_of_bytes(waiting, sizes, limit)
        self.assertEqual(found.keys(), waiting.keys())
        for queue, number in found.items():
            self.assertTrue(1 <= number <= waiting[queue])
        taken = sum(number * sizes[queue] for queue, number in found.items())
        self.assertLessEqual(taken, limit + sum(sizes.values()))
