# -*- test-case-name: tests.blocking.test_producer -*-
"""Sending: one message, many at once, batches.

A send that failed is tried again on a queue of another broker. What was under way when
a connection broke may have been stored all the same: messages can double, under the
same unique key, and are not lost. See C{docs/facts/client.md} 4.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, final

import attrs

from rocketbroker.blocking.answers import PASSING, field, number
from rocketbroker.blocking.client import Client
from rocketbroker.blocking.connection import ServerConnection
from rocketbroker.blocking.messages import (
    MAX_BODY_BYTES,
    Message,
    SendResult,
    check_topic,
)
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    BrokerError,
    MessageIllegal,
    RocketbrokerError,
    error_of_response,
)
from rocketbroker.records import batches, compression, ids, names, sysflags
from rocketbroker.records.properties import (
    DELAY,
    TIMER_DELAY_MS,
    TIMER_DELIVER_MS,
)
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command

#: Answers after which another try, on another broker, may help; 501: a queue of a
#: static topic has moved.
RETRY_CODES: Final = frozenset({17, 14, 1, 2, 16, 204, 205, 501, 1500})

#: Answers that mean the message is stored.
STORED_CODES: Final = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.SLAVE_NOT_AVAILABLE,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
    }
)

#: How many bytes of messages one batch holds: enough that the way there and back does
#: not matter, and little enough that a broker gives it back soon.
BATCH_BYTES: Final = 256 * 1024

#: Properties of messages that are delivered later.
DELAYS: Final = (DELAY, TIMER_DELAY_MS, TIMER_DELIVER_MS)

#: How many sends may be under way to a server.
IN_FLIGHT: Final = 64


@attrs.frozen
class SendRequest:
    """One send, ready to go to any queue of its topic.

    @ivar message_ids: the unique keys of its messages.
    """

    topic: str
    code: int
    ext: dict[str, str]
    body: bytes
    message_ids: tuple[str, ...]


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
    @ivar sent: how many messages have been stored.
    @ivar retries: how many sends have been tried again.
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
        self.sent = 0
        self.retries = 0

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
        @raise ConnectionLost: the last broker tried could not be reached, or got lost:
            the message may be stored.
        @raise RequestTimeout: the last broker tried did not answer: the same.
        """
        return self._send(self.single(message), queue)

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
        requests = (self.single(message) for message in messages)
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
        where = queue or self.choose(request.topic, None)
        try:
            return self.start(request, where, hold=True)
        except PASSING as problem:
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
        failed: MessageQueue,
        problem: RocketbrokerError,
    ) -> SendResult:
        """Try what failed once in the ordinary way."""
        if queue is not None or not may_help(problem):
            raise problem
        self._failed(request.topic, problem)
        return self._send(request, None, failed.broker, tried=1)

    def _send(
        self,
        request: SendRequest,
        queue: MessageQueue | None,
        avoid: str | None = None,
        tried: int = 0,
    ) -> SendResult:
        attempts = self.client.settings.attempts
        while True:
            tried += 1
            where = queue or self.choose(request.topic, avoid)
            try:
                return self.result(self.start(request, where))
            except (*PASSING, BrokerError) as problem:
                if queue is not None or tried >= attempts or not may_help(problem):
                    raise
                self._failed(request.topic, problem)
            avoid = where.broker

    def _failed(self, topic: str, problem: RocketbrokerError) -> None:
        with self._lock:
            self.retries += 1
        self.client.routes.forget(topic)
        self._machine.sleep(self.client.settings.pause)

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
        ext = {**request.ext, "e": str(queue.queue_id), "n": queue.broker}
        command = Command(request.code, ext, request.body)
        ticket = connection.submit(command, client.settings.seconds, hold)
        return Sent(request, queue, connection, ticket)

    def result(self, sent: Sent) -> SendResult:
        """Wait for the answer to a send; errors as L{send}."""
        answer = sent.connection.collect(sent.ticket)
        if answer.code not in STORED_CODES:
            raise error_of_response(answer.code, answer.remark)
        message_id = field(answer, "msgId")
        queue_id = number(answer, "queueId")
        queue_offset = number(answer, "queueOffset")
        with self._lock:
            self.sent += len(sent.request.message_ids)
        return SendResult(
            answer.code,
            sent.request.message_ids,
            tuple(message_id.split(",")),
            MessageQueue(sent.queue.topic, sent.queue.broker, queue_id),
            queue_offset,
        )

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

    def single(self, message: Message) -> SendRequest:
        """A request with one message."""
        self.check(message)
        key = self.key()
        sys_flag = 0
        body = message.body
        if len(body) >= self._compress_over:
            body = compression.compress(body, self._kind, self._level)
            sys_flag = sysflags.with_compression(0, self._kind)
        text = message.property_bytes(key).decode("utf-8")
        ext = self._ext(message.topic, sys_flag, message.flag, text)
        return SendRequest(
            message.topic, RequestCode.SEND_MESSAGE_V2, ext, body, (key,)
        )

    def check(self, message: Message) -> None:
        """Refuse what cannot be sent.

        @raise MessageIllegal: it cannot.
        """
        check_topic(message.topic)
        if not message.body:
            raise MessageIllegal("a message without a body")
        if len(message.body) > self._max_body_bytes:
            raise MessageIllegal(
                f"a body of {len(message.body)} bytes, at most {self._max_body_bytes}"
            )

    def _ext(self, topic: str, sys_flag: int, flag: int, text: str) -> dict[str, str]:
        """The fields of SendMessageRequestHeaderV2 that do not depend on the queue.

        Written down here because a typed header costs more than all else of a send.
        """
        return {
            "a": self._group,
            "b": topic,
            "c": names.AUTO_CREATE_TOPIC,
            "d": "4",
            "f": str(sys_flag),
            "g": str(self._machine.wall_ms()),
            "h": str(flag),
            "i": text,
            "j": "0",
            "k": "false",
            "m": "false",
        }

    def _pieces(self, messages: Iterable[Message]) -> Iterator[SendRequest]:
        """Batches of messages that are alike; one that is alone goes as it is."""
        most = min(BATCH_BYTES, self._max_body_bytes)
        batch = OpenBatch(self)
        for message in messages:
            if batch.first is not None and message.topic != batch.first.topic:
                raise MessageIllegal("a batch has one topic")
            request = batch.take(message, most)
            if request is not None:
                yield request
        request = batch.close()
        if request is not None:
            yield request

    def batch(self, first: Message, parts: list[bytes], keys: list[str]) -> SendRequest:
        """A request with several messages.

        @param first: any one of them.
        @param parts: each as L{batches.encode_part} gives it.
        """
        # The properties of the request are added to each record, where they count
        # more than its own: a unique key here would replace those of all messages.
        text = "" if _waits(first) else "WAIT\x01false\x02"
        ext = self._ext(first.topic, 0, 0, text)
        ext["m"] = "true"
        body = b"".join(parts)
        return SendRequest(
            first.topic, RequestCode.SEND_BATCH_MESSAGE, ext, body, tuple(keys)
        )


@final
class OpenBatch:
    """Messages of one topic that go in one request, as long as more may come.

    @ivar first: the first of them, None for none.
    """

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self.first: Message | None = None
        self._parts: list[bytes] = []
        self._keys: list[str] = []
        self._size = 0

    def take(self, message: Message, most: int) -> SendRequest | None:
        """Add a message.

        @param most: how many bytes a batch may have.
        @return: a request with those before it, if it does not go with them.
        @raise MessageIllegal: it cannot be sent in a batch.
        """
        producer = self._producer
        producer.check(message)
        if names.is_retry_topic(message.topic):
            raise MessageIllegal("a batch cannot go to a retry topic")
        key = producer.key()
        part = batches.encode_part(
            message.flag, message.body, message.property_bytes(key)
        )
        request = None
        first = self.first
        if first is not None and (
            self._size + len(part) > most or not _alike(first, message)
        ):
            request = self.close()
        if self.first is None:
            self.first = message
        self._parts.append(part)
        self._keys.append(key)
        self._size += len(part)
        return request

    def close(self) -> SendRequest | None:
        """A request with all of them, None for none; one alone goes as it is."""
        first, parts, keys = self.first, self._parts, self._keys
        if first is None:
            return None
        self.first, self._parts, self._keys, self._size = None, [], [], 0
        if len(parts) == 1:
            return self._producer.single(first)
        return self._producer.batch(first, parts, keys)


def _waits(message: Message) -> bool:
    return message.properties["WAIT"] == "true"


def _alike(first: Message, second: Message) -> bool:
    """Whether two messages may go in one batch; a delayed one goes alone."""
    delayed = _delayed(first) or _delayed(second)
    return not delayed and _waits(first) == _waits(second)


def _delayed(message: Message) -> bool:
    return any(name in message.properties for name in DELAYS)


def may_help(problem: RocketbrokerError) -> bool:
    """Whether another try may help."""
    if isinstance(problem, BrokerError):
        return problem.code in RETRY_CODES
    return isinstance(problem, PASSING)
