# -*- test-case-name: tests.records.test_outgoing -*-
"""A message to send: checked when it is made, not when it is sent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, final

from rocketbroker.errors import MessageIllegal
from rocketbroker.records import names, properties
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.properties import (
    DELAY,
    PRIORITY,
    SHARDING_KEY,
    TIMER_DELAY_MS,
    TIMER_DELAY_SEC,
    TIMER_DELIVER_MS,
    TRANSACTION_PREPARED,
)

#: Properties of messages that are delivered later.
_DELAYS: Final = (DELAY, TIMER_DELIVER_MS, TIMER_DELAY_SEC, TIMER_DELAY_MS)

#: The longest body unless the producer has another limit: that of brokers.
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
        body: bytes | bytearray | memoryview | str,
        tags: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        wait: bool = True,
        sharding_key: str | None = None,
        delay_level: int = 0,
        deliver_at_ms: int = 0,
        delay_ms: int = 0,
        priority: int | None = None,
    ) -> None:
        """
        @param body: a string is sent as UTF-8.
        @param tags: one tag.
        @param keys: under which it can be found; none holds a space. A string is one
            key, or several with spaces between them.
        @param properties: the user's own.
        @param wait: whether the broker answers when it is as safe as the broker is
            set up to make it.
        @param delay_level: the broker's delay level; 1 is the shortest, 0 no delay.
            A broker takes a level beyond its last one for the last one.
        @param deliver_at_ms: when it is to be delivered, in ms since 1970; 0: at once.
            Only brokers with timers (RocketMQ 5) wait for it.
        @param delay_ms: how long after it is stored, by the broker's clock, it is to be
            delivered; the same brokers.
        @param priority: 0 or more: to pop it before those with a lower one, from a
            topic of the type PRIORITY. Brokers before RocketMQ 5.4 pass it over.
        @raise MessageIllegal: something has the wrong type, cannot be carried, or is
            the system's.
        """
        if type(topic) is not str:
            raise MessageIllegal(f"a topic is a string, not {topic!r}")
        self.topic = topic
        self.body = body if type(body) is bytes else _body_bytes(body)
        self.flag = flag
        self.properties = _checked(properties) if properties else {}
        self.properties["WAIT"] = "true" if wait else "false"
        for name, value in (
            ("TAGS", tags),
            ("KEYS", _key_text(keys) if keys else None),
            (SHARDING_KEY, sharding_key),
        ):
            if value:
                if not isinstance(value, str):
                    what = "an order key" if name == SHARDING_KEY else name
                    raise MessageIllegal(f"{what} is one string, not {value!r}")
                self.properties[name] = value
        if (delay_level != 0) + (deliver_at_ms != 0) + (delay_ms != 0) > 1:
            raise MessageIllegal("a delay level, a time of delivery or a delay: one")
        if delay_level != 0:
            if type(delay_level) is not int or delay_level < 0:
                raise MessageIllegal(f"{delay_level!r} is not a delay level")
            self.properties[DELAY] = str(delay_level)
        if deliver_at_ms != 0:
            if type(deliver_at_ms) is not int or deliver_at_ms < 0:
                raise MessageIllegal(f"{deliver_at_ms!r} is no time of delivery")
            self.properties[TIMER_DELIVER_MS] = str(deliver_at_ms)
        if delay_ms != 0:
            if type(delay_ms) is not int or delay_ms < 0:
                raise MessageIllegal(f"{delay_ms!r} is no delay")
            self.properties[TIMER_DELAY_MS] = str(delay_ms)

        if priority is not None:
            if type(priority) is not int or priority < 0:
                raise MessageIllegal(f"{priority!r} is no priority: give 0 or more")
            self.properties[PRIORITY] = str(priority)

    @property
    def message_type(self) -> str:
        """The type that its topic has to have where a proxy checks it: TRANSACTION,
        DELAY, FIFO, PRIORITY or NORMAL; C{docs/facts/since-5.3.md} 2."""
        own = self.properties
        if own.get(TRANSACTION_PREPARED, "").lower() == "true":
            return "TRANSACTION"
        if any(name in own for name in _DELAYS):
            return "DELAY"
        if SHARDING_KEY in own:
            return "FIFO"
        return "PRIORITY" if PRIORITY in own else "NORMAL"

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


def _body_bytes(body: object) -> bytes:
    if isinstance(body, str):
        try:
            return body.encode("utf-8")
        except UnicodeEncodeError as problem:
            raise MessageIllegal(f"a body is not UTF-8: {problem}") from None
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise MessageIllegal(f"a body is bytes or a string, not {type(body).__name__}")


def _key_text(keys: object) -> str:
    if isinstance(keys, str):
        return keys
    if not isinstance(keys, Iterable):
        raise MessageIllegal(f"keys are strings, not {keys!r}")
    found = [*keys]
    for key in found:
        if not isinstance(key, str) or len(key.split()) != 1 or key != key.strip():
            raise MessageIllegal(f"a key is a string without spaces, not {key!r}")
    return " ".join(found)


def _checked(given: object) -> dict[str, str]:
    if not isinstance(given, Mapping):
        raise MessageIllegal(f"properties are a mapping, not {given!r}")
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise MessageIllegal(
                f"name and value of a property are strings, not {name!r}: {value!r}"
            )
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
