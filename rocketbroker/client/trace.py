# -*- test-case-name: tests.client.test_trace -*-
"""Message trace in RocketMQ's form: which client did what with a message, and when.

Records of sends, of the handling of messages and of ends of transactions are sent to a
topic of their own, under the ids and keys of the messages, so that operators find them:
C{mqadmin queryMsgTraceById}, consoles. C{docs/facts/client.md} 26.

A producer of its own sends what has gathered: when there are ten records, after five
seconds, and in the end. Nothing waits for it. Where records come faster than they can
be sent, or brokers are away, those beyond the limit are dropped and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, final

import attrs

from rocketbroker.client.instance import Instance
from rocketbroker.client.observers import (
    Handling,
    Observer,
    Observers,
    Outcome,
    Recall,
    Send,
    TransactionEnd,
)
from rocketbroker.client.producer import Producer
from rocketbroker.client.runtime import Runtime
from rocketbroker.client.settings import ClientSettings, ProducerSettings
from rocketbroker.client.waits import Signal, Tasks
from rocketbroker.errors import RocketbrokerError
from rocketbroker.records import names, properties
from rocketbroker.records.outgoing import Message
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.send_requests import DEFAULT_REGION, DELAYS

#: How many records wait at most; further ones are dropped.
MAX_WAITING: Final = 2048

#: Records are sent when there are this many, or after so many seconds.
FLUSH_RECORDS: Final = 10
FLUSH_SECONDS: Final = 5.0

#: How many bytes of records one message has at most, and how many characters of keys,
#: which have to fit into its properties.
MAX_BODY_BYTES: Final = 128_000
MAX_KEY_CHARACTERS: Final = 16_384

#: How long the name of the producer's group gets: a namespace may come before it.
MAX_GROUP_CHARACTERS: Final = 127

#: How long a message of records may take; and all of them in the end.
SEND_SECONDS: Final = 5.0
CLOSE_SECONDS: Final = 5.0

#: Ends a field, and a record.
FIELD_END: Final = "\x01"
RECORD_END: Final = "\x02"

#: Kinds of messages: ordinals of Java's C{MessageType}.
NORMAL: Final = 0
HALF: Final = 1
COMMIT: Final = 2
DELAYED: Final = 3
ORDERED: Final = 4

#: What a listener has done: ordinals of Java's C{ConsumeReturnType}.
SUCCESS: Final = 0
TIMED_OUT: Final = 1
RAISED: Final = 2
FAILED: Final = 4

_STATES: Final = {
    True: "COMMIT_MESSAGE",
    False: "ROLLBACK_MESSAGE",
    None: "UNKNOW",
}


class TraceRecord(NamedTuple):
    """One record.

    @ivar topic: of the message; records of one topic go together.
    @ivar keys: under which it is found: the id and the keys of the message.
    @ivar text: the record.
    """

    topic: str
    keys: tuple[str, ...]
    text: str


def _record(
    topic: str, message_id: str, keys: str | None, *fields: object
) -> TraceRecord:
    words = FIELD_END.join(_word(field) for field in fields)
    return TraceRecord(topic, (message_id, *(keys or "").split()), words + RECORD_END)


def _word(field: object) -> str:
    if field is None:
        return "null"
    return str(field).lower() if isinstance(field, bool) else str(field)


def send_record(send: Send, now_ms: int) -> TraceRecord | None:
    """What a send leaves: C{Pub}; None of one that brokers do not want traced, or that
    was not stored.

    @param now_ms: when it has ended.
    """
    result = send.result
    if result is None or not result.traced:
        return None
    message_id = result.message_ids[send.index]
    text = send.message.properties
    keys = text.get(properties.KEYS)
    cost_ms = round(send.seconds * 1000)
    kind = NORMAL
    if text.get(properties.TRANSACTION_PREPARED) == "true":
        kind = HALF
    elif any(name in text for name in DELAYS):
        kind = DELAYED
    elif properties.SHARDING_KEY in text:
        kind = ORDERED
    return _record(
        send.message.topic,
        message_id,
        keys,
        "Pub",
        now_ms - cost_ms,
        result.region,
        send.group,
        send.message.topic,
        message_id,
        text.get(properties.TAGS),
        keys,
        send.address,
        len(send.message.body),
        cost_ms,
        kind,
        send.offset_id,
        result.status == 0,
    )


def end_record(end: TransactionEnd, now_ms: int) -> TraceRecord:
    """What the end of a transaction leaves: C{EndTransaction}."""
    return _record(
        end.topic,
        end.message_id,
        end.keys,
        "EndTransaction",
        now_ms,
        end.region,
        end.group,
        end.topic,
        end.message_id,
        end.tag,
        end.keys,
        end.address,
        COMMIT,
        end.transaction_id or end.message_id,
        _STATES[end.committed],
        end.asked,
    )


def recall_record(recall: Recall, now_ms: int) -> TraceRecord:
    """What it leaves that a message is taken back: C{Recall}."""
    return _record(
        recall.topic,
        recall.message_id,
        None,
        "Recall",
        now_ms,
        DEFAULT_REGION,
        recall.group,
        recall.topic,
        recall.message_id,
        recall.problem is None,
    )


def before_record(handling: Handling, request_id: str, now_ms: int) -> TraceRecord:
    """What it leaves that a message is given out: C{SubBefore}.

    @param request_id: of this handling, as in L{after_record}.
    """
    message = handling.message
    keys = message.properties.get(properties.KEYS)
    return _record(
        handling.topic,
        message.message_id,
        keys,
        "SubBefore",
        now_ms,
        message.properties.get(properties.MSG_REGION),
        handling.group,
        request_id,
        message.message_id,
        handling.attempt - 1,
        keys,
    )


def after_record(handling: Handling, request_id: str, now_ms: int) -> TraceRecord:
    """What it leaves that a message is done with: C{SubAfter}."""
    message = handling.message
    keys = message.properties.get(properties.KEYS)
    is_done = handling.outcome == Outcome.ACKNOWLEDGED
    code = SUCCESS if is_done else FAILED
    if handling.outcome == Outcome.TIMED_OUT:
        code = TIMED_OUT
    elif handling.problem is not None:
        code = RAISED
    return _record(
        handling.topic,
        message.message_id,
        keys,
        "SubAfter",
        request_id,
        message.message_id,
        round(handling.seconds * 1000),
        is_done,
        keys,
        code,
        now_ms,
        handling.group,
    )


def trace_messages(topic: str, records: list[TraceRecord]) -> Iterator[Message]:
    """Messages that carry records, each of one topic's, as few as the limits allow.

    @param topic: the trace topic.
    """
    by_topic: dict[str, list[TraceRecord]] = {}
    for record in records:
        by_topic.setdefault(record.topic, []).append(record)
    for group in by_topic.values():
        body = bytearray()
        keys: dict[str, None] = {}
        characters = 0
        for record in group:
            data = record.text.encode("utf-8")
            length = sum(len(key) + 1 for key in record.keys if key not in keys)
            if body and (
                len(body) + len(data) > MAX_BODY_BYTES
                or characters + length > MAX_KEY_CHARACTERS
            ):
                yield Message(topic, body, keys=keys)
                body, keys, characters = bytearray(), {}, 0
                length = sum(len(key) + 1 for key in record.keys)
            body += data
            keys.update(dict.fromkeys(record.keys))
            characters += length
        yield Message(topic, body, keys=keys)


@final
class MessageTrace(Observer):
    """Sends the trace of one session.

    @ivar dropped: how many records have been dropped.
    """

    def __init__(
        self, runtime: Runtime, settings: ClientSettings, topic: str, group: str
    ) -> None:
        """
        @param settings: of the session.
        @param topic: where records go.
        @param group: the session's group of producers.
        """
        own = f"_INNER_TRACE_PRODUCER-{group}-PRODUCE"[:MAX_GROUP_CHARACTERS]
        self._runtime = runtime
        self._settings = attrs.evolve(
            settings, observers=None, trace=False, instance_name=None
        )
        self._producing = ProducerSettings(group=own, max_body_bytes=MAX_BODY_BYTES)
        self._topic = topic
        self._left: list[object] = []
        self._closing = False
        self.dropped = 0
        self._begin()
        runtime.watch_fork(self)

    def _begin(self) -> None:
        self._waiting: list[TraceRecord] = []
        self._arrived = Signal(self._runtime)
        self._enough = Signal(self._runtime)
        self._tasks = Tasks(self._runtime)
        self._instance: Instance | None = None
        self._producer: Producer | None = None
        self._handlings: dict[Handling, str] = {}

    def forked(self) -> None:
        """See L{rocketbroker.config.forks.Forked}: what waits is sent by the parent; a
        child begins anew."""
        self._left += [self._instance, self._producer, self._tasks]
        self._begin()

    async def close(self) -> None:
        """Send what waits, if that can be done soon, and nothing more. Idempotent."""
        self._closing = True
        self._arrived.fire()
        self._enough.fire()
        timer = self._runtime.call_later(CLOSE_SECONDS, self._tasks.cancel)
        try:
            await self._tasks.all_ended()
        finally:
            timer.cancel()
        instance, self._instance = self._instance, None
        if instance is not None and self._producer is not None:
            await self._producer.close()
            await instance.close()

    # What is traced.

    def send_ended(self, send: Send) -> None:
        """See L{Observer}."""
        record = send_record(send, self._runtime.wall_ms())
        if record is not None:
            self._add(record)

    def transaction_ended(self, end: TransactionEnd) -> None:
        """See L{Observer}."""
        self._add(end_record(end, self._runtime.wall_ms()))

    def recalled(self, recall: Recall) -> None:
        """See L{Observer}."""
        self._add(recall_record(recall, self._runtime.wall_ms()))

    def handling_started(self, handling: Handling) -> None:
        """See L{Observer}."""
        if is_traced(handling.message) and not self._closing:
            request = self._start().unique_key()
            self._handlings[handling] = request
            self._add(before_record(handling, request, self._runtime.wall_ms()))

    def handling_ended(self, handling: Handling) -> None:
        """See L{Observer}."""
        request = self._handlings.pop(handling, None)
        if request is not None:
            self._add(after_record(handling, request, self._runtime.wall_ms()))

    def _add(self, record: TraceRecord) -> None:
        if record.topic == self._topic:
            return
        if self._closing or len(self._waiting) >= MAX_WAITING:
            self.dropped += 1
            return
        self._start()
        self._waiting.append(record)
        self._arrived.fire()
        if len(self._waiting) >= FLUSH_RECORDS:
            self._enough.fire()

    # Sending.

    def _start(self) -> Instance:
        if self._instance is None:
            self._instance = Instance(self._runtime, self._settings)
            self._producer = Producer(self._instance, self._producing)
            self._producer.start()
            self._tasks.spawn(self._sending(self._instance, self._producer))
        return self._instance

    async def _sending(self, instance: Instance, producer: Producer) -> None:
        while self._waiting or not self._closing:
            if not self._waiting:
                await self._arrived.wait()
                continue
            if len(self._waiting) < FLUSH_RECORDS and not self._closing:
                await self._enough.wait(FLUSH_SECONDS)
            records, self._waiting = self._waiting, []
            for message in trace_messages(self._topic, records):
                await self._send(instance, producer, message)

    async def _send(
        self, instance: Instance, producer: Producer, message: Message
    ) -> None:
        try:
            await producer.send(message, timeout=SEND_SECONDS)
        except RocketbrokerError as problem:
            self.dropped += message.body.count(RECORD_END.encode())
            instance.outages.failed("the topic of message traces", problem)
        else:
            instance.outages.worked("the topic of message traces")


def is_traced(message: StoredMessage) -> bool:
    """Whether the broker of a message wants it traced."""
    text = message.properties
    wants = text.get(properties.TRACE_SWITCH) != "false"
    return wants and properties.MSG_REGION in text


def with_trace(
    runtime: Runtime, settings: ClientSettings, group: str
) -> tuple[ClientSettings, MessageTrace | None]:
    """The settings of a session's clients, which send a trace if it is asked for."""
    if not settings.trace:
        return settings, None
    topic = names.TRACE_TOPIC if settings.trace is True else settings.trace
    trace = MessageTrace(runtime, settings, topic, group)
    given = settings.observers.all if settings.observers is not None else ()
    return attrs.evolve(settings, observers=Observers([*given, trace])), trace
