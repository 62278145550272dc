"""Name servers and the routes they know."""

from __future__ import annotations

import pickle

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.connections import Connections
from rocketbroker.blocking.routes import MessageQueue, NoBroker, Routes
from rocketbroker.blocking.settings import Settings, name_server_list
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    NoPermission,
    RemoteProtocolError,
    RequestTimeout,
    TopicNotExist,
)
from rocketbroker.testing.scripted import Script, answer
from tests.blocking.cluster import MemoryCluster, silent


def always(body: bytes) -> Script:
    """A server that says the same to everything."""
    return lambda command: answer(body=body)


class NameServerTests(SynchronousTestCase):
    """Which name server is asked."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        self.machine = self.cluster.machine
        self.routes = self.cluster.client.routes

    def test_list(self) -> None:
        """Addresses are separated by semicolons or commas."""
        self.assertEqual(name_server_list("a:1; b:2,"), ("a:1", "b:2"))
        for text in ("", " ; ", "a", "a:1;b"):
            self.assertRaises(ConfigurationError, name_server_list, text)

    def test_settings(self) -> None:
        """No tries, or no time for them, make no sense."""
        for wrong in ({"seconds": 0.0}, {"attempts": 0}, {"max_frame_bytes": -1}):
            with self.assertRaises(ConfigurationError):
                attrs.evolve(self.cluster.client.settings, **wrong)

    def test_sticky(self) -> None:
        """One answers for all questions, as long as it does."""
        self.routes.topics()
        self.routes.view("T")
        self.assertEqual(
            [where for where, _ in self.machine.requests], ["ns1:9876"] * 2
        )

    def test_nextOnFailure(self) -> None:
        """One that cannot be reached is passed over, and not asked again first."""
        del self.machine.servers["ns1:9876"]
        self.assertEqual(self.routes.topics(), ["T"])
        self.assertEqual(self.routes.topics(), ["T"])
        self.assertEqual(self.routes.asked, 3)

    def test_nextOnSilence(self) -> None:
        """One that is silent is given up after its time."""
        self.machine.servers["ns1:9876"] = silent
        before = self.machine.now
        self.assertEqual(self.routes.topics(), ["T"])
        self.assertEqual(self.machine.now, before + 1.0)

    def test_broker(self) -> None:
        """A broker's address given for a name server's is told as that."""
        self.machine.servers["ns1:9876"] = lambda command: answer(
            3, remark=f"request type {command.code} not supported"
        )
        with self.assertRaisesRegex(ConfigurationError, "ns1:9876 .*no name server"):
            self.routes.view("T")

    def test_noneLeft(self) -> None:
        """When none answers, the last failure is told; later they are asked again."""
        servers = dict(self.machine.servers)
        self.machine.servers.clear()
        self.assertRaises(ConnectionLost, self.routes.topics)
        self.machine.servers["ns2:9876"] = silent
        self.assertRaises((ConnectionLost, RequestTimeout), self.routes.topics)
        self.machine.servers.update(servers)
        self.assertEqual(self.routes.topics(), ["T"])

    def test_nonsense(self) -> None:
        """An answer that is no list or no route is told, whatever it is."""
        for body in (b"", b"[]", b"{", b'{"topicList":5}', b"null"):
            self.machine.servers["ns1:9876"] = always(body)
            self.assertRaises(RemoteProtocolError, self.routes.topics)
        for body in (b"", b"[]", b"{", b'{"queueDatas":5}'):
            self.machine.servers["ns1:9876"] = always(body)
            self.assertRaises(RemoteProtocolError, self.routes.view, "T")


class RouteTests(SynchronousTestCase):
    """What is known, and for how long."""

    def setUp(self) -> None:
        self.cluster = MemoryCluster()
        self.routes = self.cluster.client.routes

    def test_kept(self) -> None:
        """A route is kept for a while and then asked for again."""
        self.routes.view("T")
        self.cluster.machine.now += 29
        self.routes.view("T")
        self.assertEqual(self.routes.asked, 1)
        self.cluster.machine.now += 2
        self.routes.view("T")
        self.assertEqual(self.routes.asked, 2)

    def test_keptWhileNoNameServerAnswers(self) -> None:
        """They are asked again after some seconds, or when the route turns out to be
        wrong; who wants it fresh is told."""
        self.routes.view("T")
        servers = {**self.cluster.machine.servers}
        del self.cluster.machine.servers["ns1:9876"]
        del self.cluster.machine.servers["ns2:9876"]
        for stream in self.cluster.machine.streams:
            stream.hung_up = True
        self.cluster.machine.now += 100
        for _ in range(2):
            self.assertEqual(len(self.routes.to_read("T")), 4)
        self.assertEqual(self.routes.asked, 3)
        self.routes.forget("T")
        self.routes.view("T")
        self.assertEqual(self.routes.asked, 5)
        with self.assertRaises(ConnectionLost):
            self.routes.view("T", refresh=True)
        with self.assertRaises(ConnectionLost):
            self.routes.view("U")
        self.cluster.machine.servers.update(servers)
        self.cluster.machine.now += 6
        self.routes.view("T")
        self.routes.view("T")
        self.assertEqual(self.routes.asked, 10)

    def test_askedAgain(self) -> None:
        """Who finds it wrong has it asked for again."""
        self.routes.view("T")
        self.routes.forget("T")
        self.routes.view("T")
        self.routes.view("T", refresh=True)
        self.assertEqual(self.routes.asked, 3)

    def test_queues(self) -> None:
        """Queues come by broker and number."""
        expected = [MessageQueue("T", b, n) for b in ("b1", "b2") for n in (0, 1)]
        self.assertEqual(self.routes.to_read("T"), expected)
        self.assertEqual(self.routes.to_write("T"), expected)
        self.assertEqual(str(expected[0]), "queue 0 of T on b1")
        self.assertEqual(self.routes.address(expected[3]), "b2:10911")

    def test_unknown(self) -> None:
        """A topic that nobody knows has no queues, to read or to write."""
        self.assertRaises(TopicNotExist, self.routes.to_read, "U")
        self.assertRaises(TopicNotExist, self.routes.to_write, "U")
        self.assertRaises(
            TopicNotExist, self.routes.address, MessageQueue("U", "b1", 0)
        )

    def test_created(self) -> None:
        """Where brokers create topics, an unknown one can be sent to."""
        self.cluster.topics["TBW102"] = {"b2": 8}
        queues = self.routes.to_write("U")
        self.assertEqual(queues, [MessageQueue("U", "b2", n) for n in range(4)])
        self.assertEqual(self.routes.address(queues[0]), "b2:10911")

    def test_unknownBroker(self) -> None:
        """A queue of a broker that the topic does not have has no address."""
        with self.assertRaises(TopicNotExist):
            self.routes.address(MessageQueue("T", "b3", 0))

    def test_absentMasterIsNotAbsentTopic(self) -> None:
        """A topic whose masters are away is there, and cannot be asked now."""
        for broker in ("b1", "b2"):
            self.cluster.ids[broker] = 1
        self.assertEqual(len(self.routes.to_read("T")), 4)
        for ask in (
            lambda: self.routes.to_write("T"),
            lambda: self.routes.address(MessageQueue("T", "b1", 0)),
        ):
            with self.assertRaisesRegex(NoBroker, "knows no master now for .*T"):
                ask()

    def test_unwritableTopicIsTold(self) -> None:
        """A topic without write permission is not one that is not there."""
        self.cluster.perm = 4
        with self.assertRaisesRegex(NoPermission, "T may not be written"):
            self.routes.to_write("T")

    def test_travels(self) -> None:
        """Settings can be pickled; a copy of routes knows nothing and is not open."""
        settings = pickle.loads(pickle.dumps(Settings("a:1;b:2", seconds=5.0)))
        self.assertEqual((settings.name_servers, settings.seconds), ("a:1;b:2", 5.0))
        routes = Routes(settings, Connections(settings))
        again = pickle.loads(pickle.dumps(routes))
        self.assertEqual(again.asked, 0)
