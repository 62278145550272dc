# -*- test-case-name: tests.broker.send.test_send -*-
"""Requests 10, 310 and 320: from a request to a draft.

Two ways lead to the append batcher. The I{general} way takes a L{Command} of any
serialization, makes all checks in RocketMQ's order, creates topics, and answers through
a Deferred. The I{hot} way (L{hot_sends}) takes nine of ten requests: JSON, a topic and
queue that the general way has approved before, and no property that the broker acts on.

The broker's own properties are at the end, where they win against equal names: region,
trace switch, cluster.

A message for later is stored in SCHEDULE_TOPIC_XXXX or in the topic of timers
(L{delay_messages}); the answer names the queue that its sender asked for. The half
message of a transaction is stored in the half topic, and its answer names its place
there (L{transaction_messages}).

C{docs/facts/broker.md} 10.1, 10.4, 10.5, 11.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.append_batcher import (
    AnswerDraft,
    problem_of,
)
from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.appends.send_answers import QueueSends, SendCounts
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.inner_batch import inner_batch
from rocketbroker.broker.messages.message_types import NORMAL, message_type_of
from rocketbroker.broker.messages.outer_batch import (
    Part,
    split_at_once,
    split_steps,
)
from rocketbroker.broker.messages.timer_messages import recall_field
from rocketbroker.broker.messages.transaction_messages import prepare
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.send.dead_letters import DeadLetters
from rocketbroker.broker.send.hot_sends import CODES, HotSends, batch_draft
from rocketbroker.broker.send.send_checks import (
    SendChecks,
    fields_of,
    is_half,
    is_hot,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import SystemFailure
from rocketbroker.records import properties
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.ids import offset_ids
from rocketbroker.records.names import HALF_TOPIC, TIMER_TOPIC, is_retry_topic
from rocketbroker.records.sysflags import INNER_BATCH, TRANSACTION_MASK
from rocketbroker.remoting.interfaces import (
    Answer,
    IConnection,
    IResponderTable,
)
from rocketbroker.store.interfaces import PUT_OK, Draft, Placed
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.hot import (
    SendFields,
)

#: Properties that clients send back to us with a message, or not at all.
NOT_FOR_CLIENTS: Final = ("POP_CK", "INNER_MULTI_QUEUE_OFFSET")


class SentElsewhere(SendCounts, Protocol):
    """What another process has stored in one queue, as one type of message."""

    topic: str
    queue_id: int
    message_type: str


@final
class SendRequests:
    """The responder of requests 10, 310 and 320.

    @ivar hot: the hot way.
    @ivar general_sends: how many went the general way.
    @ivar forgotten_messages: how many were stored for topics that are gone.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        appends: AppendsRoom,
        dead_letters: DeadLetters,
        delay_messages: DelayMessages,
        prepared: Callable[[str, AnswerDraft], AnswerDraft],
    ) -> None:
        """
        @param prepared: given topic and answer of a half message, what answers it.
        """
        settings, wall_ms = context.settings, context.wall_ms
        topics, batcher, lmqs = metadata.topics, appends.batcher, appends.lmqs
        waiting = context.waiting.family(RequestCode.CONSUMER_SEND_MSG_BACK)
        self.general_sends = 0
        self.forgotten_messages = 0
        self._store = context.store
        self._topics = topics
        self._batcher = batcher
        self._dead_letters = dead_letters
        self._delay_messages = delay_messages
        self._lmqs = lmqs
        options = self._options = settings.broker
        max_bytes = self._max_bytes = settings.store.max_message_size
        self._store_host = context.host
        self._unique_keys = context.unique_keys
        self._prepared = prepared
        self._slices = waiting.before_slices(context.slices)
        self._long = context.long_requests
        self._turns = context.turns
        self._checks = SendChecks(topics, metadata.groups, options, max_bytes, wall_ms)
        self.hot = HotSends(
            batcher, topics, self._forget, self._sends, lmqs.check_batch
        )
        self.hot.configure(options, max_bytes, self._store_host)
        self._counted: dict[tuple[str, int, str], QueueSends] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker
        self._max_bytes = settings.store.max_message_size
        self._checks.configure(settings)
        hot, before = self.hot, self.hot.added
        hot.configure(settings.broker, self._max_bytes, self._store_host)
        if hot.added != before:
            for (_, queue_id, _), sends in self._counted.items():
                sends.start = hot.answer_start(queue_id)

    @property
    def hot_sends(self) -> int:
        """How many requests went the hot way."""
        return self.hot.taken

    def register(self, table: IResponderTable) -> None:
        """Answer sends on a port."""
        for code in CODES:
            table.register(code, self.respond)
        self.hot.register(table)

    def approved(self, topic: str, queue_id: int) -> QueueSends | None:
        """The counts of a queue to which sends go the hot way; None: they do not."""
        if self.hot.generation != self._topics.generation:
            self._forget()
        return self.hot.approved(topic, queue_id)

    def counters(self) -> list[QueueSends]:
        """What was sent, by queue and type of message."""
        return list(self._counted.values())

    def counter(self, topic: str, queue_id: int, message_type: str) -> QueueSends:
        """The counts of one queue and type of message, for other parts that store."""
        return self._sends(topic, queue_id, message_type)

    def stored_elsewhere(self, row: SentElsewhere) -> None:
        """Count what a worker has stored in one queue."""
        if self._topics.config(row.topic) is None:
            self.forgotten_messages += row.messages
        else:
            self._sends(row.topic, row.queue_id, row.message_type).add(row)

    def taken_elsewhere(self, requests: int) -> None:
        """Count requests that a worker has taken."""
        self.hot.taken += requests

    # The hot way.

    def _forget(self) -> None:
        """Approve queues of topics that changed anew; drop counts of topics gone."""
        hot = self.hot
        changed = self._topics.changed_since(hot.generation)
        hot.generation = self._topics.generation
        for name in hot.topics() if changed is None else changed:
            hot.forget(name)
        config = self._topics.config
        if changed is None or None in map(config, changed):
            for key in [key for key in self._counted if config(key[0]) is None]:
                self.forgotten_messages += self._counted.pop(key).messages

    # The general way.

    def respond(self, connection: IConnection, request: Command) -> Answer:
        """Take a send of any form, or say why not."""
        self.general_sends += 1
        if not request.body:
            raise SystemFailure("the message has no body")
        return self._take(connection, request, None)

    def _take(
        self, connection: IConnection, request: Command, parts: list[Part] | None
    ) -> Answer:
        """
        @param parts: the messages of a batch that was cut before.
        """
        fields = fields_of(request)
        self._batcher.check_load()
        config = self._checks.topic(fields)
        queue_id = self._checks.queue_id(fields, config, connection)
        own = properties.parse(fields.i)
        for name in NOT_FOR_CLIENTS:
            own.pop(name, None)
        fields.f = self._checks.sys_flag(fields, config, own)
        if is_retry_topic(fields.b) and not fields.m:
            letters = self._dead_letters.topic_instead(fields, request, own)
            if letters is not None:
                fields.b, queue_id = letters, 0
        half = False
        kind = message_type_of(own)
        sends = self._sends(fields.b, queue_id, kind)
        done: Deferred[Command | None] = Deferred()
        if fields.m:
            text = self._check_batch(fields, own, request.body)
            shared = properties.joined(text, self.hot.added_bytes)
            if parts is None:
                parts = split_at_once(request.body, shared)
            if parts is None:
                later = self._take_later(connection, request, shared)
                return self._long.begin(request, later)
            if fields.f & INNER_BATCH:
                own.update(self.hot.added)
                draft = inner_batch(
                    connection, fields, own, request.body, len(parts), sends.queue
                )
            else:
                draft = batch_draft(connection, fields, text, parts, sends, None)
        else:
            self._checks.check_properties(fields, config, own)
            unique = own.get("UNIQ_KEY") or self._unique_keys.make()
            own.update(self.hot.added, UNIQ_KEY=unique)
            half = is_half(fields, own)
            if half:
                self._lmqs.named(own, fields.b)
                prepare(own, fields.b, queue_id)
                fields.f &= ~TRANSACTION_MASK
                sends = self._sends(HALF_TOPIC, 0, kind)
            elif place := self._delay_messages.place(own, fields.b, queue_id):
                sends = self._sends(*place, kind)
            draft = Draft(
                sends.queue,
                request.body,
                properties.encode(own),
                fields.h,
                fields.f,
                fields.g,
                connection.peer_host,
                fields.j,
                tag_code(own.get("TAGS", "")),
                None,
                wait=own.get("WAIT", "true").lower() == "true",
            )
            self._lmqs.spread(draft)
        draft.context = partial(self._answer, done, fields.b, own, queue_id, sends)
        if half:
            draft.context = self._prepared(fields.b, draft.context)
        self._batcher.drafts.append(draft)
        if is_hot(config) and self._topics.is_saved(fields.b):
            self._approve(fields.b, queue_id)
        return done

    def _approve(self, topic: str, queue_id: int) -> None:
        """Let the hot way take sends to that queue, until the topics change."""
        if self.hot.generation != self._topics.generation:
            self._forget()
        self.hot.approve(topic, queue_id, self._sends(topic, queue_id, NORMAL))

    def _answer(
        self,
        done: Deferred[Command | None],
        topic: str,
        own: dict[str, str],
        queue_id: int,
        sends: QueueSends,
        draft: Draft,
        code: int,
    ) -> None:
        if draft.status != PUT_OK:
            self._batcher.not_stored(draft)
            problem = problem_of(draft, self._store, self._max_bytes)
            done.callback(Command(problem.code, remark=problem.remark))
            return
        positions = draft.positions or [draft.position]
        together = draft.parts.count if type(draft.parts) is Placed else len(positions)
        sends.count(together, draft.end - draft.position)
        ext = {
            "MSG_REGION": self.hot.added["MSG_REGION"],
            "TRACE_ON": self.hot.added["TRACE_ON"],
            "msgId": offset_ids(self._store_host, positions),
            "queueId": str(queue_id),
            "queueOffset": str(draft.queue_offset),
        }
        if sends.topic == TIMER_TOPIC:
            ext |= recall_field(own, self._options.broker_name)
        unique = own.get("UNIQ_KEY")
        if unique:
            ext["transactionId"] = unique
            if draft.sys_flag & INNER_BATCH:
                ext["batchUniqId"] = unique
        # A topic that this very send has made must outlive the broker like its message:
        # the next start would have the one without the other.
        saved = self._topics.saved(topic)
        saved.addCallback(lambda _: done.callback(Command(code, ext)))

    # Batches, either way.

    def _check_batch(
        self, fields: SendFields, own: dict[str, str], body: bytes
    ) -> bytes:
        """Refuse what is no batch; the properties that all of its messages have."""
        self._checks.check_batch(fields, own, body)
        self._lmqs.check_batch(body)
        for name in self.hot.added:
            own.pop(name, None)
        return properties.encode(own)

    async def _take_later(
        self, connection: IConnection, request: Command, shared: bytes
    ) -> Command | None:
        """Cut a long batch in slices, and take it then with all checks, as if it had
        come in that turn: it is stored at once and as a whole."""
        parts: list[Part] = []
        steps = split_steps(request.body, shared, parts)
        await self._slices.run(connection, steps)
        answers: list[Answer] = []
        self._turns.within(
            lambda: answers.append(self._take(connection, request, parts))
        )
        (answer,) = answers
        return await answer if isinstance(answer, Deferred) else answer

    def _sends(self, topic: str, queue_id: int, message_type: str) -> QueueSends:
        """The counters and the template of one queue and type of message."""
        key = topic, queue_id, message_type
        sends = self._counted.get(key)
        queue = self._store.queue(topic, queue_id)
        if sends is None or sends.queue is not queue:
            start = self.hot.answer_start(queue_id)
            is_system = self._topics.is_system(topic)
            fresh = QueueSends(queue, topic, message_type, start, is_system)
            if sends is not None:
                fresh.go_on_from(sends)
            sends = self._counted[key] = fresh
        return sends
