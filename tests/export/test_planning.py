"""What a run covers."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.fingerprints import fingerprint_at
from rocketbroker.export.planning import cut_by_hour, cut_by_size, make_plan
from rocketbroker.export.plans import HOUR_MS, End, Mark
from rocketbroker.ranges.option_values import Time
from rocketbroker.ranges.options import ReadOptions
from rocketbroker.ranges.ranges import Queue, Range
from tests.ranges.messages import START_MS, stored
from tests.ranges.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)
WHOLE = Range(QUEUE, 0, 20)


class SlowOrigin(MemoryOrigin):
    """One message each ten minutes; searches by time may answer anything.

    @ivar wrong: added to what a search finds.
    """

    wrong = 0

    def ms(self, number: int) -> int:
        """When a message was stored."""
        return START_MS + number * HOUR_MS // 6

    def message(self, queue: Queue, number: int) -> bytes:
        """See L{MemoryOrigin}."""
        return stored(number, store_ms=self.ms(number))

    def offset_at(self, queue: Queue, ms: int) -> int:
        """See L{MemoryOrigin}."""
        found = [n for n in range(self.ends[queue]) if self.ms(n) >= ms]
        return (found[0] if found else self.ends[queue]) + self.wrong


class CutTests(SynchronousTestCase):
    """Cutting ranges into files."""

    def setUp(self) -> None:
        """Messages of more than three hours."""
        self.origin = SlowOrigin({QUEUE: 20})

    def hours(self) -> list[tuple[int, int]]:
        """The parts by hour, seen to follow one another."""
        parts = [part for part, _ in cut_by_hour(self.origin, WHOLE)]
        borders = [part.start for part in parts] + [parts[-1].until]
        self.assertEqual(borders, sorted(set(borders)))
        self.assertEqual((borders[0], borders[-1]), (0, 20))
        return [(part.start, part.until) for part in parts]

    def test_hours(self) -> None:
        """A part is what was stored in one hour."""
        # The first message was stored at 22:13:20.
        self.assertEqual(self.hours(), [(0, 5), (5, 11), (11, 17), (17, 20)])
        for part, _ in cut_by_hour(self.origin, WHOLE):
            hours = {
                self.origin.ms(number) // HOUR_MS
                for number in range(part.start, part.until)
            }
            self.assertEqual(len(hours), 1)

    def test_wrongSearch(self) -> None:
        """Wherever a search by time points, the parts still add up."""
        for wrong in (-1, 1, -100, 100):
            self.origin.wrong = wrong
            self.hours()

    def test_size(self) -> None:
        """A part is cut into files of about the target size."""
        size = len(stored(0, store_ms=0))
        parts = list(cut_by_size(self.origin, WHOLE, size * 6))
        self.assertEqual(
            [(part.start, part.until) for part in parts],
            [(0, 5), (5, 10), (10, 15), (15, 20)],
        )
        self.assertEqual(list(cut_by_size(self.origin, WHOLE, 10**9)), [WHOLE])

    def test_hugeMessages(self) -> None:
        """A message larger than the target has a file of its own."""
        self.assertEqual(len(list(cut_by_size(self.origin, WHOLE, 1))), 20)

    def test_plan(self) -> None:
        """A plan names the files of all parts; without messages there is none."""
        options = ReadOptions(name_server="n", topics=("T",))
        plan = make_plan(self.origin, options, {}, 1, 9)
        assert plan is not None
        self.assertEqual(plan.ranges, (WHOLE,))
        self.assertEqual(
            [file.path.split("/")[:3] for file in plan.files],
            [
                ["T", "dt=2023-11-14", "hour=22"],
                ["T", "dt=2023-11-14", "hour=23"],
                ["T", "dt=2023-11-15", "hour=00"],
                ["T", "dt=2023-11-15", "hour=01"],
            ],
        )
        self.origin.ends[QUEUE] = 0
        self.assertIsNone(make_plan(self.origin, options, {}, 1, 9))

    def test_times(self) -> None:
        """A time to begin counts for what is not exported yet, one to end always."""
        since, until = Time(self.origin.ms(4)), Time(self.origin.ms(9))
        options = ReadOptions(name_server="n", topics=("T",), starting_time=since)
        seen = fingerprint_at(self.origin, QUEUE, 2)
        ends = {QUEUE: End(3, (Mark(2, *seen),))}
        for known, time, wanted in (
            ({}, None, (4, 20)),
            ({}, until, (4, 9)),
            (ends, None, (3, 20)),
            (ends, until, (3, 9)),
        ):
            asked = attrs.evolve(options, ending_time=time)
            plan = make_plan(self.origin, asked, known, 1, 9)
            assert plan is not None
            self.assertEqual(plan.ranges, (Range(QUEUE, *wanted),))
        early = attrs.evolve(options, ending_time=Time(self.origin.ms(2)))
        self.assertIsNone(make_plan(self.origin, early, ends, 1, 9))
