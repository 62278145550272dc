"""A stream of sends, on the memory runtime."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    ClientClosed,
    ConfigurationError,
    ConnectionLost,
    MessageIllegal,
)
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.puppet_cluster import hang_up, refuse, silent
from rocketbroker.testing.runtime import Outcome
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster

SEND = RequestCode.SEND_MESSAGE_V2


class SendStreamTests(SynchronousTestCase):
    """C{send_all}, to a topic of one queue."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1")
        self.here.cluster.topics["T"] = {"b1": 1}
        self.runtime = self.here.runtime
        self.mq = self.here.session()
        self.taken = 0
        self.results: list[SendResult] = []

    def messages(
        self, count: int, end: Callable[[], Message] | None = None
    ) -> Iterator[Message]:
        """Messages, of which it is counted how many were taken.

        @param end: gives the last of them.
        """
        for number in range(count):
            self.taken += 1
            yield Message("T", str(number))
        if end is not None:
            yield end()

    def send(self, messages: Iterator[Message], **options: Any) -> Outcome[None]:
        """Send them, and keep the results."""

        async def read() -> None:
            async for result in self.mq.send_all(messages, **options):
                self.results.append(result)

        return self.runtime.start(read())

    def bodies(self) -> list[int]:
        """What is stored, in its order."""
        return [int(message.body) for message in self.here.broker().stored("T")]

    def test_orderIsKept(self) -> None:
        """Of what is stored, and of results."""
        sending = self.send(self.messages(300))
        self.runtime.settle()
        sending.value()
        self.assertEqual(self.bodies(), [*range(300)])
        offsets = [result.queue_offset for result in self.results]
        self.assertEqual(offsets, [*range(300)])

    def test_noMoreThanTheWindowAreTaken(self) -> None:
        """The source may be endless."""
        self.here.broker().faults[SEND] = [silent] * 9
        self.send(self.messages(1000), in_flight=3)
        self.runtime.settle()
        self.assertEqual((self.taken, self.results), (3, []))

    def test_readerThatRestsStopsTheSource(self) -> None:
        """Results that nobody has taken count, too."""
        results = self.mq.send_all(self.messages(1000), in_flight=4)
        for _ in range(5):
            self.runtime.finish(results.__anext__())
        self.assertLessEqual(self.taken, 8)

    def test_brokenConnectionIsRiddenOver(self) -> None:
        """Each message is sent again by itself, and its result stands at its place."""
        self.here.broker().faults[SEND] = [lambda _: None, hang_up]
        sending = self.send(self.messages(5))
        self.here.until(sending)
        self.assertEqual(len(self.results), 5)
        self.assertEqual({*self.bodies()}, {*range(5)})

    def test_failureComesAfterTheResultsBefore(self) -> None:
        """So it is known what is stored; then it is over."""
        self.here.broker().faults[SEND] = [lambda _: None, refuse(13)]
        stream = self.mq.send_all(self.messages(1000), in_flight=4)
        self.runtime.finish(stream.__anext__())
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(stream.__anext__())
        with self.assertRaises(StopAsyncIteration):
            self.runtime.finish(stream.__anext__())
        self.assertLess(self.taken, 9)

    def test_sourceThatFailsFailsAfterWhatItGave(self) -> None:
        """The messages before are stored, with their results."""

        def fail() -> Message:
            raise ValueError("no more")

        sending = self.send(self.messages(70, fail))
        self.runtime.settle()
        self.assertRaises(ValueError, sending.value)
        self.assertEqual((self.bodies(), len(self.results)), ([*range(70)], 70))

    def test_messageThatCannotBeSentEndsIt(self) -> None:
        """What is none, and what goes elsewhere."""
        wrong: list[Any] = ["a text", Message("T", b"")]
        while wrong:
            self.results.clear()
            sending = self.send(self.messages(3, wrong.pop))
            self.runtime.settle()
            self.assertRaises(MessageIllegal, sending.value)
            self.assertEqual(len(self.results), 3)
        elsewhere = MessageQueue("U", "b1", 0)
        sending = self.send(self.messages(3), queue=elsewhere)
        self.runtime.settle()
        self.assertRaises(MessageIllegal, sending.value)

    def test_wrongArgumentsAreRefusedAtOnce(self) -> None:
        """Before a message is taken."""
        wrong: list[dict[str, Any]] = [
            {"in_flight": 0},
            {"in_flight": "5"},
            {"timeout": "5"},
            {"patience": -1},
        ]
        for options in wrong:
            with self.assertRaises(ConfigurationError):
                self.mq.send_all(self.messages(1), **options)
        self.assertEqual(self.taken, 0)

    def test_closedSessionEndsIt(self) -> None:
        """What waits says so."""
        self.here.broker().faults[SEND] = [silent] * 9
        sending = self.send(self.messages(3))
        self.runtime.settle()
        self.runtime.finish(self.mq.close())
        self.here.wait(lambda: sending.ended)
        self.assertRaises(ClientClosed, sending.value)


class PatienceTests(SynchronousTestCase):
    """C{patience} of one send."""

    def setUp(self) -> None:
        self.here = ClientCluster()
        self.runtime = self.here.runtime
        self.mq = self.here.session()

    def passed(self, **options: Any) -> float:
        """How long a send takes that finds nobody."""
        self.runtime.finish(self.mq.send("T", "before"))
        for broker in ("b1", "b2"):
            self.here.cluster.stop(broker)
        sending = self.runtime.start(self.mq.send("T", "x", **options))
        passed = self.here.wait(lambda: sending.ended)
        self.assertRaises(ConnectionLost, sending.value)
        return passed

    def test_zeroIsOneTry(self) -> None:
        """It fails at once."""
        self.assertEqual(self.passed(patience=0), 0.0)

    def test_triesEndWithIt(self) -> None:
        """Or with the timeout, whichever is sooner."""
        self.assertLess(self.passed(patience=1.0), 1.1)

    def test_timeoutEndsItSooner(self) -> None:
        """All tries together take no longer."""
        self.assertLess(self.passed(patience=50.0, timeout=1.0), 1.1)

    def test_slowAnswerHasTheTimeOfARequest(self) -> None:
        """The last try is not cut short."""
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[SEND] = [silent]
        sending = self.runtime.start(self.mq.send("T", "x", patience=0.1))
        passed = self.here.wait(lambda: sending.ended)
        self.assertGreaterEqual(passed, self.here.settings.seconds - 0.1)

    def test_otherBrokerIsTriedMeanwhile(self) -> None:
        """It is time for another try."""
        for broker in ("b1", "b2"):
            self.here.broker(broker).faults[SEND] = [hang_up]
        sending = self.runtime.start(self.mq.send("T", "x", patience=0.4))
        self.assertEqual(self.here.until(sending).status, 0)

    def test_batchTakesItToo(self) -> None:
        """Its request fails at once."""
        self.here.cluster.stop("b1")
        self.here.cluster.stop("b2")
        with self.assertRaises(ConnectionLost):
            self.runtime.finish(self.mq.send_batch([Message("T", "x")], patience=0))

    def test_messageWithItIsNotGathered(self) -> None:
        """It goes at once, and alone."""
        mq = self.here.session(accumulate=True)
        self.runtime.finish(mq.send("T", "x", patience=1.0))
        self.assertIn(SEND, self.runtime.codes())
