"""The registry of producers."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.members import MemberLog
from rocketbroker.broker.clients.producers import ProducerRegistry
from rocketbroker.remoting.cooperative_tasks import Slices
from rocketbroker.testing.connections import RecordedConnection
from tests.broker.rig import logged


class ProducerRegistryTests(SynchronousTestCase):
    """Producers come and go."""

    def setUp(self) -> None:
        """An empty registry and a connection."""
        self.clock = Clock()
        log = MemberLog(Slices(self.clock))
        self.registry = ProducerRegistry(self.clock.seconds, log)
        self.one = RecordedConnection(port=1)

    def beat(self, connection: RecordedConnection, group: str = "P") -> None:
        """One heartbeat."""
        self.registry.register(connection, "c", "JAVA", 479, group)

    def clients(self, group: str = "P") -> list[str]:
        """The client ids of a group."""
        return [member.client_id for member in self.registry.members(group)]

    def test_join(self) -> None:
        """A producer is there once, however often it says so."""
        self.beat(self.one)
        self.beat(self.one)
        self.assertEqual(self.clients(), ["c"])
        self.assertEqual(self.registry.names(), ["P"])
        self.assertEqual(self.clients("Q"), [])

    def test_logged(self) -> None:
        """Clients that come and go are logged with the reason, heartbeats are not."""

        def steps() -> None:
            self.beat(self.one)
            self.beat(self.one)
            self.registry.unregister(self.one, "P")
            self.clock.advance(0)

        self.assertEqual(
            [line.split("producer group 'P', members now: ") for line in logged(steps)],
            [
                ["'c' at 127.0.0.1:1 (JAVA) joined ", "1"],
                ["'c' at 127.0.0.1:1 left ", "0; it unregistered"],
            ],
        )

    def test_unregister(self) -> None:
        """A producer that leaves is gone; the last one removes the group."""
        self.beat(self.one)
        self.beat(self.one, "Q")
        self.registry.unregister(self.one, "P")
        self.registry.unregister(self.one, "P")
        self.assertEqual(self.registry.names(), ["Q"])
        self.assertEqual(self.registry.groups_on(self.one), ("Q",))

    def test_closed(self) -> None:
        """A closed connection leaves all its groups."""
        self.beat(self.one)
        self.beat(self.one, "Q")
        self.beat(RecordedConnection(port=2), "Q")
        self.one.close()
        self.assertEqual((self.clients("P"), self.clients("Q")), ([], ["c"]))

    def test_scan(self) -> None:
        """A producer that is silent for too long is removed and closed."""
        two = RecordedConnection(port=2)
        self.beat(self.one)
        self.clock.advance(100)
        self.beat(two)
        self.clock.advance(20.5)
        self.registry.scan(120.0)
        self.assertTrue(self.one.closed)
        self.assertFalse(two.closed)
        self.assertEqual(self.registry.expired, 1)
        self.assertEqual(self.clients(), ["c"])

    def test_connection(self) -> None:
        """A client is found on its newest connection, as long as it is in a group."""
        two = RecordedConnection(port=2)
        self.assertIsNone(self.registry.connection("c"))
        self.beat(self.one)
        self.beat(self.one, "Q")
        self.beat(two, "Q")
        self.beat(self.one)
        self.assertIs(self.registry.connection("c"), two)
        two.close()
        self.assertIs(self.registry.connection("c"), self.one)
        self.registry.unregister(self.one, "P")
        self.assertIs(self.registry.connection("c"), self.one)
        self.registry.unregister(self.one, "Q")
        self.assertIsNone(self.registry.connection("c"))

    def test_connectionOfOtherName(self) -> None:
        """A client that calls itself something else is not found as it was before."""
        self.beat(self.one)
        self.registry.register(self.one, "d", "JAVA", 479, "P")
        self.assertIsNone(self.registry.connection("c"))
        self.assertIs(self.registry.connection("d"), self.one)
        self.assertEqual(self.registry.groups_on(self.one), ("P",))
        self.one.close()
        self.assertIsNone(self.registry.connection("d"))
