"""Routes: learned from name servers, and kept while these are away."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.connections import Connections
from rocketbroker.client.routes import Routes
from rocketbroker.client.settings import ClientSettings
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    NoBroker,
    NoPermission,
    TopicNotExist,
)
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.testing.runtime import MemoryRuntime, PuppetLink
from rocketbroker.testing.scripted import answer
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.routes import BrokerData, QueueData, TopicRouteData
from rocketbroker.wire.command import Command


def route(perm: int = 6, **brokers: dict[int, str]) -> TopicRouteData:
    """A route with two queues on each broker."""
    return TopicRouteData(
        queue_datas=[
            QueueData(
                broker_name=name, read_queue_nums=2, write_queue_nums=2, perm=perm
            )
            for name in brokers
        ],
        broker_datas=[
            BrokerData(cluster="c", broker_name=name, broker_addrs=addresses)
            for name, addresses in brokers.items()
        ],
    )


class RouteTests(SynchronousTestCase):
    """Two name servers."""

    def setUp(self) -> None:
        self.runtime = MemoryRuntime()
        self.known = {"T": route(b1={0: "b1:1", 1: "b1:2"})}
        self.runtime.servers |= {"ns1:9876": self.serve, "ns2:9876": self.serve}
        settings = ClientSettings(name_servers=("ns1:9876", "ns2:9876"))
        self.routes = Routes(self.runtime, Connections(self.runtime), settings)

    def serve(self, link: PuppetLink, command: Command) -> Command:
        """A name server."""
        found = self.known.get((command.ext or {})["topic"])
        return answer(body=fastjson.dumps(found)) if found else answer(17)

    def test_routeIsAskedForOnce(self) -> None:
        """Also where several want it at the same time."""
        both = [self.runtime.start(self.routes.view("T")) for _ in range(2)]
        self.runtime.settle()
        self.assertEqual([len(one.value().read) for one in both], [2, 2])
        self.runtime.finish(self.routes.view("T"))
        self.assertEqual(self.routes.asked, 1)

    def test_nextNameServerIsAskedAndStays(self) -> None:
        """One that cannot be reached is passed over, also by later questions."""
        del self.runtime.servers["ns1:9876"]
        self.runtime.finish(self.routes.view("T"))
        self.runtime.finish(self.routes.view("T", refresh=True))
        self.assertEqual(self.runtime.connects, ["ns1:9876", "ns2:9876"])

    def test_knownRouteIsKeptWhileNobodyAnswers(self) -> None:
        """It is said once in the log that none answers, and once that one does."""
        self.runtime.finish(self.routes.view("T"))
        servers = dict(self.runtime.servers)
        self.runtime.servers.clear()
        for address in servers:
            self.runtime.cut(address)
        with self.assertLogs("rocketbroker.client", "INFO") as logs:
            for _ in range(3):
                view = self.runtime.finish(self.routes.view("T", refresh=True))
                self.assertEqual(len(view.read), 2)
            self.runtime.servers |= servers
            self.runtime.finish(self.routes.refresh())
        self.assertEqual(len(logs.output), 2)
        with self.assertRaises(TopicNotExist):
            self.runtime.finish(self.routes.view("U"))

    def test_knownRouteIsKeptWhileNameServerKnowsNothing(self) -> None:
        """A name server that has just begun does not know the topic yet."""
        self.runtime.finish(self.routes.view("T"))
        self.known.clear()
        self.runtime.finish(self.routes.view("T", refresh=True))
        with self.assertRaises(TopicNotExist):
            self.runtime.finish(self.routes.view("U"))

    def test_unknownServersAreAnError(self) -> None:
        """A topic that was never known, and nobody to ask."""
        self.runtime.servers.clear()
        with self.assertRaises(ConnectionLost):
            self.runtime.finish(self.routes.view("T"))

    def test_brokerIsNoNameServer(self) -> None:
        """The most common mistake has a sentence of its own."""
        refusing = answer(3, remark="no")
        self.runtime.servers["ns1:9876"] = lambda link, command: refusing
        with self.assertRaises(ConfigurationError):
            self.runtime.finish(self.routes.view("T"))

    def test_newTopicIsSentWhereTopicsAreCreated(self) -> None:
        """At most four queues on each broker that creates topics."""
        with self.assertRaises(TopicNotExist):
            self.runtime.finish(self.routes.write_queues("New"))
        self.known["TBW102"] = route(b1={0: "b1:1"})
        queues = self.runtime.finish(self.routes.write_queues("New"))
        self.assertEqual(queues, [MessageQueue("New", "b1", n) for n in range(2)])
        self.assertEqual(self.routes.master("New", "b1"), "b1:1")

    def test_unwritableTopicSaysWhy(self) -> None:
        """Without permission is not the same as without a master."""
        self.known |= {"R": route(4, b1={0: "b1:1"}), "S": route(b1={1: "b1:2"})}
        with self.assertRaises(NoPermission):
            self.runtime.finish(self.routes.write_queues("R"))
        with self.assertRaises(NoBroker):
            self.runtime.finish(self.routes.write_queues("S"))

    def test_addressesAreThoseOfTheRoute(self) -> None:
        """A pull may go to a slave; all else to the master."""
        self.runtime.finish(self.routes.view("T"))
        queue = MessageQueue("T", "b1", 0)
        self.assertEqual(self.routes.readable(queue, 0), ("b1:1", True))
        self.assertEqual(self.routes.readable(queue, 1), ("b1:2", False))
        self.assertEqual(self.routes.readable(queue, 7), ("b1:1", True))
        self.assertEqual(self.routes.brokers(), {"b1:1": "b1", "b1:2": "b1"})
        self.assertEqual(self.routes.brokers(masters_only=True), {"b1:1": "b1"})
        self.assertEqual(self.routes.any_broker("T", 5), "b1:1")
        with self.assertRaises(NoBroker):
            self.routes.master("T", "b2")
        with self.assertRaises(NoBroker):
            self.routes.any_broker("U", 0)
