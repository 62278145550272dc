"""The service as gRPC has it."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.service import SERVICE, Service, peer_of
from tests.proxy.proxied import Proxied

#: The methods of RocketMQ's Proxy 5.3.3.
METHODS = (
    "QueryRoute Heartbeat SendMessage QueryAssignment ReceiveMessage AckMessage "
    "ForwardMessageToDeadLetterQueue EndTransaction Telemetry NotifyClientTermination "
    "ChangeInvisibleDuration RecallMessage"
).split()


class Details:
    """What gRPC tells of a call that has begun."""

    def __init__(self, method: str) -> None:
        self.method = method
        self.invocation_metadata: tuple[tuple[str, str | bytes], ...] = ()


class ServiceTests(SynchronousTestCase):
    """L{Service}."""

    def test_methodsAreThoseOfTheReference(self) -> None:
        """Under its path; others are not there, so that gRPC says so."""
        proxied = Proxied()
        handler = Service(proxied.calls, proxied.telemetry, str).handler()
        for name in METHODS:
            found = handler.service(Details(f"/{SERVICE}/{name}"))
            self.assertIsNotNone(found, name)
        for name in ("PullMessage", "UpdateOffset", "GetOffset", "QueryOffset"):
            self.assertIsNone(handler.service(Details(f"/{SERVICE}/{name}")))

    def test_peersAreAddresses(self) -> None:
        """Not as gRPC writes them."""
        self.assertEqual(peer_of("ipv4:1.2.3.4:5"), "1.2.3.4:5")
        self.assertEqual(peer_of("ipv6:%5B::1%5D:5"), "[::1]:5")
