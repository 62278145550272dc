"""Long work in slices."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.remoting.cooperative_tasks import (
    FEW_STEPS,
    PASS_SECONDS,
    Slices,
    soon,
)
from rocketbroker.remoting.interfaces import ISlices


class SlicesTests(SynchronousTestCase):
    """Works that note their steps; each step takes some time of the clock."""

    def setUp(self) -> None:
        """No work yet."""
        self.clock = Clock()
        self.slices = Slices(self.clock)
        self.done: list[str] = []
        self.closed: list[str] = []

    def work(self, name: str, count: int, seconds: float = 0.0) -> Iterator[None]:
        """C{count} steps of so many seconds."""
        try:
            for number in range(count):
                self.clock.rightNow += seconds
                self.done.append(f"{name}{number}")
                yield
        finally:
            self.closed.append(name)

    def test_interface(self) -> None:
        """It is what responders are given."""
        verifyObject(ISlices, self.slices)

    def test_later(self) -> None:
        """No step is taken before the reactor's next round; all are taken then."""
        ended = self.slices.run(self, self.work("a", 3))
        self.assertEqual((self.done, self.slices.waiting), ([], 1))
        self.clock.advance(0)
        self.assertEqual(self.done, ["a0", "a1", "a2"])
        self.assertIsNone(self.successResultOf(ended))
        self.assertEqual((self.slices.waiting, self.slices.steps), (0, 4))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_bounded(self) -> None:
        """When a pass has had its time, what else the reactor has to do comes first."""
        self.slices.run(self, self.work("a", 5, PASS_SECONDS / 2))
        self.clock.callLater(0, self.done.append, "timer")
        self.clock.advance(0)
        self.assertEqual(self.done, ["a0", "a1", "timer", "a2", "a3", "a4"])
        self.assertEqual(self.slices.passes, 3)
        longest = self.slices.longest["work"].value(self.clock.seconds())
        self.assertEqual(longest, PASS_SECONDS)

    def test_progress(self) -> None:
        """A step that takes longer than a pass is taken, one in each pass."""
        ended = self.slices.run(self, self.work("a", 3, 10 * PASS_SECONDS))
        self.clock.advance(0)
        self.successResultOf(ended)
        self.assertEqual((self.slices.passes, self.slices.steps), (4, 4))

    def test_owners(self) -> None:
        """Owners take turns; the works of one are done one after the other."""
        first, second = object(), object()
        self.slices.run(first, self.work("a", 2))
        self.slices.run(first, self.work("b", 1))
        self.slices.run(second, self.work("c", 3))
        self.clock.advance(0)
        self.assertEqual(self.done, ["a0", "c0", "a1", "c1", "c2", "b0"])

    def test_failure(self) -> None:
        """Work that raises fails; other work goes on."""

        def wrong() -> Iterator[None]:
            yield
            raise ValueError("wrong")

        failed = self.slices.run(self, wrong())
        ended = self.slices.run(self, self.work("a", 1))
        self.clock.advance(0)
        self.failureResultOf(failed, ValueError)
        self.successResultOf(ended)

    def test_cancel(self) -> None:
        """Cancelled work is dropped at once, and closed; other work goes on."""
        dropped = self.slices.run(self, self.work("a", 5, PASS_SECONDS))
        ended = self.slices.run(self, self.work("b", 1))
        self.clock.callLater(0, dropped.cancel)
        self.clock.advance(0)
        self.failureResultOf(dropped, CancelledError)
        self.successResultOf(ended)
        self.assertEqual((self.done, self.closed), (["a0", "b0"], ["a", "b"]))

    def test_cancelledByItself(self) -> None:
        """Work whose own step cancels it ends with that step."""
        ended: list[Deferred[None]] = []

        def suicidal() -> Iterator[None]:
            self.done.append("first")
            ended[0].cancel()
            yield
            self.done.append("second")

        ended.append(self.slices.run(self, suicidal()))
        self.clock.advance(0)
        self.failureResultOf(ended[0], CancelledError)
        self.assertEqual((self.done, self.slices.waiting), (["first"], 0))

    def test_next(self) -> None:
        """What waits for a work may run the next one of the same owner."""
        ended = self.slices.run(self, self.work("a", 1))
        ended.addCallback(lambda _: self.slices.run(self, self.work("b", 1)))
        self.clock.advance(0)
        self.successResultOf(ended)
        self.assertEqual(self.done, ["a0", "b0"])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_onePass(self) -> None:
        """Work that begins when another ends asks for no pass of its own."""
        ended = self.slices.run(self, self.work("a", 0))
        ended.addCallback(lambda _: self.slices.run(self, self.work("b", 1)))
        self.slices.run(object(), self.work("c", 2, PASS_SECONDS))
        due: list[int] = []
        self.clock.callLater(0, lambda: due.append(len(self.clock.getDelayedCalls())))
        self.clock.advance(0)
        self.assertEqual((due, self.done), ([1], ["c0", "b0", "c1"]))

    def test_plainIterator(self) -> None:
        """Any iterator is work, also one that cannot be closed."""
        ended = self.slices.run(self, iter([None, None]))
        dropped = self.slices.run(self, iter([None]))
        dropped.cancel()
        self.clock.advance(0)
        self.successResultOf(ended)
        self.failureResultOf(dropped, CancelledError)

    def test_stop(self) -> None:
        """A stop drops all: nothing is called any more, and those who wait hear it."""
        first = self.slices.run(self, self.work("a", 5, PASS_SECONDS))
        second = self.slices.run(object(), self.work("b", 1))
        self.clock.callLater(0, self.slices.stop)
        self.clock.advance(0)
        self.failureResultOf(first, CancelledError)
        self.failureResultOf(second, CancelledError)
        self.assertEqual((self.done, self.closed), (["a0"], ["a"]))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_stopInStep(self) -> None:
        """A step may stop everything, its own work too."""

        def stopping() -> Iterator[None]:
            self.slices.stop()
            yield

        first = self.slices.run(self, stopping())
        second = self.slices.run(self, self.work("b", 1))
        self.clock.advance(0)
        self.failureResultOf(first, CancelledError)
        self.failureResultOf(second, CancelledError)
        self.assertEqual((self.done, self.slices.waiting), ([], 0))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_fewStepsSoon(self) -> None:
        """Work of few steps is done at once, without slices."""
        for count in (0, FEW_STEPS - 1):
            self.successResultOf(soon(self.slices, self, self.work("a", count)))
        self.assertEqual(len(self.done), FEW_STEPS - 1)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_manyStepsSoon(self) -> None:
        """Of longer work only the first steps are; the others come in slices."""
        ended = soon(self.slices, self, self.work("a", 2 * FEW_STEPS))
        self.assertEqual(len(self.done), FEW_STEPS)
        self.assertNoResult(ended)
        self.clock.advance(0)
        self.successResultOf(ended)
        self.assertEqual(len(self.done), 2 * FEW_STEPS)

    def test_failureSoon(self) -> None:
        """What one of the first steps raises, the caller gets."""

        def wrong() -> Iterator[None]:
            raise ValueError("wrong")
            yield

        with self.assertRaises(ValueError):
            soon(self.slices, self, wrong())
