"""What a client asks about topics and queues."""

from __future__ import annotations

import pickle

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    NoPermission,
    RemoteProtocolError,
    RequestTimeout,
    SystemBusy,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.malformed import Malformed
from rocketbroker.testing.scripted import answer
from tests.blocking.cluster import Fault, MemoryCluster, hang_up, silent

QUEUE = MessageQueue("T", "b1", 1)


def saying(text: str) -> Fault:
    """A fault: an answer with some text for an offset."""
    return lambda command: answer(ext={"offset": text})


class ClientTests(SynchronousTestCase):
    """Against a cluster in memory."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        self.client = self.cluster.client
        self.broker = self.cluster.brokers["b1"]

    def test_onUse(self) -> None:
        """Making a client opens nothing; what cannot work is said at once."""
        self.assertEqual(self.cluster.machine.streams, [])
        self.assertRaises(ConfigurationError, Client, Settings("nowhere"))

    def test_topics(self) -> None:
        """Topics and their queues."""
        self.assertEqual(self.client.topics(), ["T"])
        self.assertEqual(len(self.client.queues("T")), 4)
        self.assertRaises(TopicNotExist, self.client.queues, "U")

    def test_offsets(self) -> None:
        """The ends of a queue, by time, and when its first message was stored."""
        self.broker.first["T", 1] = 5
        self.broker.put("T", 1, b"x")
        self.assertEqual(self.client.min_offset(QUEUE), 5)
        self.assertEqual(self.client.max_offset(QUEUE), 6)
        self.assertEqual(self.client.offset_by_time(QUEUE, 1000), 5)
        self.assertEqual(self.client.offset_by_time(QUEUE, 1000, upper=True), 6)
        self.assertEqual(self.client.earliest_store_time(QUEUE), 1005)

    def test_committed(self) -> None:
        """A group's offset is None until it is committed."""
        self.assertIsNone(self.client.committed_offset(QUEUE, "g"))
        self.client.commit_offset(QUEUE, "g", 7)
        self.assertEqual(self.client.committed_offset(QUEUE, "g"), 7)
        self.assertIsNone(self.client.committed_offset(QUEUE, "h"))
        ext = self.cluster.machine.requests[-1][1].ext or {}
        self.assertEqual(ext["setZeroIfNotFound"], "false")
        self.assertEqual(ext["lo"], "false")

    def test_view(self) -> None:
        """The message at a physical offset, or the broker's refusal."""
        self.broker.put("T", 1, b"x")
        self.assertEqual(self.client.view("b1:10911", 1, "T").body, b"x")
        self.assertRaises(SystemFailure, self.client.view, "b1:10911", 2)
        self.broker.faults = [lambda command: answer(body=b"junk")]
        self.assertRaises(Malformed, self.client.view, "b1:10911", 1)

    def test_passing(self) -> None:
        """What may pass is asked again, after a pause, by a fresh route."""
        self.broker.faults = [hang_up, lambda command: answer(2, remark="busy")]
        before = self.cluster.machine.now
        self.assertEqual(self.client.max_offset(QUEUE), 0)
        self.assertEqual(self.cluster.machine.codes("b1:10911"), [30, 30, 30])
        self.assertEqual(self.cluster.machine.codes("ns1:9876"), [105, 105, 105])
        self.assertAlmostEqual(self.cluster.machine.now, before + 0.4)

    def test_lasting(self) -> None:
        """What does not pass is told as it was the last time."""
        self.broker.faults = [silent] * 3
        self.assertRaises(RequestTimeout, self.client.max_offset, QUEUE)
        self.broker.faults = [lambda command: answer(2)] * 3
        self.assertRaises(SystemBusy, self.client.max_offset, QUEUE)
        del self.cluster.machine.servers["b1:10911"]
        self.client.close()
        self.assertRaises(ConnectionLost, self.client.max_offset, QUEUE)

    def test_final(self) -> None:
        """What another try cannot cure is told at once."""
        self.broker.faults = [lambda command: answer(16, remark="no")]
        self.assertRaises(NoPermission, self.client.max_offset, QUEUE)
        self.assertEqual(self.cluster.machine.codes("b1:10911"), [30])

    def test_moved(self) -> None:
        """A broker that has moved is found where the name servers say."""
        self.client.max_offset(QUEUE)
        servers = self.cluster.machine.servers
        servers["new:1"] = servers.pop("b1:10911")
        self.cluster.addresses["b1"] = "new:1"
        self.cluster.machine.streams[-1].hung_up = True
        self.assertEqual(self.client.max_offset(QUEUE), 0)
        self.assertEqual(self.cluster.machine.codes("new:1"), [30])

    def test_nonsense(self) -> None:
        """An answer that is none does not look like an offset of 0."""
        for text in ("x", "", "9" * 19, "9" * 30):
            self.broker.faults = [saying(text)] * 3
            with self.assertRaises(RemoteProtocolError):
                self.client.max_offset(QUEUE)
        self.broker.faults = [lambda command: answer()] * 3
        self.assertRaises(RemoteProtocolError, self.client.min_offset, QUEUE)

    def test_travels(self) -> None:
        """A client can be pickled, with its settings and without its connections."""
        client = Client(Settings("a:1", seconds=9.0))
        again = pickle.loads(pickle.dumps(client))
        self.assertEqual(again.settings, client.settings)

    def test_close(self) -> None:
        """Leaving its block closes its connections; asking opens them again."""
        with self.client as client:
            client.topics()
        self.assertTrue(self.cluster.machine.streams[0].closed)
        self.client.topics()
        self.assertEqual(len(self.cluster.machine.streams), 2)


class CreateTopicTests(SynchronousTestCase):
    """Creating topics."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        self.client = self.cluster.client

    def test_masters(self) -> None:
        """Masters, of all clusters or of one."""
        both = {"b1": "b1:10911", "b2": "b2:10911"}
        self.assertEqual(self.client.masters(), both)
        self.assertEqual(self.client.masters("c2"), {"b2": "b2:10911"})
        self.assertEqual(self.client.masters("c3"), {})

    def test_create(self) -> None:
        """It is created on all masters, and then it is known."""
        self.cluster.topics["N"] = {"b1": 4, "b2": 4}
        self.client.create_topic("N", queues=4)
        for broker in self.cluster.brokers.values():
            (fields,) = broker.created
            self.assertEqual(fields["topic"], "N")
            self.assertEqual(fields["readQueueNums"], "4")
            self.assertEqual(fields["writeQueueNums"], "4")
            self.assertEqual(fields["perm"], "6")
            self.assertEqual(fields["topicFilterType"], "SINGLE_TAG")
            self.assertEqual(fields["order"], "false")

    def test_oneCluster(self) -> None:
        """Or on those of one cluster."""
        self.cluster.topics["N"] = {"b2": 1}
        self.client.create_topic("N", queues=1, cluster="c2")
        self.assertEqual(self.cluster.brokers["b1"].created, [])
        with self.assertRaises(TopicNotExist):
            self.client.create_topic("N", cluster="c3")

    def test_neverKnown(self) -> None:
        """A topic that the name servers do not get to know is told, after a while."""
        self.cluster.topics["N"] = {"b1": 8}
        before = self.cluster.machine.now
        with self.assertRaises(TopicNotExist) as caught:
            self.client.create_topic("N", wait=2.0)
        self.assertIn("do not know N on b2", str(caught.exception))
        self.assertAlmostEqual(self.cluster.machine.now, before + 2.0)
