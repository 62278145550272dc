"""Signals, and tasks that end together."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.waits import Signal, Tasks, together, within
from rocketbroker.errors import RequestTimeout, SystemBusy
from rocketbroker.testing.runtime import Cancelled, MemoryRuntime


class SignalTests(SynchronousTestCase):
    """One event, many waiters."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.signal = Signal(self.runtime)

    def test_allWaitersAreWoken(self) -> None:
        """Each once; who begins to wait later waits for the next time."""
        first, second = (self.runtime.start(self.signal.wait()) for _ in range(2))
        self.runtime.settle()
        self.signal.fire()
        later = self.runtime.start(self.signal.wait())
        self.runtime.settle()
        self.assertTrue(first.value() and second.value())
        self.assertFalse(later.ended)

    def test_oneWaiterIsWoken(self) -> None:
        """The one that has waited longest; a cancelled one does not count."""
        gone, first, second = (self.runtime.start(self.signal.wait()) for _ in range(3))
        self.runtime.settle()
        gone.cancel()
        self.signal.fire_one()
        self.runtime.settle()
        self.assertEqual((first.ended, second.ended), (True, False))

    def test_timeLimitEndsTheWait(self) -> None:
        """It says whether it happened; one that happens at the same moment counts."""
        late = self.runtime.start(self.signal.wait(2.0))
        self.runtime.settle()
        self.runtime.advance(2.0)
        self.assertFalse(late.value())
        good = self.runtime.start(self.signal.wait(2.0))
        self.runtime.advance(1.0)
        self.signal.fire()
        self.runtime.settle()
        self.assertTrue(good.value())

    def test_cancelledWaiterIsForgotten(self) -> None:
        """Nothing of it is left."""
        gone = self.runtime.start(self.signal.wait(2.0))
        self.runtime.settle()
        gone.cancel()
        self.runtime.settle()
        self.assertRaises(Cancelled, gone.value)
        self.signal.fire()
        self.runtime.advance(5.0)


class TaskTests(SynchronousTestCase):
    """Tasks that belong together."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.tasks = Tasks(self.runtime)
        self.done: list[str] = []

    async def work(self, name: str, seconds: float) -> None:
        """Take some time, and say how it ended."""
        end = "cancelled"
        try:
            await self.runtime.sleep(seconds)
            end = "done"
        finally:
            self.done.append(f"{name} {end}")

    def test_endCancelsAndWaits(self) -> None:
        """Tasks that run are cancelled, and those that have not begun do not begin."""
        self.tasks.spawn(self.work("a", 5.0))
        self.runtime.settle()
        self.tasks.spawn(self.work("b", 5.0))
        self.tasks.cancel()
        self.runtime.finish(self.tasks.end())
        self.assertEqual((self.done, len(self.tasks)), (["a cancelled"], 0))
        self.tasks.spawn(self.work("c", 0.0))
        self.runtime.settle()
        self.assertEqual(self.done, ["a cancelled"])

    def test_errorOfATaskIsLogged(self) -> None:
        """The others go on."""

        async def fail() -> None:
            raise SystemBusy("now")

        self.tasks.spawn(self.work("a", 1.0))
        with self.assertLogs("rocketbroker.client", "ERROR"):
            self.tasks.spawn(fail())
            self.runtime.settle()
        self.runtime.advance(1.0)
        self.assertEqual(self.done, ["a done"])

    def test_togetherWaitsForTheSlowest(self) -> None:
        """Side by side, not one after the other; cancelled, it leaves none behind."""
        both = [self.work("a", 1.0), self.work("b", 2.0)]
        outcome = self.runtime.start(together(self.runtime, both))
        self.runtime.advance(1.9)
        self.assertFalse(outcome.ended)
        self.runtime.advance(0.1)
        outcome.value()
        gone = self.runtime.start(together(self.runtime, [self.work("c", 9.0)]))
        self.runtime.settle()
        gone.cancel()
        self.runtime.settle()
        self.assertEqual(self.done, ["a done", "b done", "c cancelled"])

    def test_withinCancelsWhatTakesTooLong(self) -> None:
        """Results and errors come through; what is late is cancelled."""

        async def quick(fails: bool) -> int:
            if fails:
                raise SystemBusy("now")
            return 5

        good = self.runtime.finish(within(self.runtime, 1.0, quick(False)))
        self.assertEqual(good, 5)
        with self.assertRaises(SystemBusy):
            self.runtime.finish(within(self.runtime, 1.0, quick(True)))
        late = self.runtime.start(within(self.runtime, 1.0, self.work("a", 2.0)))
        self.runtime.advance(1.0)
        self.assertRaises(RequestTimeout, late.value)
        self.assertEqual(self.done, ["a cancelled"])
