"""Which queue the next message goes to."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.queue_choice import QueueChoice, avoided_seconds
from rocketbroker.routing.topic_view import MessageQueue

QUEUES = [MessageQueue("T", broker, n) for broker in ("b1", "b2") for n in range(2)]


class QueueChoiceTests(SynchronousTestCase):
    """Turns, failures, latency."""

    def names(self, choice: QueueChoice, count: int, now: float = 0.0) -> list[str]:
        """The brokers of the next queues."""
        return [choice.next(QUEUES, None, now).broker for _ in range(count)]

    def test_queuesComeInTurn(self) -> None:
        """From where the producer was told to begin."""
        choice = QueueChoice(first=5)
        found = [choice.next(QUEUES, None, 0.0) for _ in range(5)]
        self.assertEqual(found, [QUEUES[n] for n in (2, 3, 0, 1, 2)])

    def test_brokerThatFailedIsAvoided(self) -> None:
        """If there is another one."""
        choice = QueueChoice()
        for _ in range(5):
            self.assertEqual(choice.next(QUEUES, "b1", 0.0).broker, "b2")
        self.assertEqual(choice.next(QUEUES[:2], "b1", 0.0).broker, "b1")

    def test_slowBrokerIsAvoidedForAWhile(self) -> None:
        """As long as RocketMQ's table says; a shorter time does not replace it."""
        choice = QueueChoice(avoid_slow=True)
        choice.report("b1", 3.5, False, 0.0)
        choice.report("b1", 0.6, False, 1.0)
        self.assertEqual(self.names(choice, 3, 5.9), ["b2"] * 3)
        self.assertEqual({*self.names(choice, 4, 6.0)}, {"b1", "b2"})

    def test_failedBrokerIsTheLastChoice(self) -> None:
        """Of two that are avoided, the one that has only been slow."""
        choice = QueueChoice(avoid_slow=True)
        choice.report("b1", 0.1, True, 0.0)
        choice.report("b2", 20.0, False, 0.0)
        self.assertEqual(self.names(choice, 3, 1.0), ["b2"] * 3)
        choice.report("b2", 0.1, True, 1.0)
        self.assertEqual({*self.names(choice, 4, 1.0)}, {"b1", "b2"})

    def test_latencyDoesNotCountUnlessAskedFor(self) -> None:
        """Without fault tolerance the turn is all."""
        choice = QueueChoice()
        choice.report("b1", 20.0, True, 0.0)
        self.assertEqual({*self.names(choice, 4)}, {"b1", "b2"})

    def test_tableIsRocketmqs(self) -> None:
        """docs/facts/client.md 4.4."""
        took = (0.0, 0.1, 0.55, 1.8, 3.0, 5.0, 10.0, 15.0)
        self.assertEqual(
            [avoided_seconds(each) for each in took], [0, 0, 2, 5, 6, 10, 10, 30]
        )
