# -*- test-case-name: tests.integration.test_proxy -*-
"""One proxy: its clients, its connections to brokers, and a server of gRPC.

It runs in a loop of asyncio, and has no state that another proxy would miss for long.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, final

import grpc
from grpc_health.v1.health_pb2_grpc import add_HealthServicer_to_server

from rocketbroker.client.instance import Instance
from rocketbroker.client.runtimes.on_asyncio import AsyncioRuntime
from rocketbroker.proxy.access import Access
from rocketbroker.proxy.brokers import Brokers
from rocketbroker.proxy.calls import Calls
from rocketbroker.proxy.clients import Clients
from rocketbroker.proxy.front import Front
from rocketbroker.proxy.health import Health
from rocketbroker.proxy.inner_client import client_settings
from rocketbroker.proxy.service import Service
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.telemetry import Telemetry

_log: Final = logging.getLogger("rocketbroker.proxy")

#: How often clients that are silent are looked for.
SCAN_SECONDS: Final = 10.0

#: So many renewals are under way at once.
RENEWED_AT_ONCE: Final = 1024

#: How long it takes until clients know, and what they have sent before is here.
GOAWAY_SECONDS: Final = 0.3

#: What gRPC is told about connections: docs/facts/proxy.md 3.3.
_PING_MS: Final = 60_000


@final
class Proxy:
    """One proxy.

    @ivar calls: what answers calls.
    @ivar service: has the streams, and counts calls.
    @ivar serves: whether it takes calls: it has begun to, and does not drain.
    """

    def __init__(
        self, name_servers: tuple[str, ...], settings: ProxySettings, front: Front
    ) -> None:
        """
        @param front: has the port.
        @raise ConfigurationError: what it is to sign or to encrypt with is not in
            order.
        """
        client = client_settings(name_servers, settings)
        self._settings = settings
        self._front = front
        self._instance = Instance(AsyncioRuntime(), client)
        brokers = Brokers(
            self._instance,
            settings.rocket_mq_cluster_name,
            settings.topic_route_service_cache_refresh_seconds,
        )
        self._clients = Clients(settings.channel_expired_timeout)
        parts = self._instance, brokers, self._clients, settings
        self.calls = Calls(*parts)
        self._telemetry = Telemetry(*parts)
        self._access = None
        if settings.controls_access:
            self._access = Access(self._instance.runtime, brokers, settings)
        peer, access = front.peer, self._access
        self.service = Service(self.calls, self._telemetry, peer, access)
        self._server = grpc.aio.server(
            options=[
                ("grpc.max_receive_message_length", settings.inbound_bytes),
                ("grpc.max_send_message_length", -1),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_recv_ping_interval_without_data_ms", _PING_MS),
                ("grpc.http2.min_ping_interval_without_data_ms", _PING_MS),
                ("grpc.http2.max_ping_strikes", 0),
                ("grpc.max_connection_idle_ms", settings.grpc_client_idle_time_mills),
                ("grpc.so_reuseport", 0),
            ]
        )
        self._server.add_generic_rpc_handlers((self.service.handler(),))
        self._health = Health()
        add_HealthServicer_to_server(self._health, self._server)
        self.serves = False

    async def start(self) -> None:
        """Serve.

        @raise RuntimeError: gRPC finds no port on the loopback address.
        """
        port = self._server.add_insecure_port("127.0.0.1:0")
        self._instance.start()
        await self._server.start()
        self._front.start(port)
        self.serves = True
        tasks = self._instance.tasks
        tasks.spawn(self._scanning())
        tasks.spawn(self._renewing())

    async def stop(self) -> None:
        """Take no more calls, finish those under way, and leave the brokers.

        Clients are told to go elsewhere before the server is: a call that comes when it
        stops is C{CANCELLED}. Then streams end, and receives wait no longer.
        """
        self.serves = False
        self._health.drain()
        await self._front.stop_accepting()
        self._front.dismiss()
        await asyncio.sleep(GOAWAY_SECONDS)
        self.service.drain()
        self.calls.drain()
        await self._server.stop(self._settings.grpc_shutdown_time_seconds)
        await self._front.stop()
        await self.calls.close()
        if self._access is not None:
            await self._access.close()
        await self._instance.close()

    async def _scanning(self) -> None:
        runtime = self._instance.runtime
        while True:
            await runtime.sleep(SCAN_SECONDS)
            now = runtime.monotonic()
            for client in self._clients.silent(now):
                _log.info("Client %s is silent, and is forgotten", client.client_id)
                await self.calls.renewals.clear(client.client_id)
            await self._telemetry.leave()

    async def _renewing(self) -> None:
        runtime = self._instance.runtime
        renewals = self.calls.renewals
        while True:
            await runtime.sleep(self._settings.renew_schedule_period_millis / 1000)
            now = runtime.wall_ms()
            due = renewals.due(now)
            for at in range(0, len(due), RENEWED_AT_ONCE):
                some = due[at : at + RENEWED_AT_ONCE]
                await asyncio.gather(*(renewals.renew(place, now) for place in some))
