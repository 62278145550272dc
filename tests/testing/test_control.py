"""What moves the time of a broker, and makes it fail."""

from __future__ import annotations

from datetime import timedelta

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.errors import (
    ConfigurationError,
    InvalidParameter,
    RequestCodeNotSupported,
    SystemBusy,
)
from rocketbroker.testing.control import (
    add_fault,
    advance,
    broker_time,
    clear_faults,
    faults,
    milliseconds,
)
from rocketbroker.testing.scripted import ScriptedMachine
from tests.cli.cluster.cluster import BROKER, NAME_SERVER, AdminCluster


def client_of(machine: ScriptedMachine) -> Client:
    """A client on a scripted machine."""
    return Client(Settings(NAME_SERVER, machine=machine, attempts=1))


class SpanTests(SynchronousTestCase):
    """Spans of time."""

    def test_spans(self) -> None:
        """Texts, seconds, and timedeltas."""
        for span, expected in (
            ("3d", 3 * 86_400_000),
            ("+1h30m", 5_400_000),
            ("0.5s", 500),
            ("200ms", 200),
            (6, 6000),
            (0.25, 250),
            (timedelta(days=3), 3 * 86_400_000),
        ):
            self.assertEqual(milliseconds(span), expected)

    def test_otherTextsAreNone(self) -> None:
        """They are refused with what it can be."""
        for text in ("", "3", "d", "-3d", "3d 4h", "3 days", "+"):
            error = self.assertRaises(ConfigurationError, milliseconds, text)
            self.assertIn("is no span of time: give +3d", str(error))


class ControlTests(SynchronousTestCase):
    """A broker in testing mode."""

    def setUp(self) -> None:
        """With topic T, and a client."""
        self.cluster = AdminCluster(testing=True)
        self.addCleanup(self.cluster.close)
        self.cluster.topic("T", 1)
        self.client = client_of(self.cluster.machine)
        self.addCleanup(self.client.close)

    def send(self) -> None:
        """Send a message."""
        Producer(self.client).send(Message("T", b"body"))

    def test_timeIsMoved(self) -> None:
        """And told."""
        before = broker_time(self.client, BROKER)
        self.assertEqual(before.ahead_ms, 0)
        after = advance(self.client, BROKER, "3d")
        self.assertEqual(after.ahead_ms, 3 * 86_400_000)
        self.assertGreaterEqual(after.time_ms - before.time_ms, after.ahead_ms)
        self.assertRaises(InvalidParameter, advance, self.client, BROKER, -1)

    def test_faultsAreHitAndCleared(self) -> None:
        """Each is listed with what it has met."""
        number = add_fault(
            self.client,
            BROKER,
            "busy",
            topic="T",
            request=("send", 15),
            owner="test",
            times=2,
        )
        self.assertRaises(SystemBusy, self.send)
        (fault,) = faults(self.client, BROKER, owner="test")
        self.assertEqual((fault.number, fault.action), (number, "busy"))
        self.assertEqual((fault.hits, fault.times, fault.ms), (1, 2, 0))
        self.assertEqual(fault.request, [10, 15, 310, 320])
        self.assertEqual(fault.last[0]["topic"], "T")
        self.assertEqual(clear_faults(self.client, BROKER, owner="other"), 0)
        self.assertEqual(clear_faults(self.client, BROKER, number), 1)
        self.assertEqual(faults(self.client, BROKER), [])
        self.send()

    def test_otherBrokersRefuse(self) -> None:
        """As they do with any request that they do not know."""
        cluster = AdminCluster()
        self.addCleanup(cluster.close)
        client = client_of(cluster.machine)
        self.addCleanup(client.close)
        for ask in (broker_time, faults, clear_faults):
            self.assertRaises(RequestCodeNotSupported, ask, client, BROKER)
