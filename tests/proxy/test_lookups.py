"""What brokers say by name, remembered."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.runtime import Future
from rocketbroker.errors import ConnectionLost
from rocketbroker.proxy.lookups import LookupLimits, Lookups
from rocketbroker.testing.runtime import MemoryRuntime


class LookupsTests(SynchronousTestCase):
    """L{Lookups}: asked again after 20 seconds, gone after 300, two at the most."""

    def setUp(self) -> None:
        """A broker that says what it is told to."""
        self.runtime = MemoryRuntime()
        self.said: str | None = "old"
        self.slow: Future[None] | None = None
        limits = LookupLimits(refresh_seconds=20.0, expired_seconds=300.0, max_number=2)
        self.lookups = Lookups(self.runtime, self.ask, limits)

    async def ask(self, name: str) -> str:
        """Answer, now or later, or be away."""
        if self.slow is not None:
            await self.slow
        if self.said is None:
            raise ConnectionLost("it is away")
        return f"{name}: {self.said}"

    def get(self, name: str = "a") -> str:
        """What is said of a name."""
        found: str = self.runtime.finish(self.lookups.get(name))
        return found

    def test_answerCountsUntilItIsRefreshed(self) -> None:
        """No call asks in between; the first one after that has the new answer."""
        for _ in range(3):
            self.assertEqual(self.get(), "a: old")
        self.said = "new"
        self.runtime.advance(19.9)
        self.assertEqual((self.get(), self.lookups.asked), ("a: old", 1))
        self.runtime.advance(0.1)
        self.assertEqual((self.get(), self.lookups.asked), ("a: new", 2))

    def test_callsThatWaitShareAQuestion(self) -> None:
        """One that goes away leaves it to the others."""
        self.slow = self.runtime.future()
        calls = [self.runtime.start(self.lookups.get("a")) for _ in range(3)]
        self.runtime.settle()
        calls[0].cancel()
        self.runtime.settle()
        self.slow.set_result(None)
        self.runtime.settle()
        self.assertEqual([call.value() for call in calls[1:]], ["a: old"] * 2)
        self.assertEqual(self.lookups.asked, 1)

    def test_oldAnswerCountsWhileNobodyAnswers(self) -> None:
        """Until it expires; brokers are asked once in the time of a refresh."""
        self.get()
        self.said = None
        for second in range(20, 300, 10):
            self.runtime.advance(20.0 if second == 20 else 10.0)
            self.assertEqual(self.get(), "a: old")
        self.assertEqual(self.lookups.asked, 1 + 14)
        self.runtime.advance(20.0)
        self.assertRaises(ConnectionLost, self.get)
        self.said = "back"
        self.assertEqual(self.get(), "a: back")

    def test_failureIsNotRemembered(self) -> None:
        """The next call asks again."""
        self.said = None
        self.assertRaises(ConnectionLost, self.get)
        self.said = "here"
        self.assertEqual(self.get(), "a: here")

    def test_oldestGoesWhenThereAreTooMany(self) -> None:
        """The third name takes the place of the first."""
        for name in "abc":
            self.get(name)
        self.assertEqual(len(self.lookups), 2)
        self.get("c")
        self.assertEqual(self.lookups.asked, 3)
        self.get("a")
        self.assertEqual(self.lookups.asked, 4)
