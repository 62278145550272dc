"""What runs the tests: the order of its parts, what it prints, what it installs."""

from __future__ import annotations

from collections import Counter
from contextlib import redirect_stdout
from io import StringIO

from twisted.trial.unittest import SynchronousTestCase

from scripts import test as runner
from scripts.test import Outcome, Part

#: What trial prints of a part.
SAID = """\
tests.some.test_it.ItTests.test_good ... [OK]
(0.25 secs)
tests.some.test_it.ItTests.test_bad ... [FAIL]
(0.50 secs)

===============================================================================
[FAIL]
Traceback: it is bad

tests.some.test_it.ItTests.test_bad
-------------------------------------------------------------------------------
Ran 2 tests in 0.750s

FAILED (failures=1, successes=1)
"""


def part(*names: str) -> Part:
    """A part with these tests."""
    return Part("tests.some", [*names], False)


class RunnerTests(SynchronousTestCase):
    """C{scripts/test.py}."""

    def test_slowestKindsOfPartsBeginFirst(self) -> None:
        """Then nothing is left to run alone at the end."""
        unit = part("tests.store.test_lmq.LmqTests.test_a")
        integration = part("tests.integration.test_s3.S3Tests.test_a")
        heavy = part("tests.integration.test_walk.WalkTests.test_a")
        wanted = [heavy, integration, unit]
        found = sorted([unit, integration, heavy], key=lambda each: each.order)
        self.assertEqual(found, wanted)

    def test_partThatEndedHasALineWithItsCounts(self) -> None:
        """What it has said stands below, without the seconds of each test."""
        outcome, printed = Outcome(), StringIO()
        some = Part("tests.some-of-the-runner", [], False)
        some.log.write_text(SAID)
        with redirect_stdout(printed):
            outcome.add(some, 1, " in 0.9 s; 1 of 7 parts")
        first, second, *_ = printed.getvalue().splitlines()
        self.assertEqual(
            first,
            "== tests.some-of-the-runner: 1 passed, 1 failed, 0 skipped in 0.9 s; "
            "1 of 7 parts",
        )
        self.assertIn("test_good", second)
        self.assertNotIn("secs", printed.getvalue())
        self.assertEqual(outcome.counts, Counter(failures=1, successes=1))
        self.assertEqual(outcome.tests[0][0], 0.25)
        self.assertFalse(some.log.exists())

    def test_lastLineHasTheCountsAlone(self) -> None:
        """Programs read it."""
        outcome, printed = Outcome(), StringIO()
        outcome.counts.update(successes=3, skips=1)
        with redirect_stdout(printed):
            self.assertEqual(outcome.close(False), 0)
        last = printed.getvalue().splitlines()[-1]
        self.assertEqual(last, "3 passed, 0 failed, 1 skipped")

    def test_lineOfWhatStillRunsNamesPartsAndSeconds(self) -> None:
        """It comes when no part has ended for long."""
        line = runner.still_running([(part(), 10.0)], 52.4)
        self.assertEqual(line, ".. still running: tests.some (42 s)")

    def test_unitTestsInstallNoExtraOfTheOthers(self) -> None:
        """All that they need is in one extra."""
        self.assertEqual(runner.FAST_EXTRAS, "test")
        self.assertIn("integration", runner.EXTRAS.split(","))
