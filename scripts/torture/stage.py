"""One official client and one broker, for scenarios that note what they see."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from scripts.lab.javaclient import JavaClient, JavaError, body_of
from scripts.lab.pair import until

BROKER: Final = "broker-a"

#: The step of a scenario that an error has ended.
EARLY: Final = "ended early"

#: How long something may take that comes by itself, in seconds: a client may ask for
#: the route of its retry topic 20 seconds after it was made, and a transaction is
#: checked once in 30 seconds.
PATIENCE: Final = 90.0

#: How long it is waited for what should not come, in seconds.
QUIET: Final = 1.5

#: Properties whose values are times, ids or numbers of queues chosen by chance.
VARYING: Final = {
    "CONSUME_START_TIME",
    "CORRELATION_ID",
    "DELAY_TIME",
    "DLQ_ORIGIN_MESSAGE_ID",
    "MAX_OFFSET",
    "MIN_OFFSET",
    "ORIGIN_MESSAGE_ID",
    "PGROUP",
    "PUSH_REPLY_TIME",
    "REAL_QID",
    "REPLY_MESSAGE_ARRIVE_TIME",
    "REPLY_TO_CLIENT",
    "SEND_TIME",
    "TRANSACTION_CHECK_TIMES",
    "TRANSACTION_ID",
    "UNIQ_KEY",
    "__transactionId__",
}

#: Of which half a message is a copy: all copies say it, in RocketMQ those that have
#: waited because their producer wished it.
LEFT_OUT: Final = "TRAN_PREPARED_QUEUE_OFFSET"


class Stage:
    """One client and one broker, and what was noted.

    @ivar notes: by scenario and step, in their order.
    """

    def __init__(self, java: JavaClient, address: str) -> None:
        """
        @param address: the broker's, for an operator.
        """
        self.java = java
        self.address = address
        self.notes: dict[str, dict[str, object]] = {}
        self._name = ""
        self._started: list[str] = []

    def run(self, name: str, scenario: Callable[[Stage], None]) -> None:
        """Run one scenario, and end what it has started."""
        self._name = name
        self.notes[name] = {}
        try:
            scenario(self)
        except JavaError as error:
            self.note(EARLY, [error.kind, error.code, error.text])
        finally:
            for started in self._started:
                self.java("stop", name=started)
            self._started.clear()

    def note(self, step: str, what: object) -> None:
        """What has come of a step."""
        self.notes[self._name][step] = what

    def tried(
        self, step: str, what: Callable[..., object], *more: Any, **words: Any
    ) -> None:
        """Note what comes of a call, or its kind of error and response code."""
        try:
            self.note(step, what(*more, **words))
        except JavaError as error:
            self.note(step, f"{error.kind} {error.code}")

    def topic(self, queues: int = 4) -> str:
        """The scenario's topic."""
        name = f"T-{self._name}"
        address = self.address
        self.java("createTopic", topic=name, queues=queues, address=address)
        return name

    def group(self, which: str = "G") -> str:
        """A group of the scenario."""
        return f"{which}-{self._name}"

    def producer(self, name: str = "P", **words: Any) -> str:
        """A started producer."""
        name = self.group(name)
        self.java("producer", name=name, group=name, **words)
        self._started.append(name)
        return name

    def consumer(self, topic: str, name: str = "C", **words: Any) -> str:
        """A started push consumer of the scenario's group."""
        name = self.group(name)
        self.java("consumer", name=name, group=self.group(), topic=topic, **words)
        self._started.append(name)
        return name

    def stop(self, name: str) -> None:
        """End one of them."""
        self.java("stop", name=name)
        self._started.remove(name)

    def sent(self, topic: str, bodies: Iterable[bytes], **words: Any) -> dict[str, int]:
        """Send messages; how often they were answered with which status."""
        name = words.pop("name", None) or self.producer()
        answers = [self.java.send(name, topic, body, **words) for body in bodies]
        return dict(Counter(answer["status"] for answer in answers))

    def received(self, name: str, count: int) -> list[Any]:
        """What a consumer has, once it has so many and no more have come."""
        self.java.received(name, count, PATIENCE)
        time.sleep(QUIET)
        return self.java.received(name, 0)

    def pull(self, topic: str, offset: int, tags: str = "*", queue: int = 0) -> object:
        """One pull: its status, where it goes on, bounds, and how many it found."""
        words = {"group": self.group("PULL"), "broker": BROKER, "queue": queue}
        got = self.java("pull", topic=topic, offset=offset, most=32, tags=tags, **words)
        found = [body_of(message).decode() for message in got["messages"]]
        return [got["status"], got["next"], got["min"], got["max"], found]

    def ask(self, question: str, **words: Any) -> Any:
        """What an operator is answered."""
        words = {"broker": BROKER, "address": self.address, **words}
        return self.java("operator", question=question, **words)

    def clients(self) -> list[str]:
        """The ids of the group's members."""
        found = self.ask("connections", group=self.group())["connectionSet"]
        return [connection["clientId"] for connection in found]

    def there(self, what: Callable[[], object]) -> bool:
        """Whether something comes to be true in time; an error is not yet."""

        def now() -> bool:
            try:
                return bool(what())
            except JavaError:
                return False

        return until(now, PATIENCE)


def shown(messages: Iterable[Any], *left_out: str) -> list[object]:
    """Messages without what varies, sorted.

    @param left_out: more properties that are not looked at.
    """
    found = [
        [
            body_of(message)[:40].decode(),
            len(body_of(message)),
            message["topic"],
            message.get("tags"),
            message.get("keys"),
            message["times"],
            {
                name: "..." if name in VARYING else value
                for name, value in sorted(message["properties"].items())
                if name not in (LEFT_OUT, *left_out)
            },
        ]
        for message in messages
    ]
    return sorted(found, key=repr)


def numbered(count: int, prefix: str = "") -> list[bytes]:
    """So many bodies."""
    return [b"%s%02d" % (prefix.encode(), number) for number in range(count)]
