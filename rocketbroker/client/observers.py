# -*- test-case-name: tests.client.test_observers -*-
"""Observers of a client, which are told of its sends and of what becomes of messages.

Metrics, traces and spans are observers. So may be what a user writes: a subclass of
L{Observer} with the methods that it wants, given to C{connect(observers=[...])}. They
are called in the thread of the client and have to return at once. An observer that
raises is logged once and disturbs nothing else.

Where there is no observer nothing is made for it: a client has C{None} in the place of
L{Observers}.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final, Protocol, final

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.outgoing import Message
from rocketbroker.records.properties import encode_checked
from rocketbroker.records.recall_handle import RecallHandle
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.routing.topic_view import MessageQueue

_log: Final = logging.getLogger("rocketbroker.client")


class Outcome(StrEnum):
    """What has become of a message that was given out."""

    #: It is done.
    ACKNOWLEDGED = "acknowledged"
    #: The group gets it again later.
    RETRIED = "retried"
    #: It was put aside, into the topic of dead letters.
    DEAD_LETTER = "dead_letter"
    #: What its reader did counts for nothing: the queue has gone to another member or
    #: to another offset, the consumer was closed, no broker took it back, or it was
    #: sent to every member, and nobody else gets it.
    FAILED = "failed"
    #: It was given out too long ago; the group gets it again.
    TIMED_OUT = "timed_out"


@final
@attrs.define(eq=False, kw_only=True)
class Send:
    """The send of one message; those of a batch are told one by one.

    @ivar message: a copy of the user's. When the send starts properties may be added.
    @ivar group: the group of the producer.
    @ivar started_at: when it started, by the monotonic clock.
    @ivar queue: where the last try went, None before the first.
    @ivar address: of the broker of the last try.
    @ivar tries: how often it was tried.
    @ivar seconds: how long all of them took.
    @ivar result: what the broker said; None if it failed, or nobody waited for it.
    @ivar index: which message of the result it is.
    @ivar problem: why it failed.
    """

    message: Message
    group: str
    started_at: float
    queue: MessageQueue | None = None
    address: str | None = None
    tries: int = 0
    seconds: float = 0.0
    result: SendResult | None = None
    index: int = 0
    problem: BaseException | None = None

    @property
    def message_id(self) -> str | None:
        """The unique key, once it is stored."""
        return None if self.result is None else self.result.message_ids[self.index]

    @property
    def offset_id(self) -> str | None:
        """The offset id, where the broker has told one."""
        if self.result is None or self.index >= len(self.result.offset_ids):
            return None
        return self.result.offset_ids[self.index]


@final
@attrs.frozen(kw_only=True)
class TransactionEnd:
    """The end of a transaction, as the broker is told of it.

    @ivar group: the group of the producer.
    @ivar tag: of the half message; so are C{keys}, with spaces between.
    @ivar address: of the broker.
    @ivar committed: True: readers get it; False: nobody does; None: not known yet.
    @ivar asked: whether the broker had asked.
    @ivar region: the region of the broker.
    """

    group: str
    topic: str
    message_id: str
    tag: str | None
    keys: str | None
    address: str
    transaction_id: str | None
    committed: bool | None
    asked: bool
    region: str


@final
@attrs.frozen(kw_only=True)
class Recall:
    """A message that was taken back before its time, or was to be.

    @ivar group: the group of the producer.
    @ivar problem: why it was not.
    """

    group: str
    topic: str
    message_id: str
    problem: BaseException | None = None


@final
@attrs.define(eq=False, kw_only=True)
class Handling:
    """The handling of one message, from when it is given out.

    @ivar message: as it was stored, but decompressed.
    @ivar topic: where it was sent to; of a retried one not the retry topic.
    @ivar queue: where it was read.
    @ivar group: the group of the consumer.
    @ivar broadcast: whether every member gets every message.
    @ivar attempt: the how-manieth time the group has it, from 1.
    @ivar started_at: when it was given out, by the monotonic clock.
    @ivar seconds: how long it took.
    @ivar outcome: what has become of it; None before its end.
    @ivar problem: what its listener has raised.
    """

    message: StoredMessage
    topic: str
    queue: MessageQueue
    group: str
    broadcast: bool
    attempt: int
    started_at: float
    seconds: float = 0.0
    outcome: Outcome | None = None
    problem: BaseException | None = None


class ObservedConsumer(Protocol):
    """A member of a group.

    @ivar group: which.
    """

    group: str

    def prefetched(self) -> Mapping[str, int]:
        """How many messages wait here for a reader, by topic; any thread may ask."""


class Observer:
    """What an observer is told; a subclass has the methods that it wants."""

    def send_started(self, send: Send) -> None:
        """A message is about to be sent; C{send.message.properties} may be added to."""

    def send_ended(self, send: Send) -> None:
        """It is stored, or failed, or was handed to the system by a oneway send."""

    def transaction_ended(self, end: TransactionEnd) -> None:
        """A broker is told what becomes of a half message."""

    def recalled(self, recall: Recall) -> None:
        """A message was taken back, or that has failed."""

    def consumer_started(self, consumer: ObservedConsumer) -> None:
        """A consumer begins to read."""

    def consumer_ended(self, consumer: ObservedConsumer) -> None:
        """It was closed."""

    def handling_started(self, handling: Handling) -> None:
        """A message was given out."""

    def listener_started(self, handling: Handling) -> None:
        """A listener is about to be called with it, in the same context."""

    def listener_ended(self, handling: Handling) -> None:
        """The listener has returned, or has raised; in the same context, too. The
        handling may have ended before."""

    def handling_ended(self, handling: Handling) -> None:
        """The message was acknowledged, sent back, or given up."""

    def reconnected(self, address: str) -> None:
        """A connection to a server was made again."""


@final
class Observers:
    """All observers of a client, one of which cannot disturb anything by failing."""

    def __init__(self, observers: Iterable[Observer]) -> None:
        self.all = tuple(observers)
        self._failed: set[int] = set()

    def send_started(self, send: Send) -> None:
        """See L{Observer.send_started}; what cannot be carried is not added."""
        message = send.message
        for observer in self.all:
            before = {**message.properties}
            try:
                observer.send_started(send)
                if message.properties != before:
                    encode_checked(message.properties)
            except Exception:
                message.properties = before
                self._log(observer)

    def send_ended(self, send: Send) -> None:
        """See L{Observer.send_ended}."""
        self._tell("send_ended", send)

    def transaction_ended(self, end: TransactionEnd) -> None:
        """See L{Observer.transaction_ended}."""
        self._tell("transaction_ended", end)

    def recall_ended(
        self, group: str, topic: str, handle: str, problem: BaseException | None
    ) -> None:
        """See L{Observer.recalled}; nothing if C{handle} is no recall handle."""
        try:
            message_id = RecallHandle.parse(handle).unique_key
        except Malformed:
            return
        recall = Recall(
            group=group, topic=topic, message_id=message_id, problem=problem
        )
        self._tell("recalled", recall)

    def consumer_started(self, consumer: ObservedConsumer) -> None:
        """See L{Observer.consumer_started}."""
        self._tell("consumer_started", consumer)

    def consumer_ended(self, consumer: ObservedConsumer) -> None:
        """See L{Observer.consumer_ended}."""
        self._tell("consumer_ended", consumer)

    def handling_started(self, handling: Handling) -> None:
        """See L{Observer.handling_started}."""
        self._tell("handling_started", handling)

    def listener_started(self, handling: Handling) -> None:
        """See L{Observer.listener_started}."""
        self._tell("listener_started", handling)

    def listener_ended(self, handling: Handling) -> None:
        """See L{Observer.listener_ended}."""
        self._tell("listener_ended", handling)

    def handling_ended(self, handling: Handling) -> None:
        """See L{Observer.handling_ended}."""
        self._tell("handling_ended", handling)

    def reconnected(self, address: str) -> None:
        """See L{Observer.reconnected}."""
        self._tell("reconnected", address)

    def _tell(self, event: str, about: object) -> None:
        for observer in self.all:
            try:
                getattr(observer, event)(about)
            except Exception:
                self._log(observer)

    def _log(self, observer: Observer) -> None:
        if id(observer) not in self._failed:
            self._failed.add(id(observer))
            _log.exception("An observer failed, which is said once: %r", observer)


def observers_of(given: object) -> Observers | None:
    """The observers that a user gives, None for none.

    @raise ConfigurationError: something else is given.
    """
    if isinstance(given, Observers):
        return given
    if given is None:
        return None
    if not isinstance(given, Iterable):
        raise ConfigurationError(f"observers are a list, not {given!r}")
    found = [*given]
    for one in found:
        if not isinstance(one, Observer):
            raise ConfigurationError(
                f"{one!r} is no observer: make its class a subclass of "
                "rocketbroker.client.observers.Observer"
            )
    return Observers(found) if found else None


@final
class Sends:
    """Sends of which observers are told. It is a context: those that have not ended
    before it does end with it.

    @ivar messages: copies of the user's, with what observers have added.
    """

    def __init__(
        self,
        observers: Observers,
        monotonic: Callable[[], float],
        group: str,
        messages: Iterable[Message],
    ) -> None:
        """
        @param group: of the producer.
        """
        self._observers = observers
        self._monotonic = monotonic
        self._left = [
            Send(message=_copy(one), group=group, started_at=monotonic())
            for one in messages
        ]
        self._current = [*self._left]
        for send in self._left:
            observers.send_started(send)
        self.messages = [send.message for send in self._left]

    def __enter__(self) -> Sends:
        return self

    def __exit__(
        self, kind: object, problem: BaseException | None, trace: object
    ) -> None:
        self._current, self._left = self._left, []
        for send in self._current:
            send.problem = problem
            self._end(send)

    def go_on(self, count: int) -> None:
        """The next ones go in one request.

        @param count: how many.
        """
        self._current = self._left[:count]

    def tried(self, queue: MessageQueue, address: str) -> None:
        """Those of the request are being sent there."""
        for send in self._current:
            send.queue = queue
            send.address = address
            send.tries += 1

    def stored(self, result: SendResult) -> SendResult:
        """Those of the request are stored; the same result."""
        del self._left[: len(self._current)]
        for index, send in enumerate(self._current):
            send.result = result
            send.queue = result.queue
            send.index = index
            self._end(send)
        return result

    def _end(self, send: Send) -> None:
        send.seconds = self._monotonic() - send.started_at
        self._observers.send_ended(send)


def _copy(message: Message) -> Message:
    copied = Message(message.topic, message.body, flag=message.flag)
    copied.properties = {**message.properties}
    return copied
