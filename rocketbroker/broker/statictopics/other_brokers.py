# -*- test-case-name: tests.broker.statictopics.test_other_brokers -*-
"""Requests to the brokers that have the other physical queues of static topics.

Where they are, the route of the topic says. A broker that does not answer is looked for
anew the next time.
"""

from __future__ import annotations

from typing import final

from rocketbroker.broker.context import Caller
from rocketbroker.broker.registration.member_group import MASTER_ID
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import RocketbrokerError, SystemFailure
from rocketbroker.wire.command import Command


@final
class OtherBrokers:
    """The masters of other names.

    @ivar asked: how many requests they were asked.
    @ivar failures: how many of these had no answer.
    """

    def __init__(
        self, client: Caller, routes: RouteCache, options: BrokerOptions
    ) -> None:
        self.asked = 0
        self.failures = 0
        self._client = client
        self._routes = routes
        self._seconds = options.forward_timeout / 1000

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._seconds = settings.broker.forward_timeout / 1000

    async def ask(
        self, topic: str, name: str, code: int, ext: dict[str, str], lo: bool = False
    ) -> Command:
        """Ask the master of a name.

        @param lo: about logical queues, and not physical ones.
        @return: its answer, whatever the code.
        @raise SystemFailure: it is not known, or does not answer.
        """
        address = await self._address(topic, name)
        self.asked += 1
        command = Command(code, {**ext, "lo": str(lo).lower(), "bname": name})
        try:
            return await self._client.invoke(address, command, self._seconds)
        except RocketbrokerError as error:
            self.failures += 1
            self._routes.forget(topic)
            raise SystemFailure(
                f"broker {name} at {address}, which has a queue of {topic}, does not "
                f"answer: {error}"
            ) from error

    async def _address(self, topic: str, name: str) -> str:
        """Where a master is.

        @raise SystemFailure: no name server knows.
        """
        # The route that is kept may be older than the queue's last move.
        for _ in range(2):
            route = await self._routes.route(topic)
            for data in () if route is None else route.broker_datas:
                if data.broker_name == name and MASTER_ID in data.broker_addrs:
                    return data.broker_addrs[MASTER_ID]
            self._routes.forget(topic)
        raise SystemFailure(f"no name server knows a master of {name} with {topic}")
