# -*- test-case-name: tests.wire.bodies.test_heartbeats -*-
"""Clients about themselves: the bodies of 34 and 46.

Shapes: C{docs/facts/client.md} 15 and 16; C{docs/facts/broker.md} 15.
"""

from __future__ import annotations

from typing import Annotated, Final, Self

import attrs
import msgspec

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.fields import Fields, Int32, Int64
from rocketbroker.wire.steps import Steps

# Java's enums, in the order of their ordinals.
CONSUME_TYPES: Final = ("CONSUME_ACTIVELY", "CONSUME_PASSIVELY", "CONSUME_POP")
MESSAGE_MODELS: Final = ("BROADCASTING", "CLUSTERING")
CONSUME_FROM: Final = (
    "CONSUME_FROM_LAST_OFFSET",
    "CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST",
    "CONSUME_FROM_MIN_OFFSET",
    "CONSUME_FROM_MAX_OFFSET",
    "CONSUME_FROM_FIRST_OFFSET",
    "CONSUME_FROM_TIMESTAMP",
)


#: What one heartbeat may hold, where it is long and read in steps. A consumer is taken
#: over in one step: its topics, their tags and all its expressions have a limit that
#: takes ten milliseconds. Clients have a handful of groups and hundreds of topics.
MAX_ENTRIES: Final = 4096
MAX_TOPICS: Final = 4096
MAX_TAGS: Final = 8192
MAX_CHARACTERS: Final = 256 << 10

#: The subscriptions of one heartbeat, and of all groups of a connection: each is kept
#: as long as that, takes half a kilobyte, and time of the garbage collector.
MAX_SUBSCRIPTIONS: Final = 8192

#: The values of its text, with some more than these have.
MAX_VALUES: Final = 12 * MAX_SUBSCRIPTIONS

#: How many subscriptions, or producers, are read in a step: half a millisecond.
STEP_ENTRIES: Final = 64


class _Written(msgspec.Struct, rename="camel", forbid_unknown_fields=True, gc=False):
    """An object exactly as Java and C++ clients write it."""


class _WrittenSubscription(_Written, gc=False):
    topic: str
    sub_string: str
    tags_set: list[str]
    code_set: list[Int32]
    sub_version: Int64
    expression_type: Annotated[str, msgspec.Meta(min_length=1)]
    class_filter_mode: bool


class _WrittenConsumer(_Written, gc=False):
    group_name: str
    consume_type: str
    message_model: str
    consume_from_where: str
    subscription_data_set: list[_WrittenSubscription]
    unit_mode: bool


class _WrittenProducer(_Written, gc=False):
    group_name: str


class _WrittenHeartbeat(_Written, gc=False):
    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[_WrittenProducer]
    consumer_data_set: list[_WrittenConsumer]
    heartbeat_fingerprint: Int32 = 0
    without_sub: bool = False


@attrs.frozen(kw_only=True)
class SubscriptionData:
    """The subscription of a group to one topic.

    @ivar sub_string: the expression, C{*} for all.
    @ivar tags_set: the tags of an expression of type TAG.
    @ivar code_set: their hash codes.
    @ivar sub_version: when the subscription was made, in ms (Go: in ns).
    """

    topic: str
    sub_string: str = "*"
    tags_set: list[str] = attrs.field(factory=list)
    code_set: list[int] = attrs.field(factory=list)
    sub_version: int = 0
    expression_type: str = "TAG"
    class_filter_mode: bool = False

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no subscription.
        """
        fields = Fields(value, "a subscription")
        return cls(
            topic=fields.text("topic") or "",
            sub_string=fields.text("subString") or "",
            tags_set=fields.strings("tagsSet"),
            code_set=fields.integers("codeSet"),
            sub_version=fields.integer("subVersion", bits=64),
            expression_type=fields.text("expressionType") or "TAG",
            class_filter_mode=fields.boolean("classFilterMode"),
        )

    @classmethod
    def of_limited(cls, value: object) -> Self:
        """The same, with a limit of tags.

        @raise RemoteProtocolError: it is no subscription, or is beyond the limit.
        """
        fields = Fields(value, "a subscription")
        count = max(len(fields.items("tagsSet")), len(fields.items("codeSet")))
        if count > MAX_TAGS:
            raise RemoteProtocolError(
                f"a subscription with {count} tags, the most is {MAX_TAGS}"
            )
        return cls.from_json(value)

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "classFilterMode": self.class_filter_mode,
            "codeSet": self.code_set,
            "expressionType": self.expression_type,
            "subString": self.sub_string,
            "subVersion": self.sub_version,
            "tagsSet": self.tags_set,
            "topic": self.topic,
        }


@attrs.frozen(kw_only=True)
class ConsumerData:
    """One consumer group of a client.

    @ivar consume_type: one of L{CONSUME_TYPES}, None for a name that Java lacks.
    @ivar message_model: one of L{MESSAGE_MODELS}, or None.
    @ivar consume_from_where: one of L{CONSUME_FROM}, or None.
    """

    group_name: str
    consume_type: str | None = "CONSUME_PASSIVELY"
    message_model: str | None = "CLUSTERING"
    consume_from_where: str | None = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: list[SubscriptionData] = attrs.field(factory=list)
    unit_mode: bool = False

    @classmethod
    def of(cls, written: _WrittenConsumer) -> Self:
        """One of the usual form."""
        kind, model = written.consume_type, written.message_model
        where = written.consume_from_where
        return cls(
            group_name=written.group_name,
            consume_type=kind if kind in CONSUME_TYPES else None,
            message_model=model if model in MESSAGE_MODELS else None,
            consume_from_where=where if where in CONSUME_FROM else None,
            subscription_data_set=[
                SubscriptionData(**msgspec.structs.asdict(each))
                for each in written.subscription_data_set
            ],
            unit_mode=written.unit_mode,
        )

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no consumer.
        """
        fields = Fields(value, "a consumer")
        wanted = fields.beans("subscriptionDataSet", SubscriptionData.from_json)
        return cls._of_fields(fields, wanted)

    @classmethod
    def in_steps(cls, value: object) -> Steps[Self]:
        """Read it in steps.

        @raise RemoteProtocolError: it is no consumer, or is beyond a limit.
        """
        fields = Fields(value, "a consumer")
        items = fields.items("subscriptionDataSet")
        if len(items) > MAX_TOPICS:
            raise RemoteProtocolError(
                f"a consumer of {len(items)} topics, the most is {MAX_TOPICS}"
            )
        wanted: list[SubscriptionData] = []
        characters = 0
        for number, item in enumerate(items, 1):
            if item is None:
                continue
            subscription = SubscriptionData.of_limited(item)
            wanted.append(subscription)
            characters += len(subscription.sub_string)
            if characters > MAX_CHARACTERS:
                raise RemoteProtocolError(
                    f"a consumer whose expressions have {characters} characters, the "
                    f"most is {MAX_CHARACTERS}"
                )
            if number % STEP_ENTRIES == 0:
                yield
        return cls._of_fields(fields, wanted)

    @classmethod
    def _of_fields(cls, fields: Fields, wanted: list[SubscriptionData]) -> Self:
        """One with these subscriptions."""
        return cls(
            group_name=fields.text("groupName") or "",
            consume_type=fields.choice("consumeType", CONSUME_TYPES),
            message_model=fields.choice("messageModel", MESSAGE_MODELS),
            consume_from_where=fields.choice("consumeFromWhere", CONSUME_FROM),
            subscription_data_set=wanted,
            unit_mode=fields.boolean("unitMode"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "consumeFromWhere": self.consume_from_where,
            "consumeType": self.consume_type,
            "groupName": self.group_name,
            "messageModel": self.message_model,
            "subscriptionDataSet": self.subscription_data_set,
            "unitMode": self.unit_mode,
        }


@attrs.frozen(kw_only=True)
class ProducerData:
    """One producer group of a client."""

    group_name: str

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no producer.
        """
        return cls(group_name=Fields(value, "a producer").text("groupName") or "")

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {"groupName": self.group_name}


@attrs.frozen(kw_only=True)
class HeartbeatData:
    """The body of a heartbeat (34).

    @ivar heartbeat_fingerprint: the hash of all that does not change from one
        heartbeat to the next; 0: the client speaks the first version.
    @ivar without_sub: the subscriptions are left out, as the broker knows them.
    """

    client_id: str
    producer_data_set: list[ProducerData] = attrs.field(factory=list)
    consumer_data_set: list[ConsumerData] = attrs.field(factory=list)
    heartbeat_fingerprint: int = 0
    without_sub: bool = False

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no heartbeat.
        """
        try:
            written = msgspec.convert(value, _WrittenHeartbeat)
        except msgspec.ValidationError:
            return cls._from_fields(Fields(value, "a heartbeat"))
        return cls(
            client_id=written.client_id,
            producer_data_set=[
                ProducerData(group_name=each.group_name)
                for each in written.producer_data_set
            ],
            consumer_data_set=[
                ConsumerData.of(each) for each in written.consumer_data_set
            ],
            heartbeat_fingerprint=written.heartbeat_fingerprint,
            without_sub=written.without_sub,
        )

    @classmethod
    def in_steps(cls, value: object) -> Steps[Self]:
        """Read a long one in steps.

        @raise RemoteProtocolError: it is no heartbeat, or is beyond a limit.
        """
        fields = Fields(value, "a heartbeat")
        producers: list[ProducerData] = []
        for number, item in enumerate(_entries(fields, "producerDataSet"), 1):
            producers.append(ProducerData.from_json(item))
            if number % STEP_ENTRIES == 0:
                yield
        consumers: list[ConsumerData] = []
        count = 0
        for item in _entries(fields, "consumerDataSet"):
            consumer = yield from ConsumerData.in_steps(item)
            consumers.append(consumer)
            count += len(consumer.subscription_data_set)
            if count > MAX_SUBSCRIPTIONS:
                raise RemoteProtocolError(
                    f"{count} subscriptions, the most is {MAX_SUBSCRIPTIONS}"
                )
            yield
        return cls._of_fields(fields, producers, consumers)

    @classmethod
    def _from_fields(cls, fields: Fields) -> Self:
        """Read what stands there in another form, as leniently as RocketMQ does."""
        return cls._of_fields(
            fields,
            fields.beans("producerDataSet", ProducerData.from_json),
            fields.beans("consumerDataSet", ConsumerData.from_json),
        )

    @classmethod
    def _of_fields(
        cls,
        fields: Fields,
        producers: list[ProducerData],
        consumers: list[ConsumerData],
    ) -> Self:
        """One with these groups."""
        return cls(
            client_id=fields.text("clientID") or "",
            producer_data_set=producers,
            consumer_data_set=consumers,
            heartbeat_fingerprint=fields.integer("heartbeatFingerprint"),
            without_sub=fields.boolean("withoutSub"),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "clientID": self.client_id,
            "consumerDataSet": self.consumer_data_set,
            "heartbeatFingerprint": self.heartbeat_fingerprint,
            "producerDataSet": self.producer_data_set,
            "withoutSub": self.without_sub,
        }


def _entries(fields: Fields, name: str) -> list[object]:
    """The groups of a heartbeat, without null ones.

    @raise RemoteProtocolError: they are too many.
    """
    items = fields.items(name)
    if len(items) > MAX_ENTRIES:
        raise RemoteProtocolError(
            f"{len(items)} entries of {name}, the most is {MAX_ENTRIES}"
        )
    return [item for item in items if item is not None]


@attrs.frozen(kw_only=True)
class CheckClientRequestBody:
    """The body of 46: a subscription to be checked."""

    client_id: str
    group: str
    subscription_data: SubscriptionData

    @classmethod
    def from_json(cls, value: object) -> Self:
        """Read it.

        @raise RemoteProtocolError: it is no such thing.
        """
        fields = Fields(value, "a subscription to be checked")
        return cls(
            client_id=fields.text("clientId") or "",
            group=fields.text("group") or "",
            subscription_data=SubscriptionData.from_json(
                fields.value("subscriptionData")
            ),
        )

    def to_json(self) -> dict[str, object]:
        """The value as plain dicts and lists, for JSON."""
        return {
            "clientId": self.client_id,
            "group": self.group,
            "subscriptionData": self.subscription_data,
        }
