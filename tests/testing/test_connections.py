"""The connection that keeps what is sent."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.command import Command
from rocketbroker.wire.frames import encode


class RecordedConnectionTests(SynchronousTestCase):
    """A double of IConnection."""

    def setUp(self) -> None:
        """One connection."""
        self.connection = RecordedConnection()

    def test_interface(self) -> None:
        """It is a connection as responders see one."""
        self.assertTrue(verifyObject(IConnection, self.connection))

    def test_answers(self) -> None:
        """What is sent can be read, until it is closed."""
        self.connection.send(encode(Command(0, {"a": "b"})))
        self.connection.close()
        self.connection.send(encode(Command(1)))
        self.connection.oneway(Command(2))
        self.assertEqual([c.ext for c in self.connection.answers()], [{"a": "b"}])
        self.assertEqual(self.connection.oneways, [])

    def test_close(self) -> None:
        """Who asked is told of the end once, and at once if it is over already."""
        closed: list[IConnection] = []
        self.connection.watch_close(closed.append)
        self.connection.close()
        self.connection.close()
        self.connection.watch_close(closed.append)
        self.assertEqual(closed, [self.connection, self.connection])

    def test_host(self) -> None:
        """The other side's address is text for tables and bytes for records."""
        self.assertEqual(self.connection.peer, "127.0.0.1:50000")
        self.assertEqual(self.connection.peer_host, b"\x7f\0\0\1\0\0\xc3\x50")
