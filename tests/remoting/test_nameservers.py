"""Choosing a name server."""

from __future__ import annotations

from random import Random

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.remoting import RemotingClientOptions, RemotingServerOptions
from rocketbroker.errors import ConnectionLost
from rocketbroker.remoting.client import RemotingClient
from rocketbroker.remoting.interfaces import Responder
from rocketbroker.remoting.nameservers import NameServers
from rocketbroker.remoting.server import RemotingServer
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.network import MemoryNetwork
from rocketbroker.wire.command import Command


def answer_with(body: bytes) -> Responder:
    """A responder that always says the same."""
    return lambda connection, command: Command(0, body=body)


class NameServersTests(SynchronousTestCase):
    """Three name servers on the memory network."""

    def setUp(self) -> None:
        """Each answers with its port."""
        self.network = MemoryNetwork()
        self.servers: dict[str, RemotingServer] = {}
        for port in (9001, 9002, 9003):
            table = ResponderTable()
            table.register(1, answer_with(f"127.0.0.1:{port}".encode()))
            server = RemotingServer(self.network, RemotingServerOptions(), table)
            server.listen(port)
            self.servers[f"127.0.0.1:{port}"] = server
        self.client = RemotingClient(self.network, RemotingClientOptions())
        self.name_servers = NameServers(self.client, list(self.servers), Random(4))

    def ask(self) -> Deferred[Command]:
        answer = self.name_servers.invoke(Command(1), 3)
        self.network.settle()
        return answer

    def asked(self) -> str:
        return self.successResultOf(self.ask()).body.decode()

    def stop(self, address: str) -> None:
        self.servers[address].stop()
        self.network.settle()

    def test_sticky(self) -> None:
        """The same one is asked as long as its connection is up."""
        self.assertEqual(len({self.asked() for _ in range(5)}), 1)

    def test_next(self) -> None:
        """When it goes away the next in the list is asked."""
        first = self.asked()
        order = self.name_servers.addresses
        self.stop(first)
        self.assertEqual(self.asked(), order[(order.index(first) + 1) % 3])

    def test_oneAttempt(self) -> None:
        """A failure is reported; the call after it goes to the next one."""
        for address in self.servers:
            self.stop(address)
        tried = []
        for _ in range(3):
            self.failureResultOf(self.ask(), ConnectionLost)
            tried.append(self.name_servers.chosen)
        self.assertEqual(len(set(tried)), 3)

    def test_changed(self) -> None:
        """One that is not in the list any more is closed and not asked."""
        first = self.asked()
        others = [address for address in self.servers if address != first]
        self.name_servers.set_addresses(others)
        self.network.settle()
        self.assertIsNone(self.client.connection(first))
        self.assertIn(self.asked(), others)

    def test_unchanged(self) -> None:
        """The same list, or an empty one, changes nothing."""
        before = self.name_servers.addresses
        self.name_servers.set_addresses(sorted(before))
        self.name_servers.set_addresses([])
        self.assertIs(self.name_servers.addresses, before)

    def test_stays(self) -> None:
        """A new list that contains the chosen one keeps it."""
        first = self.asked()
        self.name_servers.set_addresses([first, "127.0.0.1:9"])
        self.assertEqual(self.asked(), first)

    def test_spread(self) -> None:
        """Clients begin at random ones."""
        chosen = {
            NameServers(self.client, list(self.servers), Random(seed)).choose()
            for seed in range(20)
        }
        self.assertEqual(chosen, set(self.servers))

    def test_none(self) -> None:
        """Without any there is nobody to ask."""
        self.name_servers = NameServers(self.client, [], Random(1))
        self.failureResultOf(self.ask(), ConnectionLost)
