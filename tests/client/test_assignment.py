"""Members whose queues brokers assign."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.consumer import Consumer
from rocketbroker.client.observers import Outcome
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.errors import ClientClosed, ConfigurationError
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.wire.codes import RequestCode
from tests.client.cluster import ClientCluster
from tests.client.diary import Diary


class AssignmentTests(SynchronousTestCase):
    """Two brokers with two queues each."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1", "b2")
        self.runtime = self.here.runtime
        self.modes: dict[str, str] = {}
        self.here.cluster.modes = self.modes

    def started(self, **settings: Any) -> Consumer:
        """A member that asks brokers."""
        return self.here.started(assignment="broker", **settings)

    def count(self, consumer: Consumer) -> int:
        """How many queues of the topic a member pulls."""
        return sum(queue.topic == "T" for queue in consumer.queues)

    def switch(self, mode: str) -> None:
        """An operator says how the group reads."""
        self.modes["T"] = mode
        self.runtime.advance(25.0)

    def wanted(self) -> set[str]:
        """The topics of the last heartbeat."""
        last = self.here.broker().heartbeats[-1]
        (data,) = last.consumer_data_set
        return {one.topic for one in data.subscription_data_set}

    def test_membersHaveWhatTheBrokerSays(self) -> None:
        """Nobody asks for the list of members."""
        consumers = [self.started() for _ in range(2)]
        self.here.wait(lambda: [self.count(one) for one in consumers] == [2, 2])
        shares = [set(one.queues) for one in consumers]
        self.assertEqual(shares[0] & shares[1], set())
        codes = set(self.runtime.codes())
        self.assertNotIn(RequestCode.GET_CONSUMER_LIST_BY_GROUP, codes)
        self.assertIn(RequestCode.QUERY_ASSIGNMENT, codes)

    def test_brokerThatCannotSayItChangesNothing(self) -> None:
        """Nor does one that refuses."""
        consumer = self.started()
        self.assertEqual(self.count(consumer), 4)
        for broker in ("b1", "b2"):
            code = RequestCode.QUERY_ASSIGNMENT
            self.here.broker(broker).faults[code] = [refuse(1)] * 9
        self.runtime.advance(60.0)
        self.assertEqual(self.count(consumer), 4)

    def test_olderBrokersLeaveItToTheMembers(self) -> None:
        """They do not know the request."""
        self.here.cluster.modes = None
        consumers = [self.started() for _ in range(2)]
        self.here.wait(lambda: [self.count(one) for one in consumers] == [2, 2])

    def test_topicThatComesLaterIsReadAsTheBrokerSays(self) -> None:
        """Also if it is to be popped: nothing is pulled before that is known."""
        self.modes["T"] = "POP"
        queues = self.here.cluster.topics.pop("T")
        consumer = self.started()
        self.runtime.advance(3.0)
        self.here.cluster.topics["T"] = queues
        self.here.put("a")
        self.here.wait(lambda: RequestCode.POP_MESSAGE in self.runtime.codes())
        self.assertEqual(self.here.texts(consumer), ["a"])
        self.assertEqual(self.count(consumer), 0)

    def test_poppedMessageIsAcknowledgedByItself(self) -> None:
        """Another one rests; a third is a dead letter."""
        self.modes["T"] = "POP"
        consumer = self.started()
        self.here.put("a", "b", "c")
        one, two, three = self.here.all_of(consumer)
        self.assertEqual((one.topic, one.queue.broker), ("T", "b1"))
        self.runtime.finish(one.ack())
        self.runtime.finish(two.retry())
        self.runtime.finish(three.dead_letter())
        self.assertEqual(len(self.here.broker().acks), 2)
        self.assertEqual(len(self.here.broker().stored("%DLQ%G")), 1)
        self.assertEqual(self.here.all_of(consumer), [])
        self.runtime.advance(11.0)
        self.assertEqual(self.here.texts(consumer), ["b"])

    def test_messageThatWaitedTooLongIsLeftAlone(self) -> None:
        """The broker has given it to another member."""
        self.modes["T"] = "POP"
        consumer = self.started(invisible_seconds=30.0)
        self.here.put("a")
        self.runtime.settle()
        self.here.broker().faults[RequestCode.POP_MESSAGE] = [refuse(2)] * 99
        self.runtime.advance(31.0)
        self.assertEqual(self.here.texts(consumer), [])

    def test_modeMayChangeWhileMembersAreThere(self) -> None:
        """From pull to pop and back; what was retried by pop is read afterwards."""
        self.here.cluster.topics["%RETRY%G_T"] = {"b1": 1}
        consumer = self.started()
        self.here.put("a")
        pulled = self.here.take(consumer)
        self.runtime.finish(pulled.ack())
        self.here.broker().acks.add(("T", 0, 0))
        self.here.wait(lambda: "%RETRY%G_T" in self.wanted())
        self.switch("POP")
        self.assertEqual(self.count(consumer), 0)
        self.assertEqual(self.wanted(), {"T", "%RETRY%G"})
        self.assertEqual({one.topic for one in consumer.queues}, {"%RETRY%G"})
        self.assertEqual(self.here.broker().offsets["G", "T", 0], 1)
        pops = self.runtime.codes().count(RequestCode.POP_MESSAGE)
        self.assertGreater(pops, 0)
        self.switch("PULL")
        self.here.wait(lambda: "%RETRY%G_T" in {one.topic for one in consumer.queues})
        self.assertEqual(self.count(consumer), 4)
        self.here.broker().put("%RETRY%G_T", 0, b"r", reconsume_times=1)
        again = self.here.take(consumer)
        self.assertEqual((again.topic, again.attempt), ("T", 2))
        self.runtime.advance(60.0)
        later = self.runtime.codes()[-20:]
        self.assertNotIn(RequestCode.POP_MESSAGE, later)

    def test_observersAreToldOnceOfWhatIsPopped(self) -> None:
        """By the consumer; what it has in hand at the end has failed."""
        diary = Diary()
        self.here = ClientCluster("b1", observers=[diary])
        self.runtime = self.here.runtime
        self.here.cluster.modes = {"T": "POP"}
        consumer = self.started()
        self.here.put("a", "b")
        first, _ = self.here.all_of(consumer)
        self.runtime.finish(first.ack())
        self.assertEqual(diary.begun, ["T", "T"])
        assert consumer.handlings is not None
        self.assertEqual(diary.consumers, [consumer.handlings])
        self.runtime.finish(consumer.close())
        outcomes = [("a", Outcome.ACKNOWLEDGED), ("b", Outcome.FAILED)]
        self.assertEqual(diary.outcomes, outcomes)
        self.assertEqual((consumer.received, diary.consumers), (2, []))

    def test_closedConsumerAcknowledgesNothing(self) -> None:
        """What it has popped is given out again."""
        self.modes["T"] = "POP"
        consumer = self.started()
        self.here.put("a")
        message = self.here.take(consumer)
        self.runtime.finish(consumer.stop_reading())
        self.runtime.finish(consumer.close())
        with self.assertRaises(ClientClosed):
            self.runtime.finish(message.ack())
        self.assertEqual(self.runtime.links, [])

    def test_settingsThatBrokersCannotServeAreRefused(self) -> None:
        """They know two strategies, and nothing of order."""
        wrong: list[dict[str, Any]] = [
            {"ordered": True},
            {"broadcast": True},
            {"mode": "pop"},
            {"strategy": "CONSISTENT_HASH"},
            {"strategy": lambda queues, members, me: queues},
            {"assignment": "x"},
        ]
        for settings in wrong:
            with self.assertRaises(ConfigurationError):
                ConsumerSettings(**{"group": "G", "assignment": "broker", **settings})
