# -*- test-case-name: tests.integration.test_proxy_operations -*-
"""The health of a proxy, by gRPC's own protocol: C{grpc.health.v1}.

A proxy that answers at all serves, until it drains. Then those that watch are told so,
and their calls end: otherwise the proxy would wait for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, final

import grpc
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpc_health.v1.health_pb2_grpc import HealthServicer

from rocketbroker.proxy.service import SERVICE

#: What may be asked for: all, or the one service that there is.
SERVICES: Final = ("", SERVICE)

Context = grpc.aio.ServicerContext[Any, Any]


@final
class Health(HealthServicer):  # type: ignore[misc]
    """Tells whether the proxy serves: the methods of the protocol, by their names.

    Those that a later grpcio-health-checking adds are answered as not implemented.
    """

    def __init__(self) -> None:
        self._drains = asyncio.Event()

    def drain(self) -> None:
        """The proxy serves no longer."""
        self._drains.set()

    def _now(self) -> HealthCheckResponse:
        if self._drains.is_set():
            return HealthCheckResponse(status=HealthCheckResponse.NOT_SERVING)
        return HealthCheckResponse(status=HealthCheckResponse.SERVING)

    async def Check(
        self, request: HealthCheckRequest, context: Context
    ) -> HealthCheckResponse:
        """Whether it serves now."""
        if request.service not in SERVICES:
            words = f"there is no service {request.service}"
            await context.abort(grpc.StatusCode.NOT_FOUND, words)
        return self._now()

    async def List(
        self, request: object, context: Context
    ) -> health_pb2.HealthListResponse:
        """The same for each service; newer versions of the protocol have it."""
        now = self._now()
        return health_pb2.HealthListResponse(statuses=dict.fromkeys(SERVICES, now))

    async def Watch(
        self, request: HealthCheckRequest, context: Context
    ) -> AsyncIterator[HealthCheckResponse]:
        """Whether it serves now, and whether it does no longer."""
        is_known = request.service in SERVICES
        unknown = HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
        yield self._now() if is_known else unknown
        was_draining = self._drains.is_set()
        await self._drains.wait()
        if is_known and not was_draining:
            yield self._now()
