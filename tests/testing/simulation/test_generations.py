"""Which messages can be in which generation of a topic."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.simulation.generations import (
    NEVER,
    Generations,
    Known,
    QueueView,
)
from rocketbroker.testing.simulation.operations import Message


class GenerationsTests(SynchronousTestCase):
    """One topic."""

    def setUp(self) -> None:
        """It was never deleted."""
        self.topic = Generations()
        self.serial = 0

    def sent(
        self, begin: int, end: int = NEVER, offset: int = -1, position: int = -1
    ) -> Known:
        """A message, sent at a time, and answered at another."""
        self.serial += 1
        known = Known(Message(b"%d" % self.serial), 0, begin)
        known.end, known.offset, known.position = end, offset, position
        self.topic.sent(known)
        return known

    def delete(self, begin: int, end: int, low: int) -> None:
        """A deletion."""
        self.topic.cut(begin, low, False)
        self.topic.cuts[-1].end = end

    def test_timesDecideWithoutOverlap(self) -> None:
        """What is acknowledged before a deletion is gone, what is sent after it is in
        the next generation."""
        before = self.sent(1, 2, 0, 100)
        self.delete(3, 4, 101)
        after = self.sent(5, 6, 0, 200)
        self.assertEqual([*self.topic.of(before)], [1])
        self.assertEqual([*self.topic.of(after)], [2])
        self.assertEqual([*self.topic.settle()], [])
        self.assertEqual(self.topic.queue(1, 0).settled, {0: before})
        self.assertEqual(self.topic.queue(2, 0).settled, {0: after})

    def test_overlapLeavesBoth(self) -> None:
        """A send that overlaps a deletion may be on either side, until a position
        tells: that of what certainly stands before the cut, or behind it."""
        overlaps = self.sent(2, 5, 7, 150)
        self.delete(3, 4, 101)
        self.assertEqual([*self.topic.of(overlaps)], [1, 2])
        self.assertEqual([*self.topic.settle()], [])
        self.assertEqual(self.topic.queue(1, 0).settled, {})
        self.assertTrue(self.topic.appended(6, 149))
        self.assertEqual([*self.topic.of(overlaps)], [2])
        self.topic.cuts[-1].high, self.topic.cuts[-1].low = NEVER, 151
        self.assertEqual([*self.topic.of(overlaps)], [1])

    def test_requestsFindWhatTheyOverlap(self) -> None:
        """A request may find each generation that there was while it was under way."""
        self.delete(3, 4, 0)
        self.delete(6, NEVER, 0)
        self.assertEqual([*self.topic.possible(2)], [1, 2, 3])
        self.assertEqual([*self.topic.possible(5)], [2, 3])
        self.topic.cuts[-1].end = 8
        self.assertEqual([*self.topic.possible(9)], [3])

    def test_samePlaceIsTold(self) -> None:
        """Two messages cannot be acknowledged in one place."""
        self.sent(1, 2, 0, 100)
        self.sent(1, 3, 0, 200)
        (problem,) = self.topic.settle()
        self.assertIn("at the same offset 0", problem)

    def test_limitCountsUnanswered(self) -> None:
        """A queue cannot be longer than all that was acknowledged or is under way."""
        self.sent(1, 2, 4, 100)
        self.assertEqual([*self.topic.settle()], [])
        self.sent(3)
        self.assertEqual(self.topic.limit(1, 0), 6)
        self.assertEqual(self.topic.limit(1, 1), 0)

    def test_goneGenerationsAreForgotten(self) -> None:
        """Once no request can find a generation its messages are forgotten."""
        before = self.sent(1, 2, 0, 100)
        self.assertEqual([*self.topic.settle()], [])
        self.delete(3, 4, 101)
        self.topic.forget(2)
        self.assertIn(before.message.body, self.topic.by_body)
        self.topic.forget(5)
        self.assertEqual(self.topic.by_body, {})


class QueueViewTests(SynchronousTestCase):
    """One queue of a generation."""

    def test_dueByPosition(self) -> None:
        """What stands before a position is due, in whichever order it was settled."""
        view = QueueView()
        for offset in (1, 0, 2):
            known = Known(Message(b""), 0, 1)
            known.offset, known.position = offset, 100 * offset
            self.assertTrue(view.settle(known))
        found = [view.due(position) for position in (0, 1, 101, 999)]
        self.assertEqual((found, view.end), ([0, 1, 2, 3], 3))

    def test_toldRangeOnlyGrows(self) -> None:
        """A range counts for requests that begin after it was told."""
        view = QueueView()
        view.told(5, 1, 9)
        view.told(7, 0, 10)
        self.assertEqual(view.told_before(5), (-1, 0))
        self.assertEqual(view.told_before(6), (1, 9))
        self.assertEqual(view.told_before(8), (1, 10))
