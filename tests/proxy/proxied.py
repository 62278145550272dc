"""A proxy before a cluster of puppets, without gRPC."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from rocketbroker.client.instance import Instance
from rocketbroker.client.settings import ClientSettings
from rocketbroker.proxy.brokers import Brokers
from rocketbroker.proxy.calls import Caller, Calls
from rocketbroker.proxy.clients import Clients
from rocketbroker.proxy.messages_pb2 import (
    Broker,
    ClientType,
    MessageQueue,
    Publishing,
    ReceiveMessageRequest,
    ReceiveMessageResponse,
    Resource,
    Settings,
    Subscription,
    TelemetryCommand,
)
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.telemetry import Telemetry
from rocketbroker.testing.puppet_cluster import PuppetBroker, PuppetCluster
from rocketbroker.testing.runtime import MemoryRuntime

T = TypeVar("T")

CALLER = Caller("C", "1.2.3.4:5", "5.0.8", 23.0)


class Proxied:
    """One broker with topics T, of two queues, and a proxy.

    @ivar commands: what the streams of clients have got.
    """

    def __init__(self, **settings: Any) -> None:
        self.runtime = MemoryRuntime()
        self.cluster = PuppetCluster(self.runtime, "b1")
        for name in ("T", "b1", "DefaultCluster"):
            self.cluster.topics[name] = {"b1": 2}
        self.settings = ProxySettings(**settings)
        self.instance = Instance(
            self.runtime, ClientSettings(name_servers=("ns:9876",), namespace="")
        )
        self.brokers = Brokers(self.instance, "DefaultCluster", 20.0)
        self.clients = Clients(self.settings.channel_expired_timeout)
        parts = (
            self.instance,
            self.brokers,
            self.clients,
            self.settings,
        )
        self.calls = Calls(*parts)
        self.telemetry = Telemetry(*parts)
        self.commands: list[TelemetryCommand] = []

    @property
    def broker(self) -> PuppetBroker:
        """The broker."""
        return self.cluster.brokers["b1"]

    def finish(self, coroutine: Any) -> Any:
        """The result of a call that has all that it needs."""
        return self.runtime.finish(coroutine)

    def consume(self, group: str = "G", client: str = "C") -> None:
        """Let a client be a push consumer."""
        given = Settings(
            client_type=ClientType.PUSH_CONSUMER,
            subscription=Subscription(group=Resource(name=group)),
        )
        came = self.telemetry.settings_came(client, given, self.commands.append)
        self.finish(came)

    def produce(self, *topics: str, client: str = "C") -> None:
        """Let a client be a producer."""
        named = [Resource(name=topic) for topic in topics]
        given = Settings(
            client_type=ClientType.PRODUCER, publishing=Publishing(topics=named)
        )
        came = self.telemetry.settings_came(client, given, self.commands.append)
        self.finish(came)

    def receive(
        self, caller: Caller = CALLER, **more: Any
    ) -> list[ReceiveMessageResponse]:
        """All frames of an answer."""
        queue = MessageQueue(topic=Resource(name="T"), broker=Broker(name="b1"))
        fields = {
            "group": Resource(name="G"),
            "message_queue": queue,
            "batch_size": 32,
            "auto_renew": True,
            **more,
        }
        request = ReceiveMessageRequest(**fields)
        outcome = self.runtime.start(
            gathered(self.calls.receive_message(caller, request))
        )
        self.runtime.settle()
        if not outcome.ended:
            self.runtime.advance(30.0)
        return outcome.value()


async def gathered(frames: AsyncIterator[T]) -> list[T]:
    """All of them."""
    return [frame async for frame in frames]
