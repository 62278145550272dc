"""Clients: connecting, invoking, losing connections."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.errors import (
    ConfigurationError,
    ConnectionLost,
    LocalProtocolError,
    RequestTimeout,
)
from rocketbroker.remoting.client import MAX_ONEWAYS_WAITING, RemotingClient
from rocketbroker.remoting.interfaces import Answer, IConnection
from rocketbroker.remoting.response_table import TooManyRequests
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.command import Command, response_to


class ClientTests(SynchronousTestCase):
    """Against a server on the memory network."""

    def setUp(self) -> None:
        """A server that echoes, and a client."""
        self.network = MemoryNetwork()
        self.connections: list[IConnection] = []
        self.codes: list[int] = []
        table = ResponderTable()
        table.register(1, self.echo)
        table.register(2, self.silent)
        self.server = RemotingServer(self.network, RemotingServerOptions(), table)
        self.port = self.server.listen(0)
        self.address = f"127.0.0.1:{self.port}"
        self.table = ResponderTable()
        self.client = RemotingClient(self.network, RemotingClientOptions(), self.table)

    def echo(self, connection: IConnection, command: Command) -> Answer:
        self.connections.append(connection)
        self.codes.append(command.code)
        return response_to(command, body=command.body)

    def silent(self, connection: IConnection, command: Command) -> Answer:
        self.connections.append(connection)
        self.codes.append(command.code)
        return None

    def invoke(self, command: Command, timeout: float = 3) -> Deferred[Command]:
        answer = self.client.invoke(self.address, command, timeout)
        self.network.settle()
        return answer

    def test_invoke(self) -> None:
        """The answer to a request, whatever its code."""
        answer = self.successResultOf(self.invoke(Command(1, body=b"x")))
        self.assertEqual((answer.code, answer.body), (0, b"x"))
        self.assertEqual(self.successResultOf(self.invoke(Command(3))).code, 3)

    def test_oneConnection(self) -> None:
        """Requests to one address share one connection, also while it is made."""
        answers = [
            self.client.invoke(self.address, Command(1, body=b"%d" % n), 3)
            for n in range(3)
        ]
        self.network.settle()
        bodies = [self.successResultOf(answer).body for answer in answers]
        self.assertEqual(bodies, [b"0", b"1", b"2"])
        self.invoke(Command(1))
        self.assertEqual(len(set(self.connections)), 1)

    def test_timeout(self) -> None:
        """No answer in time: RequestTimeout; the connection stays."""
        answer = self.invoke(Command(2))
        self.network.advance(3)
        self.failureResultOf(answer, RequestTimeout)
        self.successResultOf(self.invoke(Command(1)))
        self.assertEqual(len(set(self.connections)), 1)

    def test_refused(self) -> None:
        """Nobody listens: ConnectionLost, with the address in its words."""
        answer = self.client.invoke("127.0.0.1:9", Command(1), 3)
        self.network.settle()
        error = self.failureResultOf(answer, ConnectionLost).value
        self.assertIn("cannot connect to 127.0.0.1:9", str(error))

    def test_connectTimeout(self) -> None:
        """A server that does not even refuse: three seconds."""
        self.network.silent.add(9)
        answer = self.client.invoke("127.0.0.1:9", Command(1), 60)
        self.network.advance(2.9)
        self.assertNoResult(answer)
        self.network.advance(0.2)
        self.failureResultOf(answer, ConnectionLost)

    def test_timeoutWhileConnecting(self) -> None:
        """Connecting counts against the time-out; the request is not sent later."""
        self.network.silent.add(self.port)
        answer = self.client.invoke(self.address, Command(1), 1)
        self.network.advance(1)
        self.failureResultOf(answer, RequestTimeout)
        self.network.silent.clear()
        self.network.advance(5)
        self.assertEqual(self.codes, [])

    def test_reconnect(self) -> None:
        """After a loss the next request connects again."""
        waiting = self.invoke(Command(2), 60)
        self.network.break_all(self.port)
        self.network.settle()
        self.failureResultOf(waiting, ConnectionLost)
        self.assertIsNone(self.client.connection(self.address))
        self.successResultOf(self.invoke(Command(1)))
        self.assertEqual(len(set(self.connections)), 2)

    def test_fromServer(self) -> None:
        """Requests of the server are answered from the client's table."""
        self.table.register(40, lambda connection, command: Command(0, body=b"yes"))
        self.invoke(Command(1))
        answer = self.connections[0].request(Command(40), 3)
        unknown = self.connections[0].request(Command(41), 3)
        self.network.settle()
        self.assertEqual(self.successResultOf(answer).body, b"yes")
        self.assertEqual(self.successResultOf(unknown).code, 3)

    def test_oneway(self) -> None:
        """A oneway request is sent, connecting if need be, and not waited for."""
        self.client.oneway(self.address, Command(1))
        self.network.settle()
        self.client.oneway(self.address, Command(2))
        self.network.settle()
        self.assertEqual(self.codes, [1, 2])
        self.assertEqual(len(self.client.group.responses), 0)

    def test_onewayRefused(self) -> None:
        """One that cannot be sent is counted."""
        self.client.oneway("127.0.0.1:9", Command(1))
        self.client.oneway("nowhere", Command(1))
        self.network.settle()
        self.assertEqual(self.client.oneways_dropped, 2)

    def test_onewayNotEncodable(self) -> None:
        """One that the protocol cannot carry is counted, connected or not."""
        for _ in range(2):
            self.client.oneway(self.address, Command(1, body=bytes(17 << 20)))
            self.client.oneway(self.address, Command(1))
            self.network.settle()
        self.assertEqual(self.client.oneways_dropped, 2)
        self.assertEqual(self.codes, [1, 1])

    def test_onewaysWaiting(self) -> None:
        """Not more than a limit wait for a connection; the others are dropped."""
        for _ in range(MAX_ONEWAYS_WAITING + 3):
            self.client.oneway(self.address, Command(1))
        self.network.settle()
        self.assertEqual(len(self.codes), MAX_ONEWAYS_WAITING)
        self.assertEqual(self.client.oneways_dropped, 3)

    def test_address(self) -> None:
        """What is no address fails with words."""
        self.failureResultOf(
            self.client.invoke("nowhere", Command(1), 3), ConfigurationError
        )

    def test_notEncodable(self) -> None:
        """What the protocol cannot carry fails, and harms nobody else."""
        answer = self.invoke(Command(1, body=bytes(17 << 20)))
        self.failureResultOf(answer, LocalProtocolError)
        self.successResultOf(self.invoke(Command(1)))

    def test_tooMany(self) -> None:
        """More requests at once than allowed fail at once."""
        options = RemotingClientOptions(client_async_semaphore_value=2)
        self.client = RemotingClient(self.network, options)
        waiting = [self.invoke(Command(2)) for _ in range(3)]
        self.failureResultOf(waiting[2], TooManyRequests)
        self.network.advance(3)
        for each in waiting[:2]:
            self.failureResultOf(each, RequestTimeout)

    def test_close(self) -> None:
        """Closing an address fails what waits on it."""
        waiting = self.invoke(Command(2))
        self.client.close(self.address)
        self.failureResultOf(waiting, ConnectionLost)
        self.client.close("127.0.0.1:9")

    def test_closeWhileConnecting(self) -> None:
        """Closing an address that is being connected gives it up."""
        waiting = self.client.invoke(self.address, Command(2), 3)
        self.client.close(self.address)
        self.failureResultOf(waiting, ConnectionLost)
        self.network.settle()
        self.assertEqual(self.codes, [])

    def test_stop(self) -> None:
        """A stopped client has no connection, and makes none."""
        waiting = self.invoke(Command(2))
        stopped = self.client.stop()
        self.network.settle()
        self.successResultOf(stopped)
        self.failureResultOf(waiting, ConnectionLost)
        self.failureResultOf(self.invoke(Command(1)), ConnectionLost)
        self.client.oneway(self.address, Command(1))
        self.assertEqual(self.client.oneways_dropped, 1)

    def test_stopWhileConnecting(self) -> None:
        """Stopping gives up attempts to connect."""
        waiting = self.client.invoke(self.address, Command(1), 3)
        self.successResultOf(self.client.stop())
        self.failureResultOf(waiting, ConnectionLost)
        self.network.settle()
        self.assertEqual(self.codes, [])

    def test_cancel(self) -> None:
        """A cancelled request is forgotten; its answer is dropped."""
        waiting = self.invoke(Command(2))
        waiting.addErrback(lambda failure: None)
        waiting.cancel()
        self.assertEqual(len(self.client.group.responses), 0)
