# -*- test-case-name: tests.broker.replicas.test_escape_bridge -*-
"""Sends to another group what an acting master has to store, and may not store itself.

Its log is a copy of the master's, so a due message, or an open transaction, goes to a
broker of another name that has the topic: any that can be written, in turn; there to
the queue that the message's own number falls on, so that what was in one queue stays in
one queue, in its order, while the route lasts. (RocketMQ takes queues in turn, too.)

Only with enableRemoteEscape. A message counts as put if the other broker says SEND_OK;
anything else is tried again later by who has brought it, so none is lost. One that was
stored there though its answer is lost comes twice.

C{docs/facts/ha.md} 14.
"""

from __future__ import annotations

from typing import Final, final

from twisted.logger import Logger

from rocketbroker.broker.messages.escaped import Escaped
from rocketbroker.broker.metadata.topics import WRITE
from rocketbroker.broker.registration.member_group import MASTER_ID
from rocketbroker.broker.registration.name_server_api import Caller, successful
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import RocketbrokerError, ServiceNotAvailable, TopicNotExist
from rocketbroker.records.names import AUTO_CREATE_TOPIC
from rocketbroker.records.properties import PRODUCER_GROUP
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import SendMessageRequestHeaderV2

#: How long another broker may take to store a message.
SEND_SECONDS: Final = 3.0

#: What a send says of a topic that is to be made; here it is there.
_DEFAULT_QUEUES: Final = 8


@final
class EscapeBridge:
    """The bridge.

    @ivar sent: how many messages other brokers have taken.
    @ivar failures: how many they have not, each time it was tried.
    """

    _log = Logger()

    def __init__(
        self, client: Caller, routes: RouteCache, options: BrokerOptions
    ) -> None:
        self.sent = 0
        self.failures = 0
        self.is_open = (
            options.enable_remote_escape and options.enable_slave_acting_master
        )
        self._client = client
        self._routes = routes
        self._own_name = options.broker_name
        self._group = f"InnerProducerGroup_{options.broker_name}_{options.broker_id}"
        self._turn = 0
        self._problem = ""

    async def put(self, escaped: Escaped) -> bool:
        """Store a message elsewhere.

        @return: whether another broker has it; if not, try again later.
        """
        try:
            await self._put(escaped)
        except RocketbrokerError as error:
            self.failures += 1
            self._log_problem(escaped.topic, str(error))
            return False
        self.sent += 1
        self._problem = ""
        return True

    async def _put(self, escaped: Escaped) -> None:
        """L{put}.

        @raise RocketbrokerError: nobody has taken it.
        """
        if not self.is_open:
            raise ServiceNotAvailable("enableRemoteEscape is off")
        topic = escaped.topic
        route = await self._routes.route(topic)
        choices = [] if route is None else self._choices(route)
        if not choices:
            self._routes.forget(topic)
            raise TopicNotExist("no other broker takes messages of it")
        self._turn += 1
        queues, address = choices[self._turn % len(choices)]
        message = escaped.message
        header = SendMessageRequestHeaderV2(
            producer_group=escaped.properties.get(PRODUCER_GROUP, self._group),
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=_DEFAULT_QUEUES,
            queue_id=escaped.queue_id % queues.write_queue_nums,
            sys_flag=escaped.sys_flag,
            born_timestamp=message.born_ms,
            flag=message.flag,
            properties=escaped.property_text,
            reconsume_times=message.reconsume_times,
            unit_mode=False,
            batch=False,
            broker_name=queues.broker_name,
        )
        code = RequestCode.SEND_MESSAGE_V2
        command = Command(code, header.to_ext(), message.body)
        try:
            successful(await self._client.invoke(address, command, SEND_SECONDS))
        except RocketbrokerError:
            self._routes.forget(topic)
            raise

    def _choices(self, route: TopicRouteData) -> list[tuple[QueueData, str]]:
        """The queues of other brokers that can be written, with their masters."""
        masters = {
            data.broker_name: data.broker_addrs[MASTER_ID]
            for data in route.broker_datas
            if MASTER_ID in data.broker_addrs
        }
        return [
            (queues, masters[queues.broker_name])
            for queues in sorted(route.queue_datas, key=lambda each: each.broker_name)
            if queues.broker_name != self._own_name
            and queues.broker_name in masters
            and queues.perm & WRITE
            and queues.write_queue_nums > 0
        ]

    def _log_problem(self, topic: str, problem: str) -> None:
        """Log what is in the way, once until a message has been taken."""
        if problem != self._problem:
            self._problem = problem
            self._log.warn(
                "A message of {topic} cannot be put to another broker, and is tried "
                "again later: {problem}",
                topic=topic,
                problem=problem,
            )
