"""The connections of a client."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.connections import Connections
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import ConfigurationError, ConnectionLost
from rocketbroker.testing.scripted import ScriptedMachine, answer
from rocketbroker.wire.command import Command


class ConnectionsTests(SynchronousTestCase):
    """With two servers in memory."""

    def setUp(self) -> None:
        self.machine = ScriptedMachine({"a:1": lambda c: answer(), "b:1": lambda c: []})
        self.connections = Connections(Settings("a:1", machine=self.machine))
        self.addCleanup(self.connections.close)

    def elsewhere(self) -> ServerConnection:
        """The connection of a thread that has ended, after a request."""

        def ask() -> ServerConnection:
            connection = self.connections.to("a:1")
            connection.invoke(Command(1), 1.0)
            return connection

        with ThreadPoolExecutor(1) as pool:
            return pool.submit(ask).result()

    def test_one(self) -> None:
        """A thread has one connection to each server."""
        self.assertIs(self.connections.to("a:1"), self.connections.to("a:1"))
        self.assertIsNot(self.connections.to("a:1"), self.connections.to("b:1"))
        self.assertRaises(ConfigurationError, self.connections.to, "a")

    def test_threads(self) -> None:
        """Another thread has another connection, which can be used meanwhile."""
        mine = self.connections.to("a:1")
        ticket = mine.submit(Command(1), 1.0)
        self.assertIsNot(self.elsewhere(), mine)
        self.assertEqual(mine.collect(ticket).code, 0)

    def test_ended(self) -> None:
        """Connections of threads that have ended are closed for the next new one."""
        self.elsewhere()
        self.assertFalse(self.machine.streams[0].closed)
        self.elsewhere()
        self.assertTrue(self.machine.streams[0].closed)
        self.assertFalse(self.machine.streams[1].closed)

    def test_childOfAForkHasItsOwn(self) -> None:
        """Those of the parent are left alone."""
        parents = self.connections.to("a:1")
        parents.invoke(Command(1), 1.0)
        self.machine.fork()
        mine = self.connections.to("a:1")
        self.assertIsNot(mine, parents)
        self.connections.close()
        self.assertFalse(self.machine.streams[0].closed)

    def test_close(self) -> None:
        """Closing closes those of all threads; the next use opens again."""
        self.elsewhere()
        mine = self.connections.to("b:1")
        ticket = mine.submit(Command(1), 1.0)
        self.connections.close()
        self.assertTrue(all(stream.closed for stream in self.machine.streams))
        self.assertRaises(ConnectionLost, mine.collect, ticket)
        self.assertEqual(self.connections.to("a:1").invoke(Command(1), 1.0).code, 0)

    def test_travels(self) -> None:
        """A pickled copy has no connections."""
        connections = Connections(Settings("a:1"))
        connections.to("a:1")
        again = pickle.loads(pickle.dumps(connections))
        self.assertIsNot(again.to("a:1"), connections.to("a:1"))
