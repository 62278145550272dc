# -*- test-case-name: tests.broker.replicas.test_escape_bridge -*-
"""Sends to another group what an acting master has to store, and may not store itself.
And has from another broker a message that was popped there.

Its log is a copy of the master's, so a due message, or an open transaction, goes to a
broker of another name that has the topic: any that can be written, in turn; there to
the queue that the message's own number falls on, so that what was in one queue stays in
one queue, in its order, while the route lasts. (RocketMQ takes queues in turn, too.)
Check points of POP and what acknowledges them all go to one broker.

Only with enableRemoteEscape. A message counts as put if the other broker says SEND_OK;
anything else is tried again later by who has brought it, so none is lost. One that was
stored there though its answer is lost comes twice.

C{docs/facts/ha.md} 14.
"""

from __future__ import annotations

from typing import Final, final

from twisted.logger import Logger

from rocketbroker.broker.context import Caller
from rocketbroker.broker.messages.forwarded_message import ForwardedMessage
from rocketbroker.broker.metadata.topics import WRITE
from rocketbroker.broker.registration.member_group import MASTER_ID
from rocketbroker.broker.registration.name_server_api import successful
from rocketbroker.broker.registration.route_cache import RouteCache
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.errors import RocketbrokerError, ServiceNotAvailable, TopicNotExist
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.names import AUTO_CREATE_TOPIC, REVIVE_PREFIX
from rocketbroker.records.properties import PRODUCER_GROUP
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.wire.bodies.routes import QueueData, TopicRouteData
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)
from rocketbroker.wire.headers.send import SendMessageRequestHeaderV2

#: How long another broker may take to store a message.
SEND_SECONDS: Final = 3.0

#: How long another broker may take to give a message.
PULL_SECONDS: Final = 10.0

#: The flag of a pull that brings its subscription, and commits and waits for nothing.
_HAS_SUBSCRIPTION: Final = 4

#: Answers of a broker that has no message there.
_NOT_FOUND: Final = (
    ResponseCode.PULL_NOT_FOUND,
    ResponseCode.PULL_RETRY_IMMEDIATELY,
    ResponseCode.PULL_OFFSET_MOVED,
)

#: What a send says of a topic that is to be made; here it is there.
_DEFAULT_QUEUES: Final = 8


@final
class EscapeBridge:
    """The bridge by which an acting master's messages reach another group.

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
        self._own = f"{options.broker_name}_{options.broker_id}"
        self._group = f"InnerProducerGroup_{self._own}"
        self._turn = 0
        self._problem = ""

    async def put(self, escaped: ForwardedMessage) -> bool:
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

    async def _put(self, escaped: ForwardedMessage) -> None:
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
        if topic.startswith(REVIVE_PREFIX):
            # Where a check point goes, its acknowledgements go.
            turn = java_hash(topic + self._own_name)
        else:
            turn = self._turn = self._turn + 1
        queues, address = choices[turn % len(choices)]
        header = SendMessageRequestHeaderV2(
            producer_group=escaped.properties.get(PRODUCER_GROUP, self._group),
            topic=topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=_DEFAULT_QUEUES,
            queue_id=escaped.queue_id % queues.write_queue_nums,
            sys_flag=escaped.sys_flag,
            born_timestamp=escaped.born_ms,
            flag=escaped.flag,
            properties=escaped.property_text,
            reconsume_times=escaped.reconsume_times,
            unit_mode=False,
            batch=False,
            broker_name=queues.broker_name,
        )
        code = RequestCode.SEND_MESSAGE_V2
        command = Command(code, header.to_ext(), escaped.body)
        try:
            successful(await self._client.invoke(address, command, SEND_SECONDS))
        except RocketbrokerError:
            self._routes.forget(topic)
            raise

    async def get(
        self, broker: str, topic: str, queue_id: int, offset: int
    ) -> StoredMessage | None:
        """A message that another broker has.

        @return: None if it is gone there.
        @raise RocketbrokerError: it cannot be had now.
        """
        route = await self._routes.route(topic)
        brokers = [] if route is None else route.broker_datas
        found = [each.broker_addrs for each in brokers if each.broker_name == broker]
        if not found or not found[0]:
            self._routes.forget(topic)
            raise ServiceNotAvailable(f"no broker {broker} is known that has {topic}")
        header = PullMessageRequestHeader(
            consumer_group=f"InnerConsumerGroup_{self._own}",
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=1,
            sys_flag=_HAS_SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
            expression_type="TAG",
        )
        command = Command(RequestCode.PULL_MESSAGE, header.to_ext())
        address = found[0][min(found[0])]
        try:
            answer = await self._client.invoke(address, command, PULL_SECONDS)
            if answer.code not in _NOT_FOUND:
                message = decode(successful(answer).body)
                return message if message.queue_offset == offset else None
        except RocketbrokerError:
            self._routes.forget(topic)
            raise
        bounds = PullMessageResponseHeader.from_ext(answer.ext)
        if offset >= bounds.max_offset:
            # A copy may lack it that the master has.
            raise ServiceNotAvailable(f"{broker} has no message {offset} yet")
        return None

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
