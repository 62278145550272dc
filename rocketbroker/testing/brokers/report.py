# -*- test-case-name: tests.testing.brokers.test_report -*-
"""The report of a failed test: what its broker has logged, and its topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from rocketbroker.client.received import MessageView
from rocketbroker.errors import RocketbrokerError

#: How many lines of the log are shown at most, the last ones.
MAX_LINES: Final = 100

#: How many messages of a topic are shown at most, the first ones.
MAX_MESSAGES: Final = 20

#: How many characters of a body are shown at most.
MAX_CHARACTERS: Final = 100


def report(
    log: str,
    topics: Iterable[str],
    messages: Callable[[str], Sequence[MessageView]],
) -> str:
    """The report.

    @param log: of the broker, during the test.
    @param topics: those of the test.
    @param messages: reads a topic.
    """
    return "\n".join(_lines(log, topics, messages))


def _lines(
    log: str,
    topics: Iterable[str],
    messages: Callable[[str], Sequence[MessageView]],
) -> Iterator[str]:
    lines = log.splitlines()
    yield "log of the broker:"
    if len(lines) > MAX_LINES:
        yield f"  ({len(lines) - MAX_LINES} lines before)"
    yield from (f"  {line}" for line in lines[-MAX_LINES:])
    for topic in topics:
        try:
            found = messages(topic)
        except RocketbrokerError as problem:
            yield f"topic {topic} cannot be read: {problem}"
            continue
        yield f"topic {topic}: {len(found)} messages"
        yield from (f"  {shown(message)}" for message in found[:MAX_MESSAGES])
        if len(found) > MAX_MESSAGES:
            yield f"  ({len(found) - MAX_MESSAGES} more)"


def shown(message: MessageView) -> str:
    """One message as one line."""
    text = message.body.decode("utf-8", "backslashreplace")
    parts = [f"queue {message.queue.queue_id} offset {message.offset}:", repr(text)]
    if len(parts[1]) > MAX_CHARACTERS:
        parts[1] = f"{parts[1][:MAX_CHARACTERS]}... ({len(message.body)} bytes)"
    if message.tag:
        parts.append(f"tag {message.tag}")
    if message.keys:
        parts.append(f"keys {' '.join(message.keys)}")
    if message.attempt > 1:
        parts.append(f"attempt {message.attempt}")
    return " ".join(parts)
