"""Servers: listening, serving, stopping."""

from __future__ import annotations

import attrs
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.errors import ConfigurationError, ConnectionLost
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.command import Command, response_to


class ServerTests(SynchronousTestCase):
    """On the memory network."""

    def setUp(self) -> None:
        """A server and a client."""
        self.network = MemoryNetwork()
        self.table = ResponderTable()
        self.later: Deferred[Command | None] = Deferred()
        self.table.register(1, lambda connection, command: response_to(command))
        self.table.register(2, lambda connection, command: self.later)
        self.server = RemotingServer(self.network, RemotingServerOptions(), self.table)
        self.client = RemotingClient(self.network, RemotingClientOptions())

    def invoke(self, port: int, code: int) -> Deferred[Command]:
        answer = self.client.invoke(f"127.0.0.1:{port}", Command(code), 60)
        self.network.settle()
        return answer

    def test_listen(self) -> None:
        """It answers on the port that it says."""
        port = self.server.listen(0)
        self.assertEqual(self.successResultOf(self.invoke(port, 1)).code, 0)

    def test_listenPort(self) -> None:
        """Without a port it is that of the options."""
        options = RemotingServerOptions(listen_port=10911)
        server = RemotingServer(self.network, options, self.table)
        self.assertEqual(server.listen(), 10911)

    def test_inUse(self) -> None:
        """A port in use is one sentence for the operator."""
        port = self.server.listen(0)
        other = RemotingServer(self.network, RemotingServerOptions(), self.table)
        error = self.assertRaises(ConfigurationError, other.listen, port)
        self.assertEqual(
            str(error), f"Cannot listen on 0.0.0.0:{port}: the port is in use."
        )

    def test_twoTables(self) -> None:
        """Two ports of one broker answer from their own tables."""
        vip = RemotingServer(
            self.network, RemotingServerOptions(), ResponderTable(), self.server.turns
        )
        main_port, vip_port = self.server.listen(0), vip.listen(0)
        self.assertEqual(self.successResultOf(self.invoke(main_port, 1)).code, 0)
        self.assertEqual(self.successResultOf(self.invoke(vip_port, 1)).code, 3)

    def test_stoppedClient(self) -> None:
        """Requests to a client that answers none leave room for those to another."""
        connections: list[IConnection] = []
        self.table.register(3, lambda connection, _: connections.append(connection))
        port = self.server.listen(0)
        self.invoke(port, 3)
        asked = ResponderTable()
        asked.register(326, lambda connection, command: response_to(command))
        self.client = RemotingClient(self.network, RemotingClientOptions(), asked)
        self.invoke(port, 3)
        stopped, alive = connections
        self.network.transports[0].pauseProducing()
        unanswered = [stopped.request(Command(326), 10) for _ in range(1000)]
        answer = alive.request(Command(326), 10)
        self.network.settle()
        self.assertEqual(self.successResultOf(answer).code, 0)
        self.assertNoResult(unanswered[-1])
        for each in unanswered:
            each.addErrback(lambda failure: None)

    def test_proxiesChangeWhileItRuns(self) -> None:
        """Who may speak for others is another list from then on, and nothing else."""
        limits = self.server.group.limits
        options = RemotingServerOptions(
            rocketbroker_proxy_protocol_from="10.0.0.0/8",
            server_channel_max_idle_time_seconds=5,
        )
        self.server.configure(options)
        expected = attrs.evolve(limits, proxies="10.0.0.0/8")
        self.assertEqual(self.server.group.limits, expected)

    def test_stop(self) -> None:
        """A stopped server has no connections and accepts none."""
        port = self.server.listen(0)
        self.invoke(port, 1)
        stopped = self.server.stop()
        self.network.settle()
        self.successResultOf(stopped)
        self.assertEqual(self.server.group.connections, set())
        self.failureResultOf(self.invoke(port, 1), ConnectionLost)
        self.successResultOf(self.server.stop())

    def test_stopNeverStarted(self) -> None:
        """A server that never listened stops at once."""
        self.successResultOf(self.server.stop())

    def test_stopAnswers(self) -> None:
        """An answer under way still goes out."""
        answer = self.invoke(self.server.listen(0), 2)
        stopped = self.server.stop()
        self.network.advance(1)
        self.assertNoResult(stopped)
        self.later.callback(Command(0, body=b"at last"))
        self.network.advance(0.1)
        self.network.settle()
        self.assertEqual(self.successResultOf(answer).body, b"at last")
        self.successResultOf(stopped)

    def test_stopGrace(self) -> None:
        """An answer that does not come is not waited for longer than the grace."""
        answer = self.invoke(self.server.listen(0), 2)
        stopped = self.server.stop()
        self.network.pump([0.05] * 70)
        self.successResultOf(stopped)
        self.failureResultOf(answer, ConnectionLost)

    def test_stopSlowPeer(self) -> None:
        """A peer that does not take its answers is cut off after the grace."""
        answer = self.invoke(self.server.listen(0), 2)
        for transport in self.network.transports:
            transport.pauseProducing()
        self.later.callback(Command(0, body=bytes(1000)))
        stopped = self.server.stop()
        self.network.advance(2.9)
        self.assertNoResult(stopped)
        self.network.advance(0.2)
        self.successResultOf(stopped)
        self.failureResultOf(answer, ConnectionLost)

    def test_timersEnd(self) -> None:
        """A stopped server and client leave no timer behind."""
        self.invoke(self.server.listen(0), 1)
        stopped = [self.client.stop(), self.server.stop()]
        self.network.settle()
        for each in stopped:
            self.successResultOf(each)
        self.assertEqual(self.network.getDelayedCalls(), [])
