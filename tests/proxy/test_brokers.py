"""What is asked of brokers, and remembered."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import NoBroker, TopicNotExist
from rocketbroker.proxy.brokers import UNKNOWN
from rocketbroker.proxy.messages_pb2 import Code
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode
from tests.proxy.proxied import Proxied


class BrokersTests(SynchronousTestCase):
    """L{rocketbroker.proxy.brokers.Brokers}."""

    def setUp(self) -> None:
        """One broker."""
        self.proxied = Proxied()
        self.brokers = self.proxied.brokers

    def test_answersCountForAWhile(self) -> None:
        """Then they are asked for again."""
        kind = self.brokers.kind
        self.assertEqual(self.proxied.finish(kind("T")), "NORMAL")
        self.proxied.cluster.kinds["T"] = "FIFO"
        self.assertEqual(self.proxied.finish(kind("T")), "NORMAL")
        self.proxied.runtime.advance(20.0)
        self.assertEqual(self.proxied.finish(kind("T")), "FIFO")

    def test_typeThatCannotBeReadIsUnknown(self) -> None:
        """And is asked for again at once."""
        faults = self.proxied.broker.faults
        faults[RequestCode.GET_TOPIC_CONFIG] = [refuse(1)]
        self.assertEqual(self.proxied.finish(self.brokers.kind("T")), UNKNOWN)
        self.assertEqual(self.proxied.finish(self.brokers.kind("T")), "NORMAL")

    def test_settingsOfAGroupAreTheBrokers(self) -> None:
        """None if it has none, or cannot be asked."""
        config = SubscriptionGroupConfig(group_name="G", retry_max_times=3)
        self.proxied.cluster.group_configs["G"] = config
        group = self.brokers.group
        self.assertEqual(self.proxied.finish(group("G")), config)
        self.assertIsNone(self.proxied.finish(group("H")))

    def test_brokerIsFoundByItsName(self) -> None:
        """It registers a topic of that name."""
        self.assertEqual(self.proxied.finish(self.brokers.master("b1")), "b1:10911")
        call = self.brokers.master("b9")
        problem = self.assertRaises(Refusal, self.proxied.finish, call)
        self.assertEqual(problem.code, Code.BAD_REQUEST)
        self.assertEqual(str(problem), "cannot find broker b9")

    def test_queuesAreThoseOfTheRoute(self) -> None:
        """To be written, and brokers to be read."""
        queues = self.proxied.finish(self.brokers.writable("T"))
        self.assertEqual([one.queue_id for one in queues], [0, 1])
        found = self.proxied.finish(self.brokers.readable("T", "b9"))
        self.assertEqual(found, ("b1", "b1:10911"))
        turns = {self.brokers.turn(queues).queue_id for _ in range(2)}
        self.assertEqual(turns, {0, 1})
        self.assertRaises(NoBroker, self.brokers.turn, [])

    def test_topicThatIsNotThereIsAnError(self) -> None:
        """And one without queues is refused."""
        self.assertRaises(TopicNotExist, self.proxied.finish, self.brokers.view("U"))
        self.proxied.cluster.topics["V"] = {"b1": 0}
        for call in (self.brokers.writable("V"), self.brokers.readable("V", "b1")):
            problem = self.assertRaises(Refusal, self.proxied.finish, call)
            self.assertEqual(problem.code, Code.FORBIDDEN)
