# -*- test-case-name: tests.proxy.test_sends -*-
"""Messages to be sent: what is checked of them, and the request that a broker gets.

C{docs/facts/proxy.md} 6. Pure: the time is an argument.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from rocketbroker.proxy.messages_pb2 import Code, Encoding, Message, MessageType
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.records import batches, names, properties, sysflags
from rocketbroker.records.hashing import java_hash
from rocketbroker.routing.send_requests import SendRequest
from rocketbroker.wire.codes import RequestCode

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")

#: Messages with one of these rest for a while.
_DELAYS: Final = (
    properties.DELAY,
    properties.TIMER_DELIVER_MS,
    properties.TIMER_DELAY_SEC,
    properties.TIMER_DELAY_MS,
)

#: The multiplier of the jump hash, Guava's consistentHash.
_JUMP: Final = 2862933555777941757


def jump_hash(text: str, buckets: int) -> int:
    """The queue of a message group among so many: the same as long as these stay.

    @param buckets: at least one.
    """
    state = java_hash(text) & 0xFFFFFFFFFFFFFFFF
    candidate = 0
    while True:
        state = (state * _JUMP + 1) & 0xFFFFFFFFFFFFFFFF
        following = int((candidate + 1) / (((state >> 33) + 1) / 2147483648.0))
        if not 0 <= following < buckets:
            return candidate
        candidate = following


def milliseconds(stamp: Timestamp) -> int:
    """Milliseconds since 1970."""
    return stamp.seconds * 1000 + stamp.nanos // 1_000_000


def check_messages(
    messages: Sequence[Message], settings: ProxySettings, now_ms: int
) -> None:
    """Refuse what cannot be sent; the name of the topic is checked elsewhere.

    @raise Refusal: it cannot.
    """
    if not messages:
        raise Refusal(Code.MESSAGE_CORRUPTED, "no message to send")
    for message in messages:
        if message.topic != messages[0].topic:
            raise Refusal(Code.MESSAGE_CORRUPTED, "topic in message is not same")
        _check_body(message, settings)
        _check_properties(message, settings)
        _check_times(message, settings, now_ms)
        _check_group(message, settings)


def _check_body(message: Message, settings: ProxySettings) -> None:
    size = len(message.body)
    if not size and settings.enable_message_body_empty_check:
        raise Refusal(Code.MESSAGE_BODY_EMPTY, "message body cannot be empty")
    if 0 < settings.max_message_size < size:
        raise Refusal(
            Code.MESSAGE_BODY_TOO_LARGE,
            f"message body cannot exceed the max {settings.max_message_size}",
        )


def _check_properties(message: Message, settings: ProxySettings) -> None:
    system, user = message.system_properties, message.user_properties
    if len(user) > settings.user_property_max_num:
        raise Refusal(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"too many user properties, max is {settings.user_property_max_num}",
        )
    code = Code.ILLEGAL_MESSAGE_PROPERTY_KEY
    for name, value in user.items():
        if name in properties.RESERVED:
            raise Refusal(code, f"property is used by system: {name}")
        for what, text in (("key", name), ("value", value)):
            if _CONTROL.search(text):
                words = f"the {what} of property cannot contain control character"
                raise Refusal(code, words)
    tag = system.tag
    if tag:
        _check_words("tag", tag, Code.ILLEGAL_MESSAGE_TAG)
        if "|" in tag:
            raise Refusal(Code.ILLEGAL_MESSAGE_TAG, "tag cannot contain '|'")
    for key in system.keys:
        _check_words("key", key, Code.ILLEGAL_MESSAGE_KEY)
    texts = (*user.keys(), *user.values(), tag, *system.keys)
    if sum(len(one.encode()) for one in texts) > settings.max_user_property_size:
        raise Refusal(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            "the total size of user property is too large, max is "
            f"{settings.max_user_property_size}",
        )
    if not system.message_id.strip():
        raise Refusal(Code.ILLEGAL_MESSAGE_ID, "message id cannot be empty")


def _check_words(what: str, text: str, code: Code) -> None:
    if not text.strip():
        raise Refusal(code, f"{what} cannot be the char sequence of whitespace")
    if _CONTROL.search(text):
        raise Refusal(code, f"{what} cannot contain control character")


def _check_times(message: Message, settings: ProxySettings, now_ms: int) -> None:
    system = message.system_properties
    if system.message_type == MessageType.TRANSACTION:
        most = settings.max_transaction_recovery_second
        if system.orphaned_transaction_recovery_duration.seconds > most:
            raise Refusal(
                Code.BAD_REQUEST,
                "the max transaction recovery time of message is too large, max is "
                f"{most}",
            )
    if system.HasField("delivery_timestamp"):
        rest = milliseconds(system.delivery_timestamp) - now_ms
        if rest > settings.max_delay_time_mills:
            raise Refusal(
                Code.ILLEGAL_DELIVERY_TIME,
                "the max delay time of message is too large, max is "
                f"{settings.max_delay_time_mills}",
            )


def _check_group(message: Message, settings: ProxySettings) -> None:
    group = message.system_properties.message_group
    code, most = Code.ILLEGAL_MESSAGE_GROUP, settings.max_message_group_size
    if not group:
        return
    if not group.strip():
        words = "message group cannot be the char sequence of whitespace"
        raise Refusal(code, words)
    if most > 0 and len(group.encode()) >= most:
        raise Refusal(code, f"message group exceed the max size {most}")
    if _CONTROL.search(group):
        raise Refusal(code, "message group cannot contain control character")


def properties_of(message: Message, peer: str) -> dict[str, str]:
    """The properties that are stored.

    @param peer: where the call came from, C{ip:port}.
    """
    system = message.system_properties
    found = dict(message.user_properties)
    if system.HasField("tag"):
        found[properties.TAGS] = system.tag
    if system.keys:
        found[properties.KEYS] = " ".join(system.keys)
    found[properties.UNIQUE_KEY] = system.message_id
    if system.message_type == MessageType.TRANSACTION:
        found[properties.TRANSACTION_PREPARED] = "true"
        if system.HasField("orphaned_transaction_recovery_duration"):
            seconds = system.orphaned_transaction_recovery_duration.seconds
            found[properties.CHECK_IMMUNITY_SECONDS] = str(seconds)
    if system.HasField("delivery_timestamp"):
        deliver = milliseconds(system.delivery_timestamp)
        found[properties.TIMER_DELIVER_MS] = str(deliver)
    found[properties.RECONSUME_TIME] = str(system.delivery_attempt)
    found[properties.PRODUCER_GROUP] = message.topic.name
    if system.message_group:
        found[properties.SHARDING_KEY] = system.message_group
    if system.trace_context:
        found[properties.TRACE_CONTEXT] = system.trace_context
    found[properties.BORN_HOST] = system.born_host.strip() or peer
    found[properties.BORN_TIMESTAMP] = str(milliseconds(system.born_timestamp))
    return found


def kind_of(stored: dict[str, str]) -> str:
    """The type of a message, as topics have it, by its properties."""
    if stored.get(properties.TRANSACTION_PREPARED) == "true":
        return "TRANSACTION"
    if any(name in stored for name in _DELAYS):
        return "DELAY"
    return "FIFO" if properties.SHARDING_KEY in stored else "NORMAL"


def check_kind(expected: str, topic: str, stored: dict[str, str]) -> None:
    """Refuse a message of another type than its topic's.

    @param expected: the topic's.
    @raise Refusal: it is of another one.
    """
    if names.is_retry_topic(topic) or names.is_dlq_topic(topic):
        return
    if expected == "MIXED" or properties.TRANSFER_FLAG in stored:
        return
    kind = kind_of(stored)
    if kind != expected:
        raise Refusal(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
            "TopicMessageType validate failed, the expected type is "
            f"{expected}, but actual type is {kind}",
        )


def _sys_flag(message: Message, stored: dict[str, str]) -> int:
    flag = 0
    if message.system_properties.body_encoding == Encoding.GZIP:
        flag |= sysflags.COMPRESSED
    if stored.get(properties.TRANSACTION_PREPARED) == "true":
        flag |= sysflags.TRANSACTION_PREPARED
    return flag


def request_of(
    topic: str, messages: Sequence[Message], stored: Sequence[dict[str, str]]
) -> SendRequest:
    """The request with these messages: one, or a batch.

    @param stored: the properties of each.
    """
    first, kept = messages[0], stored[0]
    ext = {
        "a": topic,
        "b": topic,
        "c": names.AUTO_CREATE_TOPIC,
        "d": "4",
        "f": str(_sys_flag(first, kept)),
        "g": kept[properties.BORN_TIMESTAMP],
        "h": "0",
        "j": "0",
        "k": "false",
        "m": "false",
    }
    keys = tuple(one[properties.UNIQUE_KEY] for one in stored)
    if len(messages) == 1:
        ext["i"] = properties.to_text(kept)
        if names.is_retry_topic(topic):
            ext["j"] = kept[properties.RECONSUME_TIME]
        return SendRequest(topic, RequestCode.SEND_MESSAGE_V2, ext, first.body, keys)
    ext["i"] = ""
    ext["m"] = "true"
    parts = [
        batches.encode_part(0, message.body, properties.encode(one))
        for message, one in zip(messages, stored, strict=True)
    ]
    body = b"".join(parts)
    return SendRequest(topic, RequestCode.SEND_BATCH_MESSAGE, ext, body, keys)
