# -*- test-case-name: tests.broker.clients.test_queue_assignment -*-
"""Which queues a member of a group consumes, decided here: 400, and how: 401.

Clients that leave it to the broker ask every 20 seconds. The queues are those of all
brokers that have the topic, as name servers know them; a broker without name servers
takes its own. All consume by pulls.

Rules: the broker sheet, section 19.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Self, TypeVar, final

import attrs
from twisted.internet.defer import Deferred

from rocketbroker.broker.clients.consumers import BROADCASTING, ConsumerRegistry
from rocketbroker.broker.json_bodies import decoded, with_body
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.message_request_mode import (
    POP,
    PULL,
    MessageRequestModes,
    RequestMode,
)
from rocketbroker.broker.metadata.topics import READ, TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import (
    NoPermission,
    RequestCodeNotSupported,
    RocketbrokerError,
    SubscriptionGroupNotExist,
    TopicNotExist,
)
from rocketbroker.records.names import is_lmq, is_retry_topic
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.routes import TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fields import Fields

#: For how long a route is taken to be right.
ROUTE_SECONDS: Final = 30.0

#: How many routes are kept: clients ask for any topic. Beyond it all are asked again.
MAX_ROUTES: Final = 4096

T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Question:
    """The body of request 400: who asks for its queues of which topic."""

    topic: str
    consumer_group: str
    client_id: str
    message_model: str | None
    strategy_name: str

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a question for queues")
        return cls(
            topic=fields.text("topic") or "",
            consumer_group=fields.text("consumerGroup") or "",
            client_id=fields.text("clientId") or "",
            message_model=fields.text("messageModel"),
            strategy_name=fields.text("strategyName") or "",
        )


@final
class QueueAssignment:
    """Answers requests 400 and 401."""

    def __init__(
        self,
        seconds: Callable[[], float],
        options: BrokerOptions,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        modes: MessageRequestModes,
        name_servers: Sequence[str],
        ask_route: Callable[[str, str], Deferred[TopicRouteData]],
    ) -> None:
        """
        @param seconds: monotonic time.
        @param ask_route: asks a name server, by its address, for a topic's route.
        """
        self._seconds = seconds
        self._options = options
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._modes = modes
        self._name_servers = tuple(name_servers)
        self._ask_route = ask_route
        self._routes: dict[str, tuple[float, list[MessageQueue]]] = {}

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.QUERY_ASSIGNMENT, self.assign)
        table.register(RequestCode.SET_MESSAGE_REQUEST_MODE, self.set_mode)

    def set_mode(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 401: let a group pull; popping is refused.

        @raise RequestCodeNotSupported: it is to pop, which nobody would answer.
        """
        mode = decoded(request, RequestMode.from_json)
        if is_retry_topic(mode.topic):
            raise NoPermission("retry topic is not allowed to set mode")
        if self._topics.config(mode.topic) is None:
            raise TopicNotExist(f"topic[{mode.topic}] not exist")
        if self._groups.find(mode.consumer_group) is None:
            raise SubscriptionGroupNotExist(
                f"subscription group does not exist: {mode.consumer_group}"
            )
        if mode.mode == POP:
            raise RequestCodeNotSupported(
                f"consuming by pop is not supported; group[{mode.consumer_group}] goes "
                f"on consuming topic[{mode.topic}] by pull"
            )
        return self._modes.put(mode).addCallback(lambda _: response_to(request))

    def assign(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 400: the queues of one member."""
        question = decoded(request, Question.from_json)
        return Deferred.fromCoroutine(self._assign(request, question))

    async def _assign(self, request: Command, question: Question) -> Command:
        topic, group = question.topic, question.consumer_group
        queues = await self._queues(topic)
        if (
            queues
            and question.message_model != BROADCASTING
            and self._options.server_load_balancer_enable
        ):
            online = self._consumers.group(group)
            found = None
            if online is not None:
                found = shares(
                    sorted(queues),
                    sorted(online.client_ids()),
                    question.client_id,
                    question.strategy_name,
                )
        else:
            found = queues or None
        if found is None:
            return with_body(request, {})
        return with_body(
            request,
            {
                "messageQueueAssignments": [
                    {"messageQueue": queue, "mode": PULL} for queue in found
                ]
            },
        )

    async def _queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be read, at all brokers."""
        name = self._options.broker_name
        if is_lmq(topic):
            return [MessageQueue(topic, name, 0)]
        if not self._name_servers:
            config = self._topics.config(topic)
            if config is None or not config.perm & READ:
                return []
            return [MessageQueue(topic, name, n) for n in range(config.read_queue_nums)]
        known = self._routes.get(topic)
        if known is not None and self._seconds() - known[0] < ROUTE_SECONDS:
            return known[1]
        for server in self._name_servers:
            try:
                route = await self._ask_route(server, topic)
            except RocketbrokerError:
                continue
            if len(self._routes) >= MAX_ROUTES:
                self._routes.clear()
            queues = queues_of(topic, route)
            self._routes[topic] = self._seconds(), queues
            return queues
        # What was right is better than nothing: consumers would stand still.
        return [] if known is None else known[1]


def queues_of(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    """The queues of a route that can be read."""
    return [
        MessageQueue(topic, data.broker_name, number)
        for data in route.queue_datas
        if data.perm & READ
        for number in range(data.read_queue_nums)
    ]


def shares(
    queues: Sequence[MessageQueue],
    members: Sequence[str],
    member: str,
    strategy: str,
) -> list[MessageQueue] | None:
    """The queues of one member.

    @param queues: all, sorted.
    @param members: all, sorted.
    @return: none for who is not a member; None for an unknown strategy.
    """
    if strategy not in STRATEGIES:
        return None
    if member not in members:
        return []
    return STRATEGIES[strategy](queues, members.index(member), len(members))


def averaged(queues: Sequence[T], at: int, count: int) -> list[T]:
    """AVG: as many for each member, in one piece; the first ones get one more.

    >>> [averaged("abcde", at, 2) for at in range(2)]
    [['a', 'b', 'c'], ['d', 'e']]
    """
    size, more = divmod(len(queues), count)
    begin = at * size + min(at, more)
    return list(queues[begin : begin + size + (at < more)])


def by_circle(queues: Sequence[T], at: int, count: int) -> list[T]:
    """AVG_BY_CIRCLE: dealt out like cards.

    >>> [by_circle("abcde", at, 2) for at in range(2)]
    [['a', 'c', 'e'], ['b', 'd']]
    """
    return list(queues[at::count])


#: The strategies that clients name.
STRATEGIES: Final[
    dict[str, Callable[[Sequence[MessageQueue], int, int], list[MessageQueue]]]
] = {"AVG": averaged, "AVG_BY_CIRCLE": by_circle}
