"""Tests of L{rocketbroker.broker.waiting_requests}."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.waiting_requests import WaitingRequests
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import SystemBusy
from rocketbroker.remoting.cooperative_tasks import PASS_SECONDS, Slices
from rocketbroker.testing.threads import Threads, at_once
from rocketbroker.wire.codes import RequestCode, ResponseCode
from tests.broker.rig import Rig

KEY = "waitTimeMillsInPullQueue"


def waiting(clock: Clock, **settings: str) -> WaitingRequests:
    """Pulls that wait."""
    made = BrokerSettings.from_properties(settings)
    return WaitingRequests(clock, made, RequestCode.PULL_MESSAGE)


class ThreadTests(SynchronousTestCase):
    """Requests that wait for threads."""

    def setUp(self) -> None:
        """Threads that a test steps."""
        self.clock = Clock()
        self.threads = Threads()
        self.waiting = waiting(self.clock)
        self.in_thread = self.waiting.before_threads(self.threads)
        self.done: list[int] = []

    def test_inTime(self) -> None:
        """What a thread comes to in time is run, whatever becomes of it."""
        good = self.in_thread(lambda: 7)
        bad = self.in_thread(lambda: int("x"))
        self.clock.advance(4.99)
        self.threads.run()
        self.assertEqual(self.successResultOf(good), 7)
        self.failureResultOf(bad, ValueError)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_tooLate(self) -> None:
        """What waits longer is refused, and never run; younger work is."""
        old = self.in_thread(lambda: self.done.append(1))
        self.clock.advance(1.0)
        young = self.in_thread(lambda: self.done.append(2))
        self.assertEqual(len(self.clock.getDelayedCalls()), 1)
        self.clock.advance(3.99)
        self.assertNoResult(old)
        self.clock.advance(0.01)
        error = self.failureResultOf(old, SystemBusy).value
        self.assertEqual(error.code, ResponseCode.SYSTEM_BUSY)
        self.assertEqual(
            error.remark,
            "[TIMEOUT_CLEAN_QUEUE]broker busy, start flow control for a while, "
            "period in queue: 5000ms, size of queue: 1, slow stage: threads",
        )
        self.assertEqual(self.waiting.refused, 1)
        self.clock.advance(0.5)
        self.threads.run()
        self.assertEqual(self.done, [2])
        self.successResultOf(young)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_begun(self) -> None:
        """What has begun takes as long as it takes."""

        def slow() -> int:
            self.clock.advance(60)
            return 7

        done = self.in_thread(slow)
        self.threads.run()
        self.assertEqual(self.successResultOf(done), 7)
        self.assertEqual(self.waiting.refused, 0)

    def test_sizes(self) -> None:
        """How many wait, and how long the first of them has: one that has begun does
        not wait."""
        self.assertEqual((self.waiting.size(), self.waiting.waiting_ms()), (0, 0))
        seen = []

        def look() -> None:
            seen.append((self.waiting.size(), self.waiting.waiting_ms()))

        self.in_thread(look)
        self.clock.advance(2)
        self.in_thread(lambda: None)
        self.clock.advance(0.5)
        self.assertEqual((self.waiting.size(), self.waiting.waiting_ms()), (2, 2500))
        self.threads.run()
        self.assertEqual(seen, [(1, 500)])
        self.assertEqual((self.waiting.size(), self.waiting.waiting_ms()), (0, 0))

    def test_atOnce(self) -> None:
        """Work that is done at once leaves nothing behind."""
        done = self.waiting.before_threads(at_once)(lambda: 7)
        self.assertEqual(self.successResultOf(done), 7)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_settings(self) -> None:
        """The limit is that of its family, and a setting."""
        in_thread = waiting(self.clock, **{KEY: "300"}).before_threads(self.threads)
        done = in_thread(lambda: 7)
        self.clock.advance(0.3)
        self.failureResultOf(done, SystemBusy)
        off = waiting(self.clock, brokerFastFailureEnable="false")
        done = off.before_threads(self.threads)(lambda: 7)
        self.clock.advance(1000)
        self.assertNoResult(done)
        self.assertEqual(self.clock.getDelayedCalls(), [])


class SliceTests(SynchronousTestCase):
    """Requests that wait for slices."""

    def setUp(self) -> None:
        """Slices, each of whose steps takes a pass."""
        self.clock = Clock()
        self.waiting = waiting(self.clock, **{KEY: "100"})
        self.slices = Slices(self.clock)
        self.limited = self.waiting.before_slices(self.slices)
        self.steps: list[str] = []

    def work(self, name: str, count: int) -> Iterator[None]:
        """Some steps."""
        for _ in range(count):
            self.steps.append(name)
            self.clock.rightNow += PASS_SECONDS
            yield

    def test_tooLate(self) -> None:
        """A work whose turn does not come in time takes no step; one that has begun
        goes on."""
        long = self.limited.run("me", self.work("a", 50))
        late = self.limited.run("me", self.work("b", 1))
        self.clock.advance(0)
        error = self.failureResultOf(late, SystemBusy).value
        self.assertIn("slow stage: slices", error.remark)
        self.successResultOf(long)
        self.assertEqual(self.steps, ["a"] * 50)
        self.assertEqual(self.slices.waiting, 0)
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_name(self) -> None:
        """Metrics show the work by its own name."""
        self.limited.run("me", self.work("a", 1))
        self.clock.pump([0.0] * 3)
        self.assertIn("work", self.slices.longest)

    def test_stop(self) -> None:
        """Work that is dropped because the server stops leaves nothing behind."""
        done = self.limited.run("me", self.work("a", 1))
        self.limited.stop()
        self.failureResultOf(done)
        self.assertEqual(self.clock.getDelayedCalls(), [])


class BrokerTests(SynchronousTestCase):
    """The families of a whole broker."""

    def test_administrators(self) -> None:
        """An administrator's request that no thread comes to is refused after five
        seconds; a query of messages waits."""
        rig = Rig({}, threads=True)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        asked = rig.begin(RequestCode.GET_BROKER_RUNTIME_INFO, {})
        viewed = rig.begin(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": "0"})
        rig.clock.advance(5.0)
        assert isinstance(asked, Deferred)
        assert isinstance(viewed, Deferred)
        self.failureResultOf(asked, SystemBusy)
        self.assertNoResult(viewed)
        self.assertEqual(rig.broker.context.administrators.refused, 1)
        rig.threads.run()
        self.failureResultOf(viewed)
