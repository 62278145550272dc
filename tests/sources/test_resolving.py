"""From options to ranges."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError, TopicNotExist
from rocketbroker.sources.option_values import (
    BeforeLatest,
    GroupOffsets,
    Time,
)
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.resolving import resolve, wanted_queues
from rocketbroker.sources.source import DataLoss
from tests.sources.messages import START_MS
from tests.sources.origins import MemoryOrigin

ZERO, ONE = Queue("T", "b", 0), Queue("T", "b", 1)


class PlanningTests(SynchronousTestCase):
    """L{resolve}."""

    def setUp(self) -> None:
        """Two queues, of the first the oldest messages are gone."""
        self.origin = MemoryOrigin({ONE: 5, ZERO: 20})
        self.origin.first[ZERO] = 10

    def pairs(self, **words: object) -> list[tuple[int, int]]:
        """Start and end of the two queues."""
        options = ReadOptions(topics=("T",), **words)  # type: ignore[arg-type]
        found = resolve(self.origin, options, START_MS + 1000)
        self.assertEqual([each.queue for each in found], [ZERO, ONE])
        return [(each.start, each.until) for each in found]

    def test_all(self) -> None:
        """All there is, unless said otherwise."""
        self.assertEqual(self.pairs(), [(10, 20), (0, 5)])

    def test_latest(self) -> None:
        """From the end on there is nothing in a batch."""
        self.assertEqual(self.pairs(starting="latest"), [(20, 20), (5, 5)])

    def test_named(self) -> None:
        """Offsets given by name; a queue that is not named is read whole."""
        self.assertEqual(
            self.pairs(starting=((ZERO, 12),), ending=((ONE, 3),)),
            [(12, 20), (0, 3)],
        )

    def test_times(self) -> None:
        """Times beat offsets, and are half-open."""
        first = self.pairs(ending_time=Time(START_MS + 15), starting="latest")
        self.assertEqual(first, [(20, 20), (5, 5)])
        early = self.pairs(ending_time=Time(START_MS + 14))
        late = self.pairs(starting_time=Time(START_MS + 14))
        self.assertEqual(early, [(10, 13), (0, 5)])
        self.assertEqual(late, [(13, 20), (5, 5)])

    def test_relativeTime(self) -> None:
        """A time span counts back from now."""
        found = self.pairs(starting_time=Time(-986, relative=True))
        self.assertEqual(found, [(13, 20), (5, 5)])

    def test_gone(self) -> None:
        """Offsets before the first one are data loss."""
        named = ((ZERO, 4),)
        error = self.assertRaises(DataLoss, self.pairs, starting=named)
        self.assertEqual(
            str(error),
            "queue 0 of T on b begins at 10: the messages from 4 on are gone",
        )
        found = self.pairs(starting=named, fail_on_data_loss=False)
        self.assertEqual(found, [(10, 20), (0, 5)])

    def test_beyond(self) -> None:
        """Offsets beyond the end mean that the topic is another one."""
        for words in (
            {"starting": ((ONE, 9),)},
            {"ending": ((ONE, 9),)},
        ):
            error = self.assertRaises(DataLoss, self.pairs, **words)
            self.assertIn("queue 1 of T on b ends at 5, before 9", str(error))
            self.pairs(**words, fail_on_data_loss=False)

    def test_lost(self) -> None:
        """What is gone is listed, if somebody wants to know."""
        options = ReadOptions(
            topics=("T",), starting=((ZERO, 4),), fail_on_data_loss=False
        )
        lost: list[Range] = []
        resolve(self.origin, options, START_MS, lost)
        self.assertEqual(lost, [Range(ZERO, 4, 10)])

    def test_beforeLatest(self) -> None:
        """So many messages of each queue, if there are."""
        self.assertEqual(self.pairs(starting=BeforeLatest(7)), [(13, 20), (0, 5)])

    def test_group(self) -> None:
        """Where a group goes on; a queue of which it has nothing is read whole."""
        self.origin.groups["G", ZERO] = 15
        words = {"starting": GroupOffsets("G")}
        self.assertEqual(self.pairs(**words), [(15, 20), (0, 5)])
        late = self.pairs(**words, missing_queues="latest")
        self.assertEqual(late, [(15, 20), (5, 5)])
        self.origin.groups["G", ZERO] = 4
        error = self.assertRaises(DataLoss, self.pairs, **words)
        self.assertIn("begins at 10: the messages from 4 on are gone", str(error))

    def test_missing(self) -> None:
        """A queue that is not named may also begin at its end."""
        found = self.pairs(starting=((ZERO, 12),), missing_queues="latest")
        self.assertEqual(found, [(12, 20), (5, 5)])

    def test_queueTimes(self) -> None:
        """Times by queue go before offsets, and a common time before them."""
        times = ((ZERO, Time(START_MS + 14)),)
        words = {"starting_times": times, "starting": "latest"}
        self.assertEqual(self.pairs(**words), [(13, 20), (0, 5)])
        self.assertEqual(self.pairs(ending_times=times), [(10, 13), (0, 5)])
        common = self.pairs(**words, starting_time=Time(START_MS + 3))
        self.assertEqual(common, [(10, 20), (2, 5)])

    def test_noSuchTime(self) -> None:
        """A queue without a message of that time or later begins where it is told."""
        late = {"starting_time": Time(START_MS + 14)}
        found = self.pairs(**late, starting_strategy="earliest")
        self.assertEqual(found, [(13, 20), (0, 5)])
        error = self.assertRaises(
            ConfigurationError, self.pairs, **late, starting_strategy="error"
        )
        self.assertIn("queue 1 of T on b has no message stored at", str(error))
        self.assertRaises(
            ConfigurationError,
            self.pairs,
            ending_time=Time(START_MS + 14),
            ending_strategy="error",
        )

    def test_names(self) -> None:
        """A broker or queue that does not exist is refused with what there is."""
        for queue, sentence in {
            Queue("T", "b", 7): "names queue 7 of T on b, which has queues 0, 1",
            Queue("T", "x", 0): "names broker 'x' of T, which is on b",
            Queue("U", "b", 0): "names topic 'U', which is not read",
        }.items():
            for words in (
                {"starting": ((queue, 1),)},
                {"ending": ((queue, 1),)},
                {"starting_times": ((queue, Time(1)),)},
                {"ending_times": ((queue, Time(1)),)},
            ):
                error = self.assertRaises(ConfigurationError, self.pairs, **words)
                self.assertIn(sentence, str(error))
        # A stream asks again while it runs, and must outlive a queue.
        options = ReadOptions(topics=("T",), starting=((Queue("T", "b", 7), 1),))
        self.assertEqual(wanted_queues(self.origin, options), [ZERO, ONE])

    def test_assigned(self) -> None:
        """Only the queues that are named are read, and they must exist."""
        found = resolve(self.origin, ReadOptions(assigned=(ONE,)), START_MS)
        self.assertEqual(found, [Range(ONE, 0, 5)])
        options = ReadOptions(assigned=(ONE, Queue("T", "b", 2)))
        error = self.assertRaises(
            ConfigurationError, resolve, self.origin, options, START_MS
        )
        self.assertIn("assign names queue 2 of T on b", str(error))

    def test_pattern(self) -> None:
        """Whole names match; topics of groups only if they are meant."""
        retry = Queue("%RETRY%T", "b", 0)
        self.origin = MemoryOrigin({ZERO: 1, Queue("TT", "b", 0): 2, retry: 3})
        for pattern, topics in {
            "T": ["T"],
            ".*": ["T", "TT"],
            "%.*": ["%RETRY%T"],
        }.items():
            found = resolve(self.origin, ReadOptions(pattern=pattern), START_MS)
            self.assertEqual([each.queue.topic for each in found], topics)
        error = self.assertRaises(
            TopicNotExist, resolve, self.origin, ReadOptions(pattern="x"), START_MS
        )
        self.assertEqual(str(error), "no topic matches 'x'")
