"""What a run covers."""

from __future__ import annotations

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.message_identity import fingerprint_at
from rocketbroker.export.planning import make_plan
from rocketbroker.export.plans import End, Lost, Mark
from rocketbroker.sources.option_values import Time
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Range
from tests.export.slow import QUEUE, WHOLE, SlowOrigin


class PlanTests(SynchronousTestCase):
    """L{make_plan}."""

    def setUp(self) -> None:
        """Messages of more than three hours."""
        self.origin = SlowOrigin({QUEUE: 20})

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

    def test_startBeforeFirst(self) -> None:
        """An offset to begin at that is gone is lost, if that is allowed, and said."""
        self.origin.first[QUEUE] = 7
        options = ReadOptions(
            name_server="n",
            topics=("T",),
            starting=((QUEUE, 2),),
            fail_on_data_loss=False,
        )
        plan = make_plan(self.origin, options, {}, 1, 9)
        assert plan is not None
        self.assertEqual(plan.ranges, (Range(QUEUE, 7, 20),))
        gone = Lost(Range(QUEUE, 2, 7), f"{QUEUE} begins at 7")
        self.assertEqual(plan.lost, (gone,))
