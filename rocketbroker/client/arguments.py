# -*- test-case-name: tests.client.test_arguments -*-
"""Arguments of users that cannot be meant: one sentence each, before anything is sent.

What can be meant in two ways is taken, as a span as a number or a C{timedelta}.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from rocketbroker.errors import ConfigurationError, MessageIllegal
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.topic_view import MessageQueue


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def check_timeout(timeout: object, name: str = "timeout") -> None:
    """Refuse what is no time to wait.

    @param name: how users call it.
    @raise ConfigurationError: it is neither None nor a number that is 0 or more.
    """
    if timeout is None or (isinstance(timeout, int | float) and timeout >= 0):
        return
    raise ConfigurationError(f"{name} is a number of seconds, or None, not {timeout!r}")


def delay_ms(delay: float | timedelta | None) -> int:
    """How long a message rests, 0 for not at all.

    @raise MessageIllegal: it is no span.
    """
    if isinstance(delay, timedelta):
        delay = delay.total_seconds()
    if delay is None:
        return 0
    if not _is_number(delay):
        raise MessageIllegal(f"delay is seconds or a timedelta, not {delay!r}")
    return round(delay * 1000)


def moment_ms(at: float | datetime | None) -> int:
    """When a message is delivered, 0 for at once.

    @raise MessageIllegal: it is no time.
    """
    if isinstance(at, datetime):
        at = at.timestamp()
    if at is None:
        return 0
    if not _is_number(at):
        raise MessageIllegal(f"at is a datetime or seconds since 1970, not {at!r}")
    return round(at * 1000)


def check_search(key: object, message_id: object) -> None:
    """Refuse what nothing can be found by.

    @raise ConfigurationError: it is not one of the two, or no string.
    """
    given = [one for one in (key, message_id) if one is not None]
    if len(given) != 1 or not isinstance(given[0], str) or not given[0]:
        raise ConfigurationError(
            "find is given a key or a message_id, one string, not "
            f"key={key!r}, message_id={message_id!r}"
        )


def bound_ms(name: str, at: float | datetime | None, unless_given: int) -> int:
    """One end of a span of time.

    @param name: how users call it.
    @raise ConfigurationError: it is no time.
    """
    if at is None:
        return unless_given
    try:
        return moment_ms(at)
    except MessageIllegal:
        raise ConfigurationError(
            f"{name} is a datetime or seconds since 1970, not {at!r}"
        ) from None


def check_queue(topic: str, queue: object, chooses: bool = True) -> None:
    """Refuse what is no queue of a topic.

    @param chooses: a function that chooses one will do.
    @raise MessageIllegal: it is none.
    """
    if queue is None or (chooses and callable(queue)):
        return
    if not isinstance(queue, MessageQueue):
        raise MessageIllegal(
            f"a queue is a MessageQueue(topic, broker, number), not {queue!r}"
        )
    if queue.topic != topic:
        raise MessageIllegal(f"{queue} is a queue of another topic than {topic!r}")


def check_queues(queues: object) -> None:
    """Refuse what are no queues to read.

    @raise ConfigurationError: one of them is none, or there is none at all.
    """
    found = list(queues) if isinstance(queues, Iterable) else []
    if not found or not all(isinstance(one, MessageQueue) for one in found):
        raise ConfigurationError(
            f"queues are a list of MessageQueue(topic, broker, number), not {queues!r}"
        )


def messages_of(messages: object) -> list[Message]:
    """The messages of a batch.

    @raise MessageIllegal: something is none.
    """
    found = messages if isinstance(messages, Iterable) else [messages]
    return [checked_message(one) for one in found]


def checked_message(message: object) -> Message:
    """A message to send.

    @raise MessageIllegal: it is none.
    """
    if not isinstance(message, Message):
        raise MessageIllegal(f"messages are given as Message(...), not as {message!r}")
    return message


def check_listener(listener: object) -> None:
    """Refuse what cannot be called.

    @raise ConfigurationError: it cannot.
    """
    if not callable(listener):
        raise ConfigurationError(f"a listener is a function, not {listener!r}")


def check_count(name: str, count: object) -> None:
    """Refuse what is no number of messages.

    @param name: how users call it.
    @raise ConfigurationError: it is not 1 or more.
    """
    if not isinstance(count, int) or count < 1:
        raise ConfigurationError(f"{name} has to be 1 or more, not {count!r}")
