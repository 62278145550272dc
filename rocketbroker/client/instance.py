# -*- test-case-name: tests.client.test_rebalance -*-
"""One client as brokers see it: a client id, its connections, its timers.

Each consumer has an instance of its own, and all producers of a session share one: as
in Java, where an instance name is made up for each. So two members of one group may
live in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from rocketbroker.client.connection import ServerConnection, Terms
from rocketbroker.client.connections import Connections
from rocketbroker.client.membership import Membership, client_id
from rocketbroker.client.namespace import Namespace, namespace_of
from rocketbroker.client.outages import OutageBoard, Outages
from rocketbroker.client.requests import BrokerRequests
from rocketbroker.client.routes import Routes
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.settings import ClientSettings
from rocketbroker.client.waits import Tasks
from rocketbroker.records.ids import UniqueKeys
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.client import NotifyConsumerIdsChangedRequestHeader


def namespace_fields(settings: ClientSettings) -> dict[str, str]:
    """What each request says of a namespace of the second kind."""
    name = settings.namespace_v2
    return {"nsd": "true", "ns": name} if name else {}


@final
class Instance:
    """One client.

    @ivar runtime: what drives it.
    @ivar settings: its settings.
    @ivar namespace: where its topics and groups are.
    @ivar connections: its connections.
    @ivar routes: where topics are.
    @ivar requests: what it asks brokers.
    @ivar membership: its groups.
    @ivar outages: what is away.
    @ivar observers: what is told of its sends and messages, None for nothing.
    @ivar tasks: what it has running.
    @ivar token: a number by chance.
    @ivar started_ms: when it was made.
    """

    def __init__(
        self,
        runtime: Runtime,
        settings: ClientSettings,
        board: OutageBoard | None = None,
    ) -> None:
        """
        @param board: where those say what is away that belong together.
        """
        identity = runtime.identity()
        self.runtime = runtime
        self.settings = settings
        name = settings.namespace
        self.namespace = Namespace(
            namespace_of(settings.name_servers) if name is None else name
        )
        self.token = identity.token
        self.started_ms = runtime.wall_ms()
        self.observers = settings.observers
        self.outages = Outages(board)
        self.tasks = Tasks(runtime)
        terms = Terms(
            max_bytes=settings.max_frame_bytes,
            fields=namespace_fields(settings),
            tls=settings.tls_terms(),
            credentials=settings.credentials(),
        )
        self.connections = Connections(runtime, terms)
        self.routes = Routes(runtime, self.connections, settings, self.outages)
        self.requests = BrokerRequests(self.connections, self.routes)
        self.membership = Membership(
            runtime,
            self.connections,
            self.routes,
            self.outages,
            client_id(settings, identity),
            settings.heartbeat_v2,
        )
        self._unique_keys = UniqueKeys(*identity, runtime.wall_ms)
        self._rebalances: dict[str, Callable[[], None]] = {}
        self._started = False
        self.connections.watch_made(self._made)
        if self.observers is not None:
            self.connections.watch_made(self._observe)
        self.connections.watch(
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, self._members_changed
        )

    def start(self) -> None:
        """Begin to ask for routes and to send heartbeats; idempotent."""
        if not self._started:
            self._started = True
            self.tasks.spawn(self._refresh_routes())
            self.tasks.spawn(self._beat())

    async def close(self) -> None:
        """Stop all, and close the connections."""
        await self.tasks.end()
        self.outages.close()
        await self.connections.close()

    def unique_key(self) -> str:
        """A new unique key for a message."""
        return self._unique_keys.make()

    def watch_members(self, group: str, rebalance: Callable[[], None]) -> None:
        """Call when the members of a group may have changed."""
        self._rebalances[group] = rebalance

    async def _refresh_routes(self) -> None:
        while True:
            await self.runtime.sleep(self.settings.route_seconds)
            if await self.routes.refresh():
                for rebalance in [*self._rebalances.values()]:
                    rebalance()

    async def _beat(self) -> None:
        while True:
            await self.runtime.sleep(self.settings.heartbeat_seconds)
            await self._drop_strangers()
            await self.membership.beat(again=True)

    async def _drop_strangers(self) -> None:
        """Close connections to servers that are in no route any more."""
        wanted = {*self.routes.brokers(), *self.settings.name_servers}
        for address in self.connections.addresses():
            if address not in wanted:
                await self.connections.drop(address)

    def _observe(self, address: str) -> None:
        """A connection was made."""
        if self.observers is not None and self.connections.to(address).connects > 1:
            self.observers.reconnected(address)

    def _made(self, address: str) -> None:
        """A broker that we were not connected with does not know us."""
        membership = self.membership
        if address in self.routes.brokers() and not membership.is_beating(address):
            self.tasks.spawn(self._introduce(address))

    async def _introduce(self, address: str) -> None:
        if await self.membership.beat_to(address):
            for rebalance in self._rebalances.values():
                rebalance()

    def _members_changed(self, connection: ServerConnection, command: Command) -> None:
        header = NotifyConsumerIdsChangedRequestHeader.from_ext(command.ext)
        rebalance = self._rebalances.get(header.consumer_group)
        if rebalance is not None:
            rebalance()
