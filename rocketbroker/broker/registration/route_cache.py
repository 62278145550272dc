# -*- test-case-name: tests.broker.registration.test_route_cache -*-
"""The routes of topics at other brokers, as name servers know them.

Clients tell every broker all their subscriptions, so that in a cluster most brokers
hear of topics that they do not have. The diagnosis of groups asks here whether another
broker has such a topic, clients that leave the allocation to the broker ask for the
queues of all brokers, and an acting master for brokers that take messages in its place.
Each may ask as often as it likes: an answer holds for L{ANSWER_SECONDS}, as long as a
client keeps a route.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.errors import RocketbrokerError, TopicNotExist
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData

#: For how long an answer is taken to be right.
ANSWER_SECONDS: Final = 30.0

#: So many questions of L{RouteCache.has} are under way at once; the others wait for
#: the next call.
MAX_ASKED: Final = 16

#: So many answers are kept: clients may ask for any name. Beyond it all are forgotten.
MAX_KNOWN: Final = 4096


@final
class _Route:
    """The last answers about one topic.

    @ivar is_there: whether the name servers know it.
    @ivar route: as it was when it was there for the last time.
    @ivar at: when the last answer came.
    """

    __slots__ = ("at", "is_there", "route")

    def __init__(self, is_there: bool, route: TopicRouteData, at: float) -> None:
        self.is_there = is_there
        self.route = route
        self.at = at


@final
class RouteCache:
    """The routes of topics, asked for when they are needed."""

    def __init__(
        self,
        seconds: Callable[[], float],
        broker_name: str,
        name_servers: Callable[[], Sequence[str]],
        ask_route: Callable[[str, str], Deferred[TopicRouteData]],
    ) -> None:
        """
        @param seconds: the monotonic time.
        @param broker_name: that of this broker: name servers may still think that it
            has what was deleted.
        @param name_servers: their addresses now.
        @param ask_route: asks one of them for a topic's route.
        """
        self._seconds = seconds
        self._broker_name = broker_name
        self._name_servers = name_servers
        self._ask_route = ask_route
        self._known: dict[str, _Route] = {}
        self._asking: set[str] = set()

    def has(self, topic: str) -> bool | None:
        """Whether another broker has a topic.

        @return: None as long as no name server has answered. Without name servers there
            are no other brokers.
        """
        if not self._name_servers():
            return False
        if (
            not self._is_fresh(self._known.get(topic))
            and topic not in self._asking
            and len(self._asking) < MAX_ASKED
        ):
            self._asking.add(topic)
            asked = Deferred.fromCoroutine(self._ask(topic))
            asked.addBoth(lambda _: self._asking.discard(topic))
        known = self._known.get(topic)
        if known is None:
            return None
        return known.is_there and any(
            data.broker_name != self._broker_name for data in known.route.queue_datas
        )

    def may_appear(self, topic: str) -> bool:
        """Whether a topic that no broker is known to have may be there later."""
        return bool(self._name_servers()) and self.has(topic) is not True

    async def queues(self, topic: str) -> Sequence[QueueData]:
        """The queues of a topic at all brokers.

        A topic that is not known is asked for each time. While no name server has it,
        the queues heard last are returned: without any, consumers would stand still
        whenever a name server starts anew.
        """
        route = await self.route(topic)
        return () if route is None else route.queue_datas

    async def route(self, topic: str) -> TopicRouteData | None:
        """The whole route, like L{queues}; None if the topic was never heard of."""
        known = self._known.get(topic)
        if known is None or not known.is_there or not self._is_fresh(known):
            await self._ask(topic)
            known = self._known.get(topic)
        return None if known is None else known.route

    def forget(self, topic: str) -> None:
        """Ask anew when the route is needed again: a broker of it did not answer."""
        self._known.pop(topic, None)

    def _is_fresh(self, known: _Route | None) -> bool:
        return known is not None and self._seconds() - known.at < ANSWER_SECONDS

    async def _ask(self, topic: str) -> None:
        """Ask one name server after the other, until one knows the topic."""
        answered = False
        for server in self._name_servers():
            try:
                route = await self._ask_route(server, topic)
            except TopicNotExist:
                answered = True
            except RocketbrokerError:
                continue
            else:
                self._keep(topic, True, route)
                return
        if answered:
            known = self._known.get(topic)
            self._keep(topic, False, TopicRouteData() if known is None else known.route)

    def _keep(self, topic: str, is_there: bool, route: TopicRouteData) -> None:
        if topic not in self._known and len(self._known) >= MAX_KNOWN:
            self._known.clear()
        self._known[topic] = _Route(is_there, route, self._seconds())
