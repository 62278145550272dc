"""All parts of a name server together, over a network in memory."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.remoting import RemotingClientOptions
from rocketbroker.nameserver.nameserver import NameServer
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from tests.nameserver.case import CODES, broker_header, registration_body


class NameServerTests(SynchronousTestCase):
    """A broker and a client meet at the name server."""

    def setUp(self) -> None:
        """A name server that listens, and two who know its address."""
        self.network = MemoryNetwork()
        self.clock_fails = False
        settings = NamesrvSettings.from_properties({"kvConfigPath": "/ns/kv.json"})
        self.nameserver = NameServer(
            self.network,
            settings,
            MemoryDisk(),
            self.now_ms,
            at_once,
            lambda address, command: None,
        )
        self.nameserver.load()
        self.server = RemotingServer(
            self.network, settings.server, self.nameserver.responders
        )
        self.address = f"127.0.0.1:{self.server.listen(0)}"
        self.nameserver.start()
        self.broker = RemotingClient(self.network, RemotingClientOptions())
        self.client = RemotingClient(self.network, RemotingClientOptions())

    def now_ms(self) -> int:
        """The time, unless the test wants it to fail."""
        if self.clock_fails:
            raise ZeroDivisionError
        return int(self.network.seconds() * 1000)

    def ask(self, who: RemotingClient, command: Command) -> Command:
        """The response to a request."""
        answer = who.invoke(self.address, command, 3.0)
        self.network.settle()
        return self.successResultOf(answer)

    def route(self) -> Command:
        """The answer to a client that asks for a topic."""
        header = {"topic": "T1"}
        request = Command(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        return self.ask(self.client, request)

    def register(self) -> Command:
        """A broker registers."""
        return self.ask(
            self.broker,
            Command(
                RequestCode.REGISTER_BROKER,
                {**broker_header(), "haServerAddr": "h:2"},
                registration_body().encode(),
            ),
        )

    def test_codes(self) -> None:
        """Every request of a name server has its responder, and no other has one."""
        self.assertEqual(set(self.nameserver.responders.responders), CODES)

    def test_life(self) -> None:
        """A client finds a broker from its registration to its last breath."""
        self.assertEqual(self.route().code, 17)
        self.assertEqual(self.register().code, 0)
        route = TopicRouteData.from_json(loads(self.route().body))
        self.assertEqual(route.broker_datas[0].broker_addrs, {0: "b1-0:1"})
        gone = self.broker.stop()
        self.network.settle()
        self.successResultOf(gone)
        self.assertEqual(self.route().code, 17)

    def test_oneway(self) -> None:
        """A registration may want no answer."""
        self.broker.oneway(
            self.address,
            Command(
                RequestCode.REGISTER_BROKER,
                {**broker_header(), "haServerAddr": "h:2"},
                registration_body().encode(),
            ),
        )
        self.network.settle()
        self.assertEqual(self.route().code, 0)

    def test_split(self) -> None:
        """A large table may come in several registrations."""
        for topics in (("T1", "T2"), ("T3", "T4")):
            self.ask(
                self.broker,
                Command(
                    RequestCode.REGISTER_BROKER,
                    {**broker_header(), "haServerAddr": "h:2"},
                    registration_body(topics).encode(),
                ),
            )
        self.assertEqual(set(self.nameserver.routes.topics), {"T1", "T2", "T3", "T4"})

    def test_notSupported(self) -> None:
        """A code that a name server does not know is refused with that code."""
        response = self.ask(self.client, Command(310))
        self.assertEqual(
            (response.code, response.remark),
            (3, " request type 310 (SEND_MESSAGE_V2) not supported"),
        )

    def test_silentBrokerIsClosed(self) -> None:
        """A broker that falls silent is gone, with its connection."""
        self.register()
        connections = self.server.group.connections
        self.assertEqual(len(connections), 1)
        self.network.advance(60)
        self.ask(self.client, Command(RequestCode.GET_BROKER_CLUSTER_INFO))
        for _ in range(13):
            self.network.advance(5)
        self.assertEqual(self.nameserver.routes.groups, {})
        self.assertEqual(len(connections), 1)

    def test_scanGoesOn(self) -> None:
        """A scan that fails is counted, and silent brokers are found by a later one."""
        self.register()
        self.clock_fails = True
        self.network.pump([5.0] * 2)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 2)
        self.assertEqual(self.nameserver.scan.failures, 2)
        self.clock_fails = False
        self.network.pump([5.0] * 30)
        self.assertEqual(self.nameserver.routes.groups, {})

    def test_stop(self) -> None:
        """A stopped name server has nothing left to do."""
        stopped: Deferred[None] = succeed(None)
        for part in (self.broker, self.client, self.server, self.nameserver):
            stopped = part.stop()
            self.network.settle()
            self.successResultOf(stopped)
        self.assertEqual(self.network.getDelayedCalls(), [])
