"""The service as gRPC has it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy import messages_pb2 as pb
from rocketbroker.proxy.access import Access
from rocketbroker.proxy.messages_pb2 import Code, Status
from rocketbroker.proxy.service import SERVICE, Service, peer_of
from tests.proxy.proxied import Proxied, gathered

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


class Called:
    """A call as gRPC tells of it."""

    def __init__(self, **headers: str) -> None:
        self._headers = {"x-mq-client-id": "C", **headers}

    def invocation_metadata(self) -> list[tuple[str, str]]:
        """Its headers."""
        return [*self._headers.items()]

    def time_remaining(self) -> float:
        """Until its client gives up."""
        return 10.0

    def peer(self) -> str:
        """Where its client is."""
        return "ipv4:10.0.0.1:5"


class AccessTests(SynchronousTestCase):
    """Calls that are not signed, where all have to be."""

    def setUp(self) -> None:
        """A proxy that knows nobody."""
        proxied = Proxied(authentication_enabled=True)
        access = Access(proxied.runtime, proxied.brokers, proxied.settings)
        service = Service(proxied.calls, proxied.telemetry, str, access)
        self.service = service
        self.handler = service.handler()
        self.refused = Status(
            code=Code.UNAUTHORIZED, message="username cannot be null."
        )

    def method(self, name: str) -> Any:
        """What gRPC calls."""
        return self.handler.service(Details(f"/{SERVICE}/{name}"))

    def test_callIsAnsweredByAStatus(self) -> None:
        """Before it is looked at whether the client has an id."""
        call = self.method("QueryRoute").unary_unary
        for context in (Called(), Called(**{"x-mq-client-id": ""})):
            answer = asyncio.run(call(pb.QueryRouteRequest(), context))
            self.assertEqual(answer, pb.QueryRouteResponse(status=self.refused))

    def test_receiveIsOneFrame(self) -> None:
        """Without a time."""
        frames = self.method("ReceiveMessage").unary_stream(
            pb.ReceiveMessageRequest(), Called()
        )
        found = asyncio.run(gathered(frames))
        self.assertEqual(found, [pb.ReceiveMessageResponse(status=self.refused)])

    def test_streamEndsBehindAStatus(self) -> None:
        """With its first command, whatever that is; no client is kept."""

        async def commands() -> AsyncIterator[pb.TelemetryCommand]:
            yield pb.TelemetryCommand(settings=pb.Settings())
            raise AssertionError("the stream goes on")

        stream = self.method("Telemetry").stream_stream(commands(), Called())
        found = asyncio.run(gathered(stream))
        self.assertEqual(found, [pb.TelemetryCommand(status=self.refused)])
        self.assertEqual(self.service.streams, 0)
