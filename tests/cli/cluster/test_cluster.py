"""Name servers and brokers, and requests to them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.cli.cluster.cluster import Broker, Cluster, parse_queue
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.errors import ConfigurationError, ConnectionLost, SystemBusy
from rocketbroker.testing.scripted import answer
from rocketbroker.wire.bodies.topics import KVTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.admin import DeleteTopicRequestHeader
from tests.blocking.cluster import MemoryCluster

B1 = Broker("c1", "b1", 0, "b1:10911")
B2 = Broker("c2", "b2", 0, "b2:10911")
INFO = RequestCode.GET_BROKER_RUNTIME_INFO


class ClusterTests(SynchronousTestCase):
    """Two name servers and two brokers, each in a cluster of its own."""

    def setUp(self) -> None:
        self.memory = MemoryCluster()
        self.cluster = Cluster(self.memory.client)

    def test_brokers(self) -> None:
        """All, those of a cluster, and one by name or address; asked for once."""
        self.assertEqual(self.cluster.brokers(), [B1, B2])
        self.assertEqual(self.cluster.brokers("c2"), [B2])
        self.assertEqual(self.cluster.brokers(name="b1"), [B1])
        self.assertEqual(self.cluster.one_broker("b2:10911"), B2)
        self.assertEqual(self.memory.machine.codes(), [106])
        self.cluster.info(refresh=True)
        self.assertEqual(self.memory.machine.codes(), [106, 106])

    def test_notThere(self) -> None:
        """What is not there is told with what is."""
        error = self.assertRaises(NotThere, self.cluster.brokers, "x")
        self.assertIn("there are: c1, c2", str(error))
        error = self.assertRaises(NotThere, self.cluster.brokers, None, "x")
        self.assertIn("there are: b1, b2", str(error))

    def test_masters(self) -> None:
        """Slaves are none; without any master there is nothing to do."""
        self.assertEqual(self.cluster.masters(), [B1, B2])
        info = self.cluster.info()
        info.broker_addr_table["b1"].broker_addrs[1] = "s:1"
        self.assertEqual(len(self.cluster.brokers()), 3)
        self.assertEqual(self.cluster.masters(), [B1, B2])
        del info.broker_addr_table["b1"].broker_addrs[0]
        self.assertRaises(NotThere, self.cluster.masters, "c1")

    def test_brokersOf(self) -> None:
        """A topic's brokers: each master, or the slave where there is none."""
        self.assertEqual([*self.cluster.brokers_of("T")], [B1, B2])

    def test_ask(self) -> None:
        """Header, further fields and body arrive; an answer's body is read."""
        self.memory.brokers["b1"].faults = [lambda _: answer(), lambda _: answer()]
        header = DeleteTopicRequestHeader(topic="T")
        self.cluster.ask(
            B1.address, RequestCode.GET_ALL_TOPIC_CONFIG, header, {"a": 1}, {"x": "y"}
        )
        self.cluster.ask(B1.address, RequestCode.GET_ALL_TOPIC_CONFIG, body=b"k=v")
        (_, first), (_, second) = self.memory.machine.requests
        self.assertEqual(
            (first.ext, first.body), ({"topic": "T", "x": "y"}, b'{"a":1}')
        )
        self.assertEqual((second.ext or {}, second.body), ({}, b"k=v"))
        body = b'{"table":{"a":"b"}}'
        self.memory.brokers["b1"].faults = [lambda _: answer(body=body)]
        table = self.cluster.read(B1.address, INFO, KVTable.from_json)
        self.assertEqual(table.table, {"a": "b"})
        self.memory.brokers["b1"].faults = [lambda _: answer()]
        table = self.cluster.read(B1.address, INFO, KVTable.from_json)
        self.assertEqual(table.table, {})

    def test_fromEach(self) -> None:
        """A broker that does not answer is passed over and kept; one that refuses, and
        none that answers, are errors."""

        def ask(broker: Broker) -> int:
            return self.cluster.ask(broker.address, INFO).code

        for broker in self.memory.brokers.values():
            broker.faults = [lambda _: answer()] * 3
        del self.memory.machine.servers["b1:10911"]
        self.assertEqual(self.cluster.from_each([B1, B2], ask), [(B2, 0)])
        self.assertEqual([*self.cluster.unreachable], [B1])
        self.memory.machine.servers["b1:10911"] = self.memory.brokers["b1"]
        self.assertEqual(self.cluster.from_each([B1, B2], ask), [(B2, 0)])
        self.assertRaises(ConnectionLost, self.cluster.from_each, [B1], ask)
        self.memory.brokers["b2"].faults = [lambda _: answer(2)]
        self.assertRaises(SystemBusy, self.cluster.from_each, [B1, B2], ask)
        self.assertEqual(self.cluster.from_each([], ask), [])

    def test_queue(self) -> None:
        """A queue is a broker and a number."""
        self.assertEqual(parse_queue("T", "b-1:7"), MessageQueue("T", "b-1", 7))
        for text in ("b1", "b1:", ":1", "b1:x", "b1:-1"):
            self.assertRaises(ConfigurationError, parse_queue, "T", text)
