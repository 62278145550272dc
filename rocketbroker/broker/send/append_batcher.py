# -*- test-case-name: tests.broker.send.test_append_batcher -*-
"""Makes one append of a turn's sends, and answers them.

Senders add drafts; L{AppendBatcher.flush}, at the end of each turn, appends all of them
at once. Drafts that need not wait for the disk or for copies are answered in one loop;
the others wait in L{GroupCommit}. A draft's context says how it is answered:

  - a L{Quick} tuple: the template of its queue, straight to its connection. All
    ordinary sends have it; it costs half a microsecond and allocates no object but the
    answer;
  - a function, called with the draft and the response code: all others.

When the disk cannot follow, a send is answered with SYSTEM_BUSY before a draft is made,
so that the client tries another broker: L{Overload}. A slave has the master's log, and
no message of its own gets into it: sends are answered with SERVICE_NOT_AVAILABLE, also
before anything is made. (RocketMQ answers with SYSTEM_BUSY, or so if the slave may act
as master; clients do the same with either.)

C{docs/facts/broker.md} 7, 10.5 has statuses and remarks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

from twisted.logger import Logger

from rocketbroker.broker.replicas.ack_rule import (
    IN_SYNC_REPLICAS_NOT_ENOUGH,
    NOT_ENOUGH,
    AckRule,
)
from rocketbroker.broker.send.overload import (
    APPEND_STALLED,
    FLUSH_STALLED,
    OVERLOADED,
    UNFLUSHED,
    Overload,
)
from rocketbroker.broker.stats.store_latency import StoreLatency
from rocketbroker.broker.storage.group_commit import GroupCommit
from rocketbroker.codec.drafts import answer
from rocketbroker.codec.form import COMPILED
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    BrokerError,
    MessageIllegal,
    ServiceNotAvailable,
    SystemFailure,
)
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    NOT_PUT,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
    UNKNOWN_ERROR,
    Draft,
    IQueue,
    IStore,
)
from rocketbroker.wire.command import RESPONSE, Command
from rocketbroker.wire.frames import encode
from rocketbroker.wire.hot import (
    HEADS,
    MAX_READY_HEADS,
    SEND_ANSWER,
    SEND_ANSWER_END,
    frame_of,
    head_of,
)

#: Upper bounds of the message sizes that metrics count, the last class is open.
SIZE_BOUNDS: Final = (1024, 4096, 524288, 1048576, 2097152, 4194304)


@final
class QueueSends:
    """What is sent to one queue, as one type of message.

    @ivar queue: the store's handle.
    @ivar topic: the topic's name.
    @ivar message_type: one of L{message_types}.
    @ivar start: the first part of the answers (L{wire.hot.send_answer_start}).
    @ivar is_system: whether the topic is one of the system.
    @ivar messages: how many messages were stored.
    @ivar bytes: how many bytes of the log they are.
    @ivar sizes: how many appends fell into each class of C{SIZE_BOUNDS}; those of the
        first class are in L{small}.
    @ivar small: how many appends were of at most 1024 bytes.
    @ivar beyond_average: of batches, their bytes less those of one average message, so
        that C{bytes} without them is the sum of what C{sizes} counts.
    """

    __slots__ = (
        "beyond_average",
        "bytes",
        "is_system",
        "message_type",
        "messages",
        "queue",
        "sizes",
        "small",
        "start",
        "topic",
    )

    def __init__(
        self,
        queue: IQueue,
        topic: str,
        message_type: str,
        start: bytes,
        is_system: bool,
    ) -> None:
        self.queue = queue
        self.topic = topic
        self.message_type = message_type
        self.start = start
        self.is_system = is_system
        self.messages = 0
        self.bytes = 0
        self.small = 0
        self.beyond_average = 0
        self.sizes = [0] * (len(SIZE_BOUNDS) + 1)

    def go_on_from(self, other: QueueSends) -> None:
        """Take over the counts of a queue that this one replaces."""
        self.messages = other.messages
        self.bytes = other.bytes
        self.small = other.small
        self.beyond_average = other.beyond_average
        self.sizes = other.sizes

    def appends(self) -> int:
        """How many appends were counted: sends, of batches too."""
        return self.small + sum(self.sizes)

    def count_small(self, messages: int, size: int) -> None:
        """Count appends of one message each, of the first class, in C{size} bytes."""
        self.messages += messages
        self.small += messages
        self.bytes += size

    def count(self, messages: int, size: int) -> None:
        """Count one append of C{messages} messages in C{size} bytes."""
        self.messages += messages
        self.bytes += size
        each = size // messages
        self.beyond_average += size - each
        if each <= SIZE_BOUNDS[0]:
            self.small += 1
        else:
            self.sizes[bisect_left(SIZE_BOUNDS, each)] += 1


#: Why a send is turned away, besides the reasons of L{Overload}: the message is too
#: long; the store takes none, as its disk is full, say, or this is a slave; it would
#: not have enough copies.
ILLEGAL: Final = "illegal"
UNAVAILABLE: Final = "unavailable"
TOO_FEW_COPIES: Final = "too_few_copies"
REASONS: Final = (
    OVERLOADED,
    FLUSH_STALLED,
    UNFLUSHED,
    APPEND_STALLED,
    ILLEGAL,
    UNAVAILABLE,
    TOO_FEW_COPIES,
)
_REASONS: Final = {
    MESSAGE_ILLEGAL: ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED: ILLEGAL,
    SERVICE_NOT_AVAILABLE: UNAVAILABLE,
    IN_SYNC_REPLICAS_NOT_ENOUGH: TOO_FEW_COPIES,
}

#: Connection (None: a oneway send), opaque, its id as JSON, queue.
Quick: TypeAlias = tuple[IConnection | None, int, bytes, QueueSends]

#: Answers a draft in its own way, given the response code.
AnswerDraft: TypeAlias = Callable[[Draft, int], None]


def problem_of(draft: Draft, store: IStore, max_bytes: int) -> BrokerError:
    """The error for the sender of a draft that was not stored.

    @param max_bytes: maxMessageSize.
    """
    status = draft.status
    if status in (MESSAGE_ILLEGAL, PROPERTIES_SIZE_EXCEEDED):
        return MessageIllegal(
            "the message is illegal, maybe msg body or properties length not matched. "
            f"msg body length limit {max_bytes}B, msg properties length limit 32KB."
        )
    if status == SERVICE_NOT_AVAILABLE:
        return _unavailable(store, store.refusal() or "")
    if status == IN_SYNC_REPLICAS_NOT_ENOUGH:
        return SystemFailure("in-sync replicas not enough")
    if status == CREATE_MAPPED_FILE_FAILED:
        return SystemFailure("create mapped file failed, server is busy or broken.")
    return SystemFailure("UNKNOWN_ERROR")


def _unavailable(store: IStore, reason: str) -> ServiceNotAvailable:
    """The error for whoever sends what the store does not take."""
    return ServiceNotAvailable(
        "service not available now. It may be caused by one of the following "
        f"reasons: the broker's disk is full [{_ratios(store)}], "
        "messages are put to the slave, message store has been shut down, etc. "
        f"{reason}".rstrip()
    )


def _ratios(store: IStore) -> str:
    """How full the disks are."""
    queues, index = store.space.queues.ratio, store.space.index.ratio
    return f"CL: {store.disk_usage():5.2f} CQ: {queues:5.2f} INDEX: {index:5.2f}"


@final
class AppendBatcher:
    """Collects drafts, appends them together and answers them.

    @ivar drafts: those of this turn. Senders append to it themselves.
    @ivar waits: whether answers may have to wait, for the disk or for copies.
    @ivar is_slave: whether this broker stores nothing of its own.
    @ivar overload: the limits of what waits.
    @ivar refused: how many sends were turned away, by reason: C{REASONS}.
    @ivar failed: how many drafts could not be written.
    @ivar put_times: how long it took until they could be answered.
    """

    _log = Logger()

    def __init__(
        self,
        store: IStore,
        group_commit: GroupCommit,
        ack_rule: AckRule,
        settings: BrokerSettings,
        appended: Callable[[], None],
        seconds: Callable[[], float],
    ) -> None:
        """
        @param appended: called after each append.
        @param seconds: monotonic time.
        """
        self.drafts: list[Draft] = []
        self._gatherers: list[Callable[[], None]] = []
        self.refused = dict.fromkeys(REASONS, 0)
        self.failed = 0
        self.put_times = StoreLatency()
        self._store = store
        self._group_commit = group_commit
        self.overload = Overload(store, group_commit, settings, seconds)
        self._ack_rule = ack_rule
        self._appended = appended
        self._seconds = seconds
        self._take(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.overload.configure(settings)
        self._ack_rule.configure(settings)
        self._take(settings)

    def _take(self, settings: BrokerSettings) -> None:
        self.waits = self._group_commit.synchronous or self._ack_rule.waits
        self.is_slave = settings.store.is_slave
        #: For remarks.
        self._max_bytes = settings.store.max_message_size

    def before_flush(self, gather: Callable[[], None]) -> None:
        """Call C{gather} before each append, to add what it has made of a turn."""
        self._gatherers.append(gather)

    def is_full(self) -> bool:
        """Whether no other send may be taken now."""
        return self.overload.refusal(len(self.drafts)) is not None

    def check_role(self) -> None:
        """Count and refuse a send to a slave.

        @raise ServiceNotAvailable: it is one.
        """
        if self.is_slave:
            self.refused[UNAVAILABLE] += 1
            raise _unavailable(self._store, "this broker is a slave")

    def check_load(self) -> None:
        """Count and refuse a send while none may be taken.

        @raise ServiceNotAvailable: this broker is a slave.
        @raise SystemBusy: why.
        """
        self.check_role()
        refusal = self.overload.refusal(len(self.drafts))
        if refusal is not None:
            self.refused[refusal.reason] += 1
            raise refusal.error

    def copies(self) -> int:
        """How many copies a message needs that is appended now, this one included.

        @return: L{NOT_ENOUGH} if it is to be refused.
        """
        if not self._ack_rule.waits:
            return 1
        return self._ack_rule.copies(self._store.published_position)

    def not_stored(self, draft: Draft) -> None:
        """Count a draft that the store did not take."""
        reason = _REASONS.get(draft.status)
        if reason is None:
            self.failed += 1
        else:
            self.refused[reason] += 1

    def flush(self) -> None:
        """Append all drafts; answer those that need not wait."""
        for gather in self._gatherers:
            gather()
        drafts = self.drafts
        if not drafts:
            return
        self.drafts = []
        copies = self.copies() if self._ack_rule.waits else 1
        if copies == NOT_ENOUGH:
            drafts = self._refuse_waiting(drafts)
            if not drafts:
                return
        begin = self._seconds()
        self._append(drafts)
        overload = self.overload
        overload.note(begin)
        self._appended()
        group_commit = self._group_commit
        if not group_commit.synchronous and copies < 2:
            overload.make_room()
            self.put_times.add((self._seconds() - begin) * 1000.0, len(drafts))
            self.settle(drafts, 0)
            return
        waiting = [d for d in drafts if d.wait and d.status == PUT_OK]
        if len(waiting) < len(drafts):
            rest = [d for d in drafts if not d.wait or d.status != PUT_OK]
            self._time(begin, len(rest))
            self.settle(rest, 0)
            if group_commit.synchronous:
                group_commit.flush()
        if waiting:
            settle = partial(self._settle_waiting, begin)
            group_commit.admit(waiting, settle, copies)
        overload.make_room()

    def _refuse_waiting(self, drafts: list[Draft]) -> list[Draft]:
        """Refuse those that want copies which cannot be had; the others."""
        refused = [draft for draft in drafts if draft.wait]
        for draft in refused:
            draft.status = IN_SYNC_REPLICAS_NOT_ENOUGH
        self.settle(refused, 0)
        return [draft for draft in drafts if not draft.wait]

    def _time(self, begin: float, messages: int) -> None:
        """Count how long messages took from C{begin}."""
        self.put_times.add((self._seconds() - begin) * 1000.0, messages)

    def _settle_waiting(self, begin: float, drafts: list[Draft], code: int) -> None:
        self._time(begin, len(drafts))
        self.settle(drafts, code)

    def _append(self, drafts: list[Draft]) -> None:
        try:
            self._store.append(drafts)
        except Exception:
            # A mistake of ours: drafts that were not stored are answered with it, also
            # those that had their place already.
            self._log.failure("Messages could not be appended.")
            stored = self._store.published_position
            for draft in drafts:
                if draft.status == NOT_PUT or draft.end > stored:
                    draft.status = UNKNOWN_ERROR

    def settle(self, drafts: list[Draft], code: int) -> None:
        """Answer drafts that were appended or refused.

        @param code: what became of the waiting: SUCCESS, FLUSH_DISK_TIMEOUT or
            FLUSH_SLAVE_TIMEOUT.
        """
        first = 0
        while COMPILED and not code and first < len(drafts):
            # What is left is answered one by one, until others follow.
            first = answer(drafts, first, SIZE_BOUNDS[0], SEND_ANSWER_END)
            if first < len(drafts):
                self._settle_each(drafts[first : first + 1], code)
                first += 1
        if first < len(drafts):
            self._settle_each(drafts, code)

    def _settle_each(self, drafts: list[Draft], code: int) -> None:
        """The same, without the compiled codec."""
        heads = HEADS
        to: IConnection | None = None
        frames: list[bytes] = []
        try:
            for draft in drafts:
                context = draft.context
                if type(context) is not tuple:
                    assert callable(context)
                    context(draft, code)
                    continue
                if draft.status or code:
                    self._settle_slowly(context, draft, code)
                    continue
                connection, opaque, unique, sends = context
                size = draft.end - draft.position
                sends.messages += 1
                sends.bytes += size
                if size <= 1024:
                    sends.small += 1
                else:
                    sends.sizes[bisect_left(SIZE_BOUNDS, size)] += 1
                if connection is None:
                    continue
                header = SEND_ANSWER % (
                    sends.start,
                    draft.position,
                    draft.queue_offset,
                    unique,
                    opaque,
                )
                length = len(header)
                if length < MAX_READY_HEADS:
                    frame = heads[length] + header
                else:
                    frame = head_of(length) + header
                if connection is to:
                    frames.append(frame)
                    continue
                # As a rule a connection has brought many, one after the other.
                if to is not None:
                    _send(to, frames)
                to = connection
                frames = [frame]
        finally:
            # Also if one could not be answered: the others were.
            if to is not None:
                _send(to, frames)

    def _settle_slowly(self, quick: Quick, draft: Draft, code: int) -> None:
        connection, opaque, unique, sends = quick
        if draft.status == PUT_OK:
            sends.count(1, draft.end - draft.position)
            if connection is None:
                return
            header = SEND_ANSWER % (
                stored_start(sends.start, code),
                draft.position,
                draft.queue_offset,
                unique,
                opaque,
            )
            connection.send(frame_of(header))
            return
        self.refuse_draft(draft, connection, opaque)

    def refuse_draft(
        self, draft: Draft, connection: IConnection | None, opaque: int
    ) -> None:
        """Count a draft that the store did not take, and tell its sender why."""
        self.not_stored(draft)
        if connection is not None:
            refuse(connection, opaque, problem_of(draft, self._store, self._max_bytes))


def _send(connection: IConnection, frames: list[bytes]) -> None:
    """Send answers."""
    if len(frames) == 1:
        connection.send(frames[0])
    else:
        connection.send(b"".join(frames), len(frames))


def refuse(connection: IConnection, opaque: int, error: BrokerError) -> None:
    """Answer a request that came as JSON with an error."""
    command = Command(
        error.code, opaque=opaque, flag=RESPONSE, remark=error.remark or None
    )
    connection.send(encode(command))


def stored_start(start: bytes, code: int) -> bytes:
    """The first part of the answer to a message that is stored, with C{code}."""
    return start.replace(b'"code":0', b'"code":%d' % code, 1) if code else start
