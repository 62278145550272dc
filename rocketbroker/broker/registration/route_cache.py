# -*- test-case-name: tests.broker.registration.test_route_cache -*-
"""Whether topics that this broker does not have are on others: name servers know.

Clients tell every broker all that they subscribe to, so that in a cluster most brokers
hear of topics that they do not have. Who looks for topics that nobody has asks here, as
often as he likes: the answer is what was heard last, and is asked for anew each minute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.errors import RocketbrokerError, TopicNotExist
from rocketbroker.wire.bodies.routes import TopicRouteData

#: For how long an answer is taken to be right.
ANSWER_SECONDS: Final = 60.0

#: So many questions are under way at once; the others wait until somebody asks again.
MAX_ASKED: Final = 16

#: So many answers are kept: topics are what clients say. Beyond it all are forgotten.
MAX_KNOWN: Final = 4096


@final
class RouteCache:
    """What name servers say of topics."""

    def __init__(
        self,
        seconds: Callable[[], float],
        broker_name: str,
        name_servers: Sequence[str],
        ask_route: Callable[[str, str], Deferred[TopicRouteData]],
    ) -> None:
        """
        @param seconds: the monotonic time.
        @param broker_name: that of this broker: name servers may still think that it
            has what was deleted.
        @param name_servers: their addresses.
        @param ask_route: asks one of them for a topic's route.
        """
        self._seconds = seconds
        self._broker_name = broker_name
        self._name_servers = tuple(name_servers)
        self._ask_route = ask_route
        self._known: dict[str, tuple[bool, float]] = {}
        self._asking: set[str] = set()

    def has(self, topic: str) -> bool | None:
        """Whether another broker has a topic.

        @return: None as long as no name server has answered. Without name servers there
            are no other brokers.
        """
        if not self._name_servers:
            return False
        known = self._known.get(topic)
        is_old = known is None or self._seconds() - known[1] >= ANSWER_SECONDS
        if is_old and topic not in self._asking and len(self._asking) < MAX_ASKED:
            self._asking.add(topic)
            asked = Deferred.fromCoroutine(self._ask(topic))
            asked.addBoth(lambda _: self._asking.discard(topic))
            known = self._known.get(topic)
        return None if known is None else known[0]

    def may_appear(self, topic: str) -> bool:
        """Whether a topic that no broker is known to have may be there later."""
        return bool(self._name_servers) and self.has(topic) is not True

    async def _ask(self, topic: str) -> None:
        """Ask one name server after the other, until one answers."""
        for server in self._name_servers:
            try:
                route = await self._ask_route(server, topic)
            except TopicNotExist:
                found = False
            except RocketbrokerError:
                continue
            else:
                names = {data.broker_name for data in route.queue_datas}
                found = bool(names - {self._broker_name})
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[topic] = found, self._seconds()
            return
