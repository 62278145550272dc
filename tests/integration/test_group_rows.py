"""A group of official clients and ours, small, and how it is judged."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from scripts.torture.group_verdict import Line, Watch, counts
from tests.heavy import HEAVY
from tests.integration.scripts import run


class GroupRowsTests(SynchronousTestCase):
    """C{scripts/torture/group.py}."""

    timeout = 1800 if HEAVY else 300

    def row(self, name: str) -> None:
        """Measure one row."""
        size = () if HEAVY else ("--quick",)
        output = run("torture/group", "--inside", *size, name)
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn("\n  lost: 0 ", output.stdout)

    def test_membersShareTheQueues(self) -> None:
        """Whoever comes and goes: each queue has one owner, and nothing is lost."""
        self.row("shared")

    def test_orderIsKept(self) -> None:
        """The same in order."""
        self.row("ordered")


class WatchTests(SynchronousTestCase):
    """L{Watch}."""

    def test_twoOwnersCountUntilThereIsOne(self) -> None:
        """From the first look with two to the first with one."""
        watch = Watch(1)
        watch.see(1.0, {"a": frozenset({0}), "b": frozenset({0})})
        watch.see(3.0, {"a": frozenset(), "b": frozenset({0})})
        watch.see(9.0, {"a": frozenset(), "b": frozenset({0})})
        self.assertEqual(watch.longest, {"two owners": 2.0, "no owner": 0.0})
        self.assertTrue(watch.all_is_well)

    def test_memberThatJoinsMayOwnAnything(self) -> None:
        """So a queue is without owner only when all have been asked."""
        watch = Watch(2)
        watch.see(1.0, {"a": frozenset({0}), "b": None})
        watch.see(2.0, {"a": frozenset({0}), "b": None})
        self.assertFalse(watch.all_is_well)
        watch.see(3.0, {"a": frozenset({0}), "b": frozenset()})
        watch.see(4.0, {"a": frozenset({0}), "b": frozenset()})
        self.assertEqual(watch.longest, {"two owners": 0.0, "no owner": 1.0})

    def test_memberThatJoinsEndsNothing(self) -> None:
        """A queue without owner has none until somebody says that it has it."""
        watch = Watch(1)
        watch.see(1.0, {"a": frozenset(), "b": frozenset()})
        watch.see(2.0, {"a": frozenset(), "b": None})
        watch.see(5.0, {"a": frozenset(), "b": frozenset({0})})
        self.assertEqual(watch.longest, {"two owners": 0.0, "no owner": 4.0})


class CountsTests(SynchronousTestCase):
    """L{counts}."""

    def test_messageThatNobodyHadIsLost(self) -> None:
        """Of those that were sent; others are no matter."""
        found = counts([Line(1, 0, 0, 0), Line(2, 1, 0, 2)], 3)
        self.assertEqual(found["lost"], 1)
        self.assertEqual(found["out of order"], 0)

    def test_queueMayGoBackButNotAhead(self) -> None:
        """Two members with one queue at once are seen by what comes after."""
        again = [Line(at, 0, offset, offset) for at, offset in enumerate((0, 1, 0, 1))]
        found = counts(again, 2)
        self.assertEqual(found["out of order"], 0)
        self.assertEqual(found["handled again"], 2)
        both = [Line(at, 0, n, n) for at, n in enumerate((0, 1, 2, 1, 3, 2))]
        self.assertEqual(counts(both, 4)["out of order"], 1)
