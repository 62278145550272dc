# -*- test-case-name: tests.client.test_rebalance -*-
"""A client among others: heartbeats to all brokers, and farewells.

Brokers know the members of a group by their heartbeats, and tell all of them when one
joins, leaves or is lost (request 40). C{docs/facts/client.md} 1, 2, 15.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final, final

from rocketbroker.client.connections import Connections
from rocketbroker.client.outages import Outages
from rocketbroker.client.routes import Routes
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.settings import ClientSettings
from rocketbroker.client.waits import together
from rocketbroker.config.machine import Identity
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.names import INNER_PRODUCER
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.heartbeats import (
    ConsumerData,
    HeartbeatData,
    ProducerData,
)
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.client import UnregisterClientRequestHeader

_log: Final = logging.getLogger("rocketbroker.client")

#: How long a heartbeat or a farewell may take.
HEARTBEAT_SECONDS: Final = 3.0


def client_id(settings: ClientSettings, identity: Identity) -> str:
    """Who a client is among the members of its groups.

    C{ip@instance}, and C{@unit} behind that. Two clients of one process differ by the
    number by chance, as Java's differ by the time of their start.
    """
    family = socket.AF_INET if len(identity.address) == 4 else socket.AF_INET6
    address = socket.inet_ntop(family, identity.address)
    if family == socket.AF_INET6:
        address = f"[{address}]"
    name = settings.instance_name or f"{identity.process_id}#{identity.token}"
    unit = f"@{settings.unit_name}" if settings.unit_name else ""
    return f"{address}@{name}{unit}"


@final
class Membership:
    """The groups of one client.

    @ivar client_id: who it is.
    """

    def __init__(
        self,
        runtime: Runtime,
        connections: Connections,
        routes: Routes,
        outages: Outages,
        client_id: str,
    ) -> None:
        self._runtime = runtime
        self._connections = connections
        self._routes = routes
        self._outages = outages
        self._producers = {INNER_PRODUCER}
        self._consumers: dict[str, Callable[[], ConsumerData]] = {}
        self._beating: set[str] = set()
        self._introduced = False
        self.client_id = client_id

    @property
    def has_groups(self) -> bool:
        """Whether there is anything that brokers have to know."""
        has_more = bool(self._consumers) or len(self._producers) > 1
        return has_more or self._introduced

    def introduce(self) -> None:
        """Send heartbeats from now on, also without a group: brokers find us by our
        client id."""
        self._introduced = True

    def add_producer(self, group: str) -> None:
        """Heartbeats name this group of producers from now on."""
        self._producers.add(group)

    def add_consumer(self, group: str, data: Callable[[], ConsumerData]) -> None:
        """Heartbeats name this group of consumers from now on.

        @param data: what it wants now.
        """
        self._consumers[group] = data

    def body(self) -> HeartbeatData:
        """The body of a heartbeat."""
        return HeartbeatData(
            client_id=self.client_id,
            producer_data_set=[
                ProducerData(group_name=group) for group in sorted(self._producers)
            ],
            consumer_data_set=[data() for data in self._consumers.values()],
        )

    async def beat(self) -> None:
        """Send a heartbeat to all brokers, to slaves only if there are consumers."""
        if self.has_groups:
            brokers = self._routes.brokers(masters_only=not self._consumers)
            await together(self._runtime, [self.beat_to(one) for one in brokers])

    async def beat_to(self, address: str) -> bool:
        """Send a heartbeat to one broker; whether it has taken it."""
        if not self.has_groups:
            return False
        body = fastjson.dumps(self.body())
        name = f"broker {self._routes.brokers().get(address, address)}"
        self._beating.add(address)
        try:
            await self._connections.ask(
                address, Command(RequestCode.HEART_BEAT, {}, body), HEARTBEAT_SECONDS
            )
        except RocketbrokerError as problem:
            self._outages.failed(name, problem)
            return False
        finally:
            self._beating.discard(address)
        self._outages.worked(name)
        return True

    def is_beating(self, address: str) -> bool:
        """Whether a heartbeat to a broker is under way."""
        return address in self._beating

    async def leave(
        self, producer: str | None = None, consumer: str | None = None
    ) -> None:
        """Tell all brokers that we are not in a group any more."""
        if producer is not None:
            self._producers.discard(producer)
        if consumer is not None:
            self._consumers.pop(consumer, None)
        header = UnregisterClientRequestHeader(
            client_id=self.client_id, producer_group=producer, consumer_group=consumer
        )
        await together(
            self._runtime,
            [self._leave_one(one, header) for one in self._routes.brokers()],
        )

    async def _leave_one(
        self, address: str, header: UnregisterClientRequestHeader
    ) -> None:
        command = Command(RequestCode.UNREGISTER_CLIENT, header.to_ext())
        try:
            await self._connections.ask(address, command, HEARTBEAT_SECONDS)
        except RocketbrokerError as problem:
            _log.debug("No farewell to broker %s: %s", address, problem)
