# -*- test-case-name: tests.broker.clients.test_queue_assignment -*-
"""Queues assigned to the members of a group by the broker (400), and the mode (401,
402).

Clients that leave the allocation to the broker ask every 20 seconds. The queues are
those of all brokers that have the topic, as name servers know them; a broker without
name servers takes its own. A member that pops may get a broker as a whole, as queue -1.
docs/facts/broker.md 19.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Self, final

import attrs
from twisted.internet.defer import Deferred
from twisted.logger import Logger

from rocketbroker.broker.clients.consumers import BROADCASTING, ConsumerRegistry
from rocketbroker.broker.json_bodies import bounded, with_body
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.message_request_mode import (
    POP,
    MessageRequestModes,
    RequestMode,
)
from rocketbroker.broker.metadata.topics import READ, TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    NoPermission,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.names import is_lmq, is_retry_topic
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.routing.allocation import allocate, allocate_shared
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.bodies.routes import QueueData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import Written, quoted
from rocketbroker.wire.fields import Fields

#: Stands for all queues of a broker.
ANY_QUEUE: Final = -1


@attrs.frozen(kw_only=True)
class Question:
    """The body of request 400: a member that asks for its queues of a topic."""

    topic: str
    consumer_group: str
    client_id: str
    message_model: str | None
    strategy_name: str

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it has another form.
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
    """Answers requests 400, 401 and 402."""

    _log = Logger()

    def __init__(
        self,
        options: BrokerOptions,
        topics: TopicTable,
        groups: GroupTable,
        consumers: ConsumerRegistry,
        modes: MessageRequestModes,
        find_queues: Callable[[str], Awaitable[Sequence[QueueData]]] | None,
    ) -> None:
        """
        @param find_queues: finds the queues of a topic at all brokers; None if there
            are no name servers to know them.
        """
        self._options = options
        self._topics = topics
        self._groups = groups
        self._consumers = consumers
        self._modes = modes
        self._find_queues = find_queues

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.QUERY_ASSIGNMENT, self.assign)
        table.register(RequestCode.SET_MESSAGE_REQUEST_MODE, self.set_mode)
        table.register(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, self.all_modes)

    def set_mode(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 401: let a group pull or pop.

        @raise SystemFailure: it is to pop, which a setting keeps from being served.
        """
        mode = bounded(request, RequestMode.from_json)
        if is_retry_topic(mode.topic):
            raise NoPermission("retry topic is not allowed to set mode")
        if self._topics.config(mode.topic) is None:
            raise TopicNotExist(f"topic[{mode.topic}] not exist")
        if self._groups.find(mode.consumer_group) is None:
            raise SubscriptionGroupNotExist(
                f"subscription group does not exist: {mode.consumer_group}"
            )
        if mode.mode == POP and self._options.pop_consumer_kv_service_enable:
            raise SystemFailure(
                f"popConsumerKVServiceEnable is set, with which consuming by pop is "
                f"not served; group[{mode.consumer_group}] goes on consuming "
                f"topic[{mode.topic}] by pull"
            )
        self._log.info(
            "{peer} set the request mode of group {group!r} in topic {topic!r} to "
            "{mode}",
            peer=connection.who,
            group=mode.consumer_group,
            topic=mode.topic,
            mode=mode.mode,
        )
        return self._modes.put(mode).addCallback(lambda _: response_to(request))

    def all_modes(self, connection: IConnection, request: Command) -> Command:
        """Request 402: all modes that were set, in the form of their file."""
        return with_body(request, self._modes.written())

    def assign(
        self, connection: IConnection, request: Command
    ) -> Deferred[Command | None]:
        """Request 400: the queues of one member."""
        question = bounded(request, Question.from_json)
        return Deferred.fromCoroutine(self._assign(request, question))

    async def _assign(self, request: Command, question: Question) -> Command:
        topic, group = question.topic, question.consumer_group
        queues = await self._queues(topic)
        mode = self._modes.mode(topic, group)
        if self._options.pop_consumer_kv_service_enable:
            mode = RequestMode(topic=topic, consumer_group=group)
        if (
            queues
            and question.message_model != BROADCASTING
            and self._options.server_load_balancer_enable
        ):
            found = self._balance(queues, question, mode)
        else:
            found = queues or None
        if found is None:
            return with_body(request, {})
        return with_body(
            request,
            {"messageQueueAssignments": Written(assigned(found, mode.mode))},
        )

    def _balance(
        self, queues: list[MessageQueue], question: Question, mode: RequestMode
    ) -> list[MessageQueue] | None:
        """The queues of one member of a group that shares them."""
        online = self._consumers.group(question.consumer_group)
        if online is None:
            return None
        members, share = sorted(online.client_ids()), mode.pop_share_queue_num
        strategy, member = question.strategy_name, question.client_id
        if mode.mode != POP:
            return allocate(strategy, queues, members, member)
        if 0 < share < len(members) - 1:
            return allocate_shared(strategy, queues, members, member, share)
        brokers = sorted({queue.broker_name for queue in queues})
        return [MessageQueue(question.topic, name, ANY_QUEUE) for name in brokers]

    async def _queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be read, at all brokers, sorted."""
        name = self._options.broker_name
        if is_lmq(topic):
            return [MessageQueue(topic, name, 0)]
        if self._find_queues is None:
            config = self._topics.config(topic)
            if config is None or not config.perm & READ:
                return []
            return [MessageQueue(topic, name, n) for n in range(config.read_queue_nums)]
        brokers = {
            data.broker_name: data.read_queue_nums
            for data in await self._find_queues(topic)
            if data.perm & READ
        }
        return [
            MessageQueue(topic, name, number)
            for name, count in sorted(brokers.items())
            for number in range(count)
        ]


def assigned(queues: list[MessageQueue], mode: str) -> list[str]:
    """The pieces of the JSON array of assignments.

    All queues are of one topic, and there may be thousands: names are written once.
    """
    pieces: list[str] = []
    end = ""
    name, start = None, ""
    for queue in queues:
        if queue.broker_name != name:
            name = queue.broker_name
            broker, topic = quoted(name), quoted(queue.topic)
            start = f'{{"messageQueue":{{"brokerName":{broker},"queueId":'
            end = f',"topic":{topic}}},"mode":{quoted(mode)}}}'
        pieces.append(f"{start}{queue.queue_id}{end}")
    return ["[", ",".join(pieces), "]"]
