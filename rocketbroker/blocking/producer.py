# -*- test-case-name: tests.blocking.test_producer -*-
"""Sending: one message, many at once, batches.

A send that failed is tried again on a queue of another broker: as often as the settings
say if a broker refuses it, and for as long as they say if none can be reached. So the
restart of a topic's only broker, and of the name server, is ridden over. What was
under way when a connection broke may have been stored all the same: messages can
double, under the same unique key, and are not lost. See C{docs/facts/client.md} 4.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.messages import MAX_BODY_BYTES, Message, SendResult
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    BrokerError,
    MessageIllegal,
    NoBroker,
    RocketbrokerError,
    TopicNotExist,
)
from rocketbroker.records import compression, ids, names
from rocketbroker.routing.send_requests import (
    RETRY_CODES,
    OpenBatch,
    SendRequest,
    SendRequests,
)
from rocketbroker.wire.command import Command

#: How many bytes of messages one batch holds: enough that the way there and back does
#: not matter, and little enough that a broker gives it back soon.
BATCH_BYTES: Final = 256 * 1024

#: The longest pause between two tries.
LONGEST_PAUSE: Final = 2.0

_log: Final = logging.getLogger("rocketbroker.blocking")

#: How many sends may be under way to a server.
IN_FLIGHT: Final = 64


@attrs.frozen
class Sent:
    """A send under way."""

    request: SendRequest
    queue: MessageQueue
    connection: ServerConnection
    ticket: int


@final
class Producer:
    """Sends messages.

    Threads may share it: each has connections of its own. What L{send_all} gives is
    taken by one thread. It can be pickled; a copy has connections of its own, too.

    @ivar client: whose connections it uses.
    @ivar requests: makes its requests.
    @ivar sent: how many messages have been stored.
    @ivar retries: how many sends have been tried again.
    @ivar patience: for how many seconds one rides over servers that are away.
    """

    def __init__(
        self,
        client: Client,
        group: str = names.INNER_PRODUCER,
        compress_over: int = 4096,
        kind: int = compression.ZLIB,
        level: int = compression.DEFAULT_LEVEL,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        """
        @param compress_over: bodies of this many bytes are compressed.
        @param kind: how; see L{compression}.
        @param max_body_bytes: longer bodies are refused before they are sent.
        """
        self.client = client
        self._group = group
        self._compress_over = compress_over
        self._kind = kind
        self._level = level
        self._max_body_bytes = max_body_bytes
        self._machine = client.settings.machine
        self._unique_keys: ids.UniqueKeys | None = None
        self._turn = 0
        self._lock = threading.Lock()
        self.requests = SendRequests(
            group,
            self.key,
            self._machine.wall_ms,
            compress_over,
            kind,
            level,
            max_body_bytes,
        )
        self._away: set[str] = set()
        self.patience = client.settings.patience
        self.sent = 0
        self.retries = 0
        self._machine.watch_fork(self)

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}: ids of messages are made anew."""
        self._lock = threading.Lock()
        self._unique_keys = None

    def __reduce__(self) -> tuple[object, ...]:
        return Producer, (
            self.client,
            self._group,
            self._compress_over,
            self._kind,
            self._level,
            self._max_body_bytes,
        )

    def send(self, message: Message, queue: MessageQueue | None = None) -> SendResult:
        """Send one message and wait until it is stored.

        @param queue: where to; it is then not tried elsewhere.
        @raise MessageIllegal: it cannot be sent, or the broker refuses it.
        @raise BrokerError: the last broker tried refused the request.
        @raise ConnectionLost: no broker could be reached for as long as the settings
            say, or the last one got lost: the message may be stored.
        @raise RequestTimeout: the last broker tried did not answer: the same.
        """
        return self._send(self.requests.single(message), queue)

    def send_batch(
        self, messages: Iterable[Message], queue: MessageQueue | None = None
    ) -> list[SendResult]:
        """Send messages of one topic in as few requests as their sizes allow.

        @return: one result for each request; their ids are in the order of messages.
        @raise MessageIllegal: one cannot be sent; those before it may have been.
        """
        return list(self._in_flight(self._pieces(messages), IN_FLIGHT, queue))

    def send_all(
        self,
        messages: Iterable[Message],
        in_flight: int = IN_FLIGHT,
        queue: MessageQueue | None = None,
    ) -> Iterator[SendResult]:
        """Send messages one by one, without waiting for each.

        Only as many as C{in_flight} are taken from C{messages} ahead of the results
        taken from here. Errors as L{send}; what is then under way may be stored.

        @param queue: where to; they are then not tried elsewhere.
        """
        requests = (self.requests.single(message) for message in messages)
        return self._in_flight(requests, in_flight, queue)

    def _in_flight(
        self,
        requests: Iterable[SendRequest],
        most: int,
        queue: MessageQueue | None,
    ) -> Iterator[SendResult]:
        under_way: deque[Sent | SendResult] = deque()
        try:
            for request in requests:
                if len(under_way) >= most:
                    yield self._finish(under_way.popleft(), queue)
                under_way.append(self._start_or_send(request, queue))
            while under_way:
                yield self._finish(under_way.popleft(), queue)
        finally:
            for left in under_way:
                if isinstance(left, Sent):
                    left.connection.forget(left.ticket)

    def _start_or_send(
        self, request: SendRequest, queue: MessageQueue | None
    ) -> Sent | SendResult:
        where = None
        try:
            where = queue or self.choose(request.topic, None)
            return self.start(request, where, hold=True)
        except (*PASSING, BrokerError) as problem:
            return self._again(request, queue, where, problem)

    def _finish(
        self, sent: Sent | SendResult, queue: MessageQueue | None
    ) -> SendResult:
        if isinstance(sent, SendResult):
            return sent
        try:
            return self.result(sent)
        except (*PASSING, BrokerError) as problem:
            return self._again(sent.request, queue, sent.queue, problem)

    def _again(
        self,
        request: SendRequest,
        queue: MessageQueue | None,
        failed: MessageQueue | None,
        problem: RocketbrokerError,
    ) -> SendResult:
        """Try what failed once in the ordinary way."""
        is_away = self._is_away(problem, request.topic)
        is_final = queue is not None or failed is None or not may_help(problem)
        if is_final and not is_away:
            raise problem
        self._failed(request.topic, problem, self.client.settings.pause)
        avoid = failed.broker if failed is not None else None
        return self._send(request, queue, avoid, is_away)

    def _send(
        self,
        request: SendRequest,
        queue: MessageQueue | None,
        avoid: str | None = None,
        was_away: bool | None = None,
    ) -> SendResult:
        """Send until it is stored, or the limits are reached.

        @param was_away: why it has failed once: nobody was there, or a refusal.
        """
        settings = self.client.settings
        tried = {True: 0, False: 0}
        if was_away is not None:
            tried[was_away] = 1
        deadline = self._machine.monotonic() + self.patience
        pause = settings.pause
        while True:
            where = None
            try:
                where = queue or self.choose(request.topic, avoid)
                result = self.result(self.start(request, where))
            except (*PASSING, BrokerError) as problem:
                is_away = self._is_away(problem, request.topic)
                is_over = self._machine.monotonic() + pause >= deadline
                tried[is_away] += 1
                often = tried[is_away] >= settings.attempts
                if often and (is_over or not is_away):
                    raise
                is_final = queue is not None or where is None or not may_help(problem)
                if is_final and not is_away:
                    raise
                self._failed(request.topic, problem, pause)
            else:
                self._worked(request.topic)
                return result
            if tried[True] >= settings.attempts:
                pause = min(2 * pause, LONGEST_PAUSE)
            avoid = where.broker if where is not None else avoid

    def _is_away(self, problem: RocketbrokerError, topic: str) -> bool:
        """Whether servers could not be reached, or do not know of one another yet."""
        if isinstance(problem, TopicNotExist):
            # A broker that stops leaves the name server, and its topics with it.
            return self.client.routes.is_known(topic)
        return isinstance(problem, (*PASSING, NoBroker))

    def _failed(self, topic: str, problem: RocketbrokerError, pause: float) -> None:
        with self._lock:
            self.retries += 1
            is_new = topic not in self._away and self._is_away(problem, topic)
            if is_new:
                self._away.add(topic)
        if is_new and self.patience:
            _log.warning(
                "A broker for %s is away, and is tried again: %s", topic, problem
            )
        self.client.routes.forget(topic)
        self._machine.sleep(pause)

    def _worked(self, topic: str) -> None:
        if topic in self._away:
            self._away.discard(topic)
            _log.info("A broker for %s is back", topic)

    def choose(self, topic: str, avoid: str | None) -> MessageQueue:
        """The next queue in turn, of another broker than C{avoid} if there is one.

        @raise TopicNotExist: there is none.
        """
        queues: Sequence[MessageQueue] = self.client.routes.to_write(topic)
        for _ in range(len(queues) if avoid is not None else 0):
            self._turn += 1
            queue = queues[self._turn % len(queues)]
            if queue.broker != avoid:
                return queue
        self._turn += 1
        return queues[self._turn % len(queues)]

    def start(
        self, request: SendRequest, queue: MessageQueue, hold: bool = False
    ) -> Sent:
        """Send without waiting for the answer.

        @param hold: it may go out later, with others.
        @raise TopicNotExist: the queue's broker is not known.
        @raise ConnectionLost: it cannot be reached.
        """
        client = self.client
        connection = client.connections.to(client.routes.address(queue))
        command = Command(request.code, request.ext_for(queue), request.body)
        ticket = connection.submit(command, client.settings.seconds, hold)
        return Sent(request, queue, connection, ticket)

    def result(self, sent: Sent) -> SendResult:
        """Wait for the answer to a send; errors as L{send}."""
        answer = sent.connection.collect(sent.ticket)
        result = sent.request.result(sent.queue, answer)
        with self._lock:
            self.sent += len(sent.request.message_ids)
        return result

    # Requests

    def key(self) -> str:
        """A new unique key."""
        with self._lock:
            if self._unique_keys is None:
                address, process_id, token = self._machine.identity()
                self._unique_keys = ids.UniqueKeys(
                    address, process_id, token, self._machine.wall_ms
                )
                # Producers that start together do not all begin with the same queue.
                self._turn = token
            return self._unique_keys.make()

    def _pieces(self, messages: Iterable[Message]) -> Iterator[SendRequest]:
        """Batches of messages that are alike; one that is alone goes as it is."""
        most = min(BATCH_BYTES, self._max_body_bytes)
        batch = OpenBatch(self.requests)
        for message in messages:
            if batch.first is not None and message.topic != batch.first.topic:
                raise MessageIllegal("a batch has one topic")
            request = batch.take(message, most)
            if request is not None:
                yield request
        request = batch.close()
        if request is not None:
            yield request


def may_help(problem: RocketbrokerError) -> bool:
    """Whether another try may help."""
    if isinstance(problem, BrokerError):
        return problem.code in RETRY_CODES
    return isinstance(problem, PASSING)
