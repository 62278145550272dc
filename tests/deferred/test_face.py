"""The face for Twisted."""

from __future__ import annotations

from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

import rocketbroker.deferred
from rocketbroker.config.remoting import RemotingServerOptions
from rocketbroker.deferred import Message, connect
from rocketbroker.errors import ClientClosed, ConfigurationError, ConnectionLost
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.routes import BrokerData, QueueData, TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from tests.faces import ERRORS, NO_CONNECTIONS, NO_CONSUMERS, OTHERS, loaded, missing

#: Loads all that a program with a producer and a consumer loads.
PROGRAM = """
from rocketbroker.deferred import *
from twisted.internet.task import Clock
mq = connect(Clock(), "127.0.0.1:1")
mq.consumer("T", "G", broadcast=True)
"""


class FaceTests(SynchronousTestCase):
    """C{from rocketbroker.deferred import connect}."""

    def setUp(self) -> None:
        self.network = MemoryNetwork()

    def connect(self, servers: Any = "127.0.0.1:1", **options: Any) -> Any:
        """A session on the memory network."""
        return connect(cast(Any, self.network), servers, **options)

    def test_noAsyncio(self) -> None:
        """But what Twisted itself loads for its Deferreds; nor is a reactor installed:
        the program chooses it."""
        ours = "rocketbroker.client.runtimes.on_asyncio"
        self.assertEqual(loaded(PROGRAM, ours, "twisted.internet.reactor"), "")
        twisteds = loaded("import twisted.internet.defer", "asyncio.runners")
        self.assertEqual(loaded(PROGRAM, "asyncio.runners"), twisteds)

    def test_neitherServersNorCommandLine(self) -> None:
        """An import takes no longer than the client itself."""
        self.assertEqual(loaded(PROGRAM, *OTHERS), "")

    def test_namesAreThere(self) -> None:
        """All that the package names can be imported from it, and nothing else."""
        self.assertEqual(missing(rocketbroker.deferred), [])
        self.assertEqual(set(ERRORS) - {*rocketbroker.deferred.__all__}, set())
        self.assertFalse(hasattr(rocketbroker.deferred, "Connection"))

    def test_wrongArgumentsAreOneSentence(self) -> None:
        """At once, not with the first message."""
        no_reactor: Any = "127.0.0.1:9876"
        with self.assertRaises(ConfigurationError):
            connect(no_reactor)
        for servers, options in NO_CONNECTIONS:
            with self.assertRaises(ConfigurationError):
                self.connect(servers, **options)
        mq = self.connect()
        for topic, group, options in NO_CONSUMERS:
            with self.assertRaises(ConfigurationError):
                mq.consumer(topic, group, **options)
            with self.assertRaises(ConfigurationError):
                mq.on(topic, group=group, **options)

    def test_streamOfSendsIsIteratedOver(self) -> None:
        """In a coroutine, which a failure ends."""
        mq = self.connect()

        async def send() -> None:
            async for _ in mq.send_all([Message("T", "x")], patience=0):
                raise AssertionError("nobody is there")

        sending = Deferred.fromCoroutine(send())
        self.network.advance(0.01)
        self.failureResultOf(sending, ConnectionLost)
        closing = mq.close()
        self.network.settle()
        self.successResultOf(closing)

    def test_failuresComeByDeferred(self) -> None:
        """When the patience is over, and at once when it is closed."""
        mq = self.connect(patience=2.0)
        sending = mq.send("T", "x")
        self.network.advance(0.01)
        self.assertNoResult(sending)
        for _ in range(30):
            self.network.advance(0.1)
        self.failureResultOf(sending, ConnectionLost)
        closing = mq.close()
        self.network.settle()
        self.successResultOf(closing)
        self.failureResultOf(mq.send("T", "x"), ClientClosed)
        self.assertEqual(self.network.getDelayedCalls(), [])


class SendAllTests(SynchronousTestCase):
    """C{send_all}, to a broker that is a name server, too."""

    def setUp(self) -> None:
        self.network = MemoryNetwork()
        self.stored: list[bytes] = []
        table = ResponderTable()
        table.register(RequestCode.GET_ROUTEINFO_BY_TOPIC, self.route)
        table.register(RequestCode.SEND_MESSAGE_V2, self.store)
        server = RemotingServer(self.network, RemotingServerOptions(), table)
        self.address = f"127.0.0.1:{server.listen(0)}"
        self.addCleanup(server.stop)

    def route(self, connection: IConnection, command: Command) -> Command:
        """Topic T has one queue, here."""
        broker = BrokerData(
            cluster="c", broker_name="b1", broker_addrs={0: self.address}
        )
        queues = QueueData(
            broker_name="b1", read_queue_nums=1, write_queue_nums=1, perm=6
        )
        route = TopicRouteData(queue_datas=[queues], broker_datas=[broker])
        return response_to(command, body=fastjson.dumps(route))

    def store(self, connection: IConnection, command: Command) -> Command:
        """Store a message."""
        response = response_to(command)
        offset = str(len(self.stored))
        response.ext = {"msgId": "x", "queueId": "0", "queueOffset": offset}
        self.stored.append(command.body)
        return response

    def test_messagesKeepTheirOrder(self) -> None:
        """Also those that had to wait for the route and for the connection."""
        mq = connect(cast(Any, self.network), self.address)
        wanted = [b"%d" % number for number in range(200)]

        async def send() -> list[int]:
            messages = (Message("T", body) for body in wanted)
            return [one.queue_offset async for one in mq.send_all(messages)]

        sending = Deferred.fromCoroutine(send())
        self.network.settle()
        self.network.advance(0.01)
        for _ in range(100):
            self.network.advance(0.0)
        self.assertEqual(self.successResultOf(sending), [*range(200)])
        self.assertEqual(self.stored, wanted)
        closing = mq.close()
        self.network.settle()
        self.successResultOf(closing)
