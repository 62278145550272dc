# -*- test-case-name: tests.broker.send.test_send_checks -*-
"""The checks of a send, in RocketMQ's order, and their errors.

C{docs/facts/broker.md} 10.1, 10.4, 11.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.messages.delay_messages import level_of
from rocketbroker.broker.messages.timer_messages import TIMER_NAMES
from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topic_attributes import CLEANUP_POLICY, COMPACTION
from rocketbroker.broker.metadata.topics import (
    INHERIT,
    READ,
    WRITE,
    TopicTable,
    has_batch_queues,
)
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.keyed import text_of
from rocketbroker.errors import (
    FAQ,
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records import names, properties
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.sysflags import (
    COMPRESSED,
    HOST_MASK,
    INNER_BATCH,
    MULTI_TAGS,
    NEED_UNWRAP,
    TRANSACTION_MASK,
)
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from rocketbroker.wire.hot import SendFields

#: Bits of the system flag.
_INNER_BATCH_BITS: Final = INNER_BATCH | NEED_UNWRAP

#: The codes whose headers have names and not letters.
_LONG_NAMES: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)

#: The filter type of topics whose messages have several tags.
MULTI_TAG: Final = "MULTI_TAG"

#: Required fields that most sends do well without: the group, and what only topics
#: that are made by a send need.
NOT_NEEDED: Final = frozenset(
    ("producerGroup", "defaultTopic", "defaultTopicQueueNums", "a", "c", "d")
)

#: Names on which the broker acts, or which it sets itself; a text that holds none of
#: them, wherever, needs no closer look.
SPECIAL: Final = re.compile(
    "DELAY|TRAN_MSG|TIMER_|POP_CK|INNER_|MSG_REGION|TRACE_ON|__STARTD"
)


def header_of(request: Command) -> SendMessageRequestHeader:
    """The header of any kind of send, under the long names.

    @raise SystemFailure: it has no extension fields at all, one that is needed is
        missing, or a number is none.
    """
    if request.ext is None:
        raise SystemFailure("the request has no header fields")
    if request.code in _LONG_NAMES:
        return SendMessageRequestHeader.complete(request.ext, NOT_NEEDED)
    return SendMessageRequestHeaderV2.complete(request.ext, NOT_NEEDED).to_v1()


def fields_of(request: Command) -> SendFields:
    """The fields of a request 10, 310, 320, 324 or 325, whatever its serialization.

    @raise SystemFailure: it has no extension fields at all, or a number is none.
    """
    header = header_of(request)
    return SendFields(
        b=header.topic,
        c=header.default_topic,
        d=header.default_topic_queue_nums,
        e=header.queue_id,
        f=header.sys_flag,
        g=header.born_timestamp,
        h=header.flag,
        i=header.properties or "",
        j=header.reconsume_times or 0,
        k=bool(header.unit_mode),
        m=bool(header.batch),
    )


@final
class SendChecks:
    """The checks that a send passes before its append."""

    def __init__(
        self,
        topics: TopicTable,
        groups: GroupTable,
        options: BrokerOptions,
        max_bytes: int,
        wall_ms: Callable[[], int],
    ) -> None:
        """
        @param max_bytes: maxMessageSize.
        """
        self._topics = topics
        self._groups = groups
        self._options = options
        self._max_bytes = max_bytes
        self._wall_ms = wall_ms
        self._next_queue = 0

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._max_bytes = settings.store.max_message_size

    def topic(self, fields: SendFields) -> TopicConfig:
        """The topic's settings; it is created if that is allowed."""
        topic, options = fields.b, self._options
        until = options.start_accept_send_request_time_stamp
        if self._wall_ms() < until:
            raise SystemFailure(f"broker unable to service, until {until} ms")
        config = self._topics.config(topic)
        if (
            config is not None
            and config.order
            and not options.broker_permission & WRITE
        ):
            raise NoPermission(
                f"the broker[{options.broker_ip1}] sending message is forbidden"
            )
        problem = names.topic_problem(topic)
        if problem is not None:
            raise InvalidParameter(problem)
        if topic in names.NO_SEND_TOPICS:
            raise NoPermission(f"Sending message to topic[{topic}] is forbidden.")
        if config is None:
            exempt = self._is_known_retry(topic)
            config = self._topics.create_for_send(
                topic, fields.c, fields.d, fields.k, exempt
            )
        if config is None:
            raise TopicNotExist(f"topic[{topic}] not exist, apply first please!{FAQ}")
        return config

    def _is_known_retry(self, topic: str) -> bool:
        """Whether it is the retry topic of a group that is there."""
        return names.is_retry_topic(topic) and (
            self._groups.config(names.group_of_retry_topic(topic)) is not None
        )

    def queue_id(
        self, fields: SendFields, config: TopicConfig, connection: IConnection
    ) -> int:
        """The queue that is meant; each in turn if the sender does not mind."""
        queue_id = fields.e
        if queue_id >= max(config.write_queue_nums, config.read_queue_nums):
            raise InvalidParameter(
                f"request queueId[{queue_id}] is illegal, {described(config)} "
                f"Producer: {connection.peer}"
            )
        if queue_id < 0:
            if config.write_queue_nums <= 0:
                raise InvalidParameter(f"topic[{fields.b}] has no queue to write to")
            self._next_queue += 1
            queue_id = self._next_queue % config.write_queue_nums
        return queue_id

    def sys_flag(
        self, fields: SendFields, config: TopicConfig, own: dict[str, str]
    ) -> int:
        """The system flag to store.

        In a topic with batch queues a batch stays one if it has a unique key of its
        own. What else comes there is stored as in any topic: the batches of clients of
        4.9 have none, and their consumers could not take it apart.

        @param own: the properties as they came.
        """
        if names.is_retry_topic(fields.b) and not fields.m:
            group = names.group_of_retry_topic(fields.b)
            if self._groups.find(group) is None:
                raise SubscriptionGroupNotExist(
                    f"subscription group not exist, {group} {FAQ}"
                )
        stays = bool(fields.m and own.get("UNIQ_KEY")) and has_batch_queues(config)
        if stays and fields.f & COMPRESSED:
            raise MessageIllegal("a batch cannot be compressed")
        if config.attributes.get(CLEANUP_POLICY) == COMPACTION:
            # Without compaction the last message of a key would expire with its file.
            raise SystemFailure(f"topic[{fields.b}]: this broker does not compact")
        if fields.f & _INNER_BATCH_BITS and not stays:
            raise MessageIllegal("an inner batch that is none")
        flag = fields.f & ~HOST_MASK | (_INNER_BATCH_BITS if stays else 0)
        return flag | MULTI_TAGS if config.topic_filter_type == MULTI_TAG else flag

    def check_properties(
        self, fields: SendFields, config: TopicConfig, own: dict[str, str]
    ) -> None:
        """Refuse what cannot be done with a message."""
        level_of(own)
        if fields.f & TRANSACTION_MASK and not is_half(fields, own):
            raise MessageIllegal("a prepared message without the property TRAN_MSG")
        if is_half(fields, own) and self._options.reject_transaction_message:
            raise NoPermission(
                f"the broker[{self._options.broker_ip1}] sending transaction message "
                "is forbidden"
            )
        if "INNER_NUM" in own:
            raise MessageIllegal("INNER_NUM of a message that is no inner batch")

    def check_batch(self, fields: SendFields, own: dict[str, str], body: bytes) -> None:
        """Refuse what cannot be done with a batch."""
        if fields.f & TRANSACTION_MASK:
            raise MessageIllegal("a batch cannot be transactional")
        if names.is_retry_topic(fields.b):
            raise MessageIllegal("batch request does not support retry group")
        if own.get("TRAN_MSG", "").lower() == "true" or level_of(own) > 0:
            raise MessageIllegal("a batch can be neither transactional nor delayed")
        if any(name in own for name in TIMER_NAMES) or "INNER_NUM" in own:
            raise MessageIllegal("a batch can be neither timed nor nested")
        if len(body) > self._max_bytes:
            raise MessageIllegal(
                f"a batch of {len(body)} bytes, at most {self._max_bytes}"
            )


def is_half(fields: SendFields, own: dict[str, str]) -> bool:
    """Whether a message is the half one of a transaction.

    What a consumer sends back to be consumed later is none any more.
    """
    return own.get("TRAN_MSG", "").lower() == "true" and not (
        fields.j > 0 and level_of(own) > 0
    )


def is_hot(config: TopicConfig) -> bool:
    """Whether ordinary messages to a topic need no rule of its own."""
    return (
        not names.is_retry_topic(config.topic_name)
        and config.topic_filter_type != MULTI_TAG
        and not has_batch_queues(config)
        and config.attributes.get(CLEANUP_POLICY) != COMPACTION
    )


def ordinary_tag_code(own: str, head: str, tail: str) -> int | None:
    """The tag code of properties among which is none that the broker acts on.

    @param own: the properties as they came.
    @param head: what stands there before the first unique key.
    @param tail: what stands behind it.
    @return: 0 without a tag; None if a closer look is needed.
    """
    if (
        ("_" in head or "_" in tail or "DELAY" in own)
        # Other names that the broker acts on have one of these.
        and (SPECIAL.search(own) is not None or "UNIQ_KEY\x01" in tail)
    ):
        return None
    before, found, rest = own.rpartition("TAGS\x01")
    if not found:
        return 0
    if before and before[-1] != "\x02":
        return None
    tags = rest.partition("\x02")[0]
    return tag_code(tags) if tags else None


def wants_wait(own: str) -> bool:
    """Whether a message's sender waits for disk and copies: WAIT is not false."""
    return (
        "WAIT\x01false" not in own
        or properties.parse(own).get("WAIT", "true").lower() == "true"
    )


def region_of(options: BrokerOptions) -> dict[str, str]:
    """What the broker adds to each message and to each answer of a send."""
    return {
        "MSG_REGION": options.region_id,
        "TRACE_ON": "true" if options.trace_on else "false",
    }


def described(config: TopicConfig) -> str:
    """A topic as Java's C{TopicConfig.toString} writes it."""
    letters = ((READ, "R"), (WRITE, "W"), (INHERIT, "X"))
    perm = "".join(letter if config.perm & bit else "-" for bit, letter in letters)
    attributes = ", ".join(map("=".join, config.attributes.items()))
    return (
        f"TopicConfig [topicName={config.topic_name}, "
        f"readQueueNums={config.read_queue_nums}, "
        f"writeQueueNums={config.write_queue_nums}, perm={perm}, "
        f"topicFilterType={config.topic_filter_type}, "
        f"topicSysFlag={config.topic_sys_flag}, order={text_of(config.order)}, "
        f"attributes={{{attributes}}}]"
    )
