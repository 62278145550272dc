# -*- test-case-name: tests.blocking.test_messages -*-
"""Messages to send, and what became of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, final

from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import MessageIllegal
from rocketbroker.records import names, properties
from rocketbroker.records.malformed import Malformed

#: The longest body unless the producer is told otherwise: what brokers take.
MAX_BODY_BYTES: Final = 4 * 1024 * 1024


@final
class Message:
    """A message to send. It is not changed by sending.

    @ivar topic: where to.
    @ivar body: what.
    @ivar flag: any number of 32 bits.
    @ivar properties: all of them, but the unique key.
    """

    __slots__ = ("body", "flag", "properties", "topic")

    def __init__(
        self,
        topic: str,
        body: bytes,
        tags: str | None = None,
        keys: Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        wait: bool = True,
        sharding_key: str | None = None,
    ) -> None:
        """
        @param tags: one tag.
        @param keys: under which it can be found; none holds a space.
        @param properties: the user's own.
        @param wait: whether the broker answers when it is as safe as the broker is
            set up to make it.
        @raise MessageIllegal: a name or value cannot be carried, or is the system's.
        """
        self.topic = topic
        self.body = body
        self.flag = flag
        self.properties = _checked(properties or {})
        self.properties["WAIT"] = "true" if wait else "false"
        key_text = " ".join(keys)
        for name, value in (
            ("TAGS", tags),
            ("KEYS", key_text),
            ("__SHARDINGKEY", sharding_key),
        ):
            if value:
                self.properties[name] = value

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.topic, self.body, self.flag, self.properties)

    def __repr__(self) -> str:
        return f"<message for {self.topic}: {len(self.body)} bytes>"

    def property_bytes(self, unique_key: str) -> bytes:
        """The properties string.

        @raise MessageIllegal: it cannot be carried.
        """
        all_of_them = {properties.UNIQUE_KEY: unique_key, **self.properties}
        try:
            return properties.encode_checked(all_of_them)
        except Malformed as problem:
            raise MessageIllegal(str(problem)) from None


def _again(
    topic: str, body: bytes, flag: int, all_properties: dict[str, str]
) -> Message:
    message = Message(topic, body, flag=flag)
    message.properties = all_properties
    return message


def _checked(given: Mapping[str, str]) -> dict[str, str]:
    for name, value in given.items():
        if name in properties.RESERVED:
            raise MessageIllegal(f"the property {name} is the system's")
        if not name.strip() or not value.strip():
            raise MessageIllegal(f"the property {name!r} has a blank name or value")
    return dict(given)


def check_topic(topic: str) -> None:
    """Refuse a topic to which nobody may send.

    @raise MessageIllegal: it is one.
    """
    problem = names.topic_problem(topic)
    if problem is None and topic in names.NO_SEND_TOPICS:
        problem = f"Sending message to topic[{topic}] is forbidden."
    if problem is not None:
        raise MessageIllegal(problem)


class SendResult(NamedTuple):
    """What became of a send, of one message or of a batch.

    @ivar status: 0; or 10, 11, 12: stored, but not as safely as the broker is set up
        to make it (not on the disk in time; no slave; not on a slave in time).
    @ivar message_ids: the unique key of each message.
    @ivar offset_ids: the offset id of each message, as far as the broker tells.
    @ivar queue: where it went.
    @ivar queue_offset: of the first message.
    """

    status: int
    message_ids: tuple[str, ...]
    offset_ids: tuple[str, ...]
    queue: MessageQueue
    queue_offset: int

    @property
    def message_id(self) -> str:
        """The unique key of the first message."""
        return self.message_ids[0]
