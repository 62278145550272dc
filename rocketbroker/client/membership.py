# -*- test-case-name: tests.client.test_rebalance -*-
"""A client among others: heartbeats to all brokers, and farewells.

Brokers know the members of a group by their heartbeats, and tell all of them when one
joins, leaves or is lost (request 40). C{docs/facts/client.md} 1, 2, 15.

Heartbeats of the second version are told apart by a fingerprint of what they say. Who
has it from us keeps our subscriptions, so the next ones leave them out. Nothing is left
out to a broker that we are not connected with, or for which something has changed: it
may have begun anew.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final, final

import attrs

from rocketbroker.client.connections import Connections
from rocketbroker.client.outages import Outages
from rocketbroker.client.routes import Routes
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.settings import ClientSettings
from rocketbroker.client.waits import together
from rocketbroker.config.machine import Identity
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records.hashing import java_hash
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

#: Fields of the answer to a heartbeat: the broker knows the second version; it had
#: another fingerprint of one of the groups.
SUPPORTS_VERSION_2: Final = "IS_SUPPORT_HEART_BEAT_V2"
CHANGED: Final = "IS_SUB_CHANGE"

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


def fingerprint(data: HeartbeatData) -> int:
    """What brokers tell heartbeats of the second version apart by.

    It is the same whoever sends it and whenever its subscriptions were made.
    """
    consumers = [
        attrs.evolve(
            one,
            subscription_data_set=[
                attrs.evolve(wanted, sub_version=0)
                for wanted in one.subscription_data_set
            ],
        )
        for one in data.consumer_data_set
    ]
    plain = attrs.evolve(data, client_id="", consumer_data_set=consumers)
    return java_hash(fastjson.dumps(plain).decode())


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
        version_2: bool = False,
    ) -> None:
        """
        @param version_2: of heartbeats.
        """
        self._runtime = runtime
        self._connections = connections
        self._routes = routes
        self._outages = outages
        self._producers = {INNER_PRODUCER}
        self._consumers: dict[str, Callable[[], ConsumerData]] = {}
        self._beating: set[str] = set()
        self._introduced = False
        self._version_2 = version_2
        self._known: dict[str, int] = {}
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

    async def beat(self, again: bool = False) -> None:
        """Send a heartbeat to all brokers, to slaves only if there are consumers.

        @param again: nothing has changed since the last one.
        """
        if self.has_groups:
            brokers = self._routes.brokers(masters_only=not self._consumers)
            beats = [self.beat_to(one, again) for one in brokers]
            await together(self._runtime, beats)

    async def beat_to(self, address: str, again: bool = False) -> bool:
        """Send a heartbeat to one broker; whether it has taken it.

        @param again: nothing has changed since the last one.
        """
        if not self.has_groups:
            return False
        data = self.body()
        if self._version_2:
            data = self._shortened(data, address, again)
        body = fastjson.dumps(data)
        name = f"broker {self._routes.brokers().get(address, address)}"
        self._beating.add(address)
        try:
            answer = await self._connections.ask(
                address, Command(RequestCode.HEART_BEAT, {}, body), HEARTBEAT_SECONDS
            )
        except RocketbrokerError as problem:
            self._outages.failed(name, problem)
            return False
        finally:
            self._beating.discard(address)
        if self._version_2:
            self._remember(address, data.heartbeat_fingerprint, answer)
        self._outages.worked(name)
        return True

    def _shortened(
        self, data: HeartbeatData, address: str, again: bool
    ) -> HeartbeatData:
        """With the fingerprint, and without what a broker has kept."""
        mark = fingerprint(data)
        is_up = self._connections.to(address).is_up
        if self._known.pop(address, None) != mark or not (again and is_up):
            return attrs.evolve(data, heartbeat_fingerprint=mark)
        consumers = [
            attrs.evolve(one, subscription_data_set=[])
            for one in data.consumer_data_set
        ]
        return attrs.evolve(
            data,
            consumer_data_set=consumers,
            heartbeat_fingerprint=mark,
            without_sub=True,
        )

    def _remember(self, address: str, mark: int, answer: Command) -> None:
        """Keep the fingerprint if the broker has kept what it stands for."""
        ext = answer.ext or {}
        if ext.get(SUPPORTS_VERSION_2) == "true" and ext.get(CHANGED) != "true":
            self._known[address] = mark

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
