# -*- test-case-name: tests.broker.appends.test_append_batcher -*-
"""The append batcher: it makes one append of a turn's sends, and answers them.

Senders add drafts; L{AppendBatcher.flush}, at the end of each turn, appends all of them
at once. Drafts that need not wait for the disk or for copies are answered in one loop;
the others wait in L{GroupCommit}. A draft's context says how it is answered:

  - a L{Quick<send_answers.Quick>} tuple: the template of its queue, straight to its
    connection. All ordinary sends have it;
  - a function, called with the draft and the response code: all others.

When the disk cannot follow, a send is answered with SYSTEM_BUSY before a draft is made,
so that the client tries another broker: L{Overload}; and so are all sends of a turn
that does not get the append lock, as another process hangs with it. A slave has the
master's log, and no message of its own gets into it: sends are answered with
SERVICE_NOT_AVAILABLE, also before anything is made. (RocketMQ answers with SYSTEM_BUSY,
or so if the slave may act as master; clients do the same with either.)

C{docs/facts/broker.md} 7, 10.5 has statuses and remarks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias, final

from twisted.logger import Logger

from rocketbroker.broker.appends.ack_rule import (
    IN_SYNC_REPLICAS_NOT_ENOUGH,
    NOT_ENOUGH,
    AckRule,
)
from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.appends.overload import (
    APPEND_STALLED,
    FLUSH_STALLED,
    OVERLOADED,
    UNFLUSHED,
    Overload,
)
from rocketbroker.broker.appends.send_answers import SendAnswers, refuse
from rocketbroker.broker.stats.store_latency import StoreLatency
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import (
    BrokerError,
    MessageIllegal,
    ServiceNotAvailable,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.append_lock import LOCK_BUSY
from rocketbroker.store.interfaces import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    NOT_PUT,
    OS_PAGE_CACHE_BUSY,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
    UNKNOWN_ERROR,
    Draft,
    IStore,
)
from rocketbroker.store.running_flags import (
    DISK_FULL,
    LOGIC_DISK_FULL,
    NOT_APPENDABLE,
)

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
    OS_PAGE_CACHE_BUSY: APPEND_STALLED,
    IN_SYNC_REPLICAS_NOT_ENOUGH: TOO_FEW_COPIES,
}

#: Answers a draft in its own way, given the response code.
AnswerDraft: TypeAlias = Callable[[Draft, int], None]


def _to_nobody() -> None:
    """Nobody is told of appends yet."""


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
    if status == OS_PAGE_CACHE_BUSY:
        return SystemBusy(LOCK_BUSY)
    if status == IN_SYNC_REPLICAS_NOT_ENOUGH:
        return SystemFailure("in-sync replicas not enough")
    if status == CREATE_MAPPED_FILE_FAILED:
        words = "create mapped file failed, server is busy or broken."
        return SystemFailure(f"{words} {store.refusal() or ''}".rstrip())
    return SystemFailure("UNKNOWN_ERROR")


def _unavailable(store: IStore, reason: str) -> ServiceNotAvailable:
    """The error for whoever sends what the store does not take.

    RocketMQ lists what may be the reason, a full disk first. Where it is another, and
    the store knows it, the client is told that one.
    """
    bits = store.flags.bits
    if reason and bits & NOT_APPENDABLE and not bits & (DISK_FULL | LOGIC_DISK_FULL):
        return ServiceNotAvailable(f"service not available now: {reason}")
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
    @ivar answers: answers them.
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
        seconds: Callable[[], float],
    ) -> None:
        """
        @param seconds: monotonic time.
        """
        self.drafts: list[Draft] = []
        self.answers = SendAnswers(self.refuse_draft)
        self._gatherers: list[Callable[[], None]] = []
        self.refused = dict.fromkeys(REASONS, 0)
        self.failed = 0
        self.put_times = StoreLatency()
        self._store = store
        self._group_commit = group_commit
        self.overload = Overload(store, group_commit, settings, seconds)
        self._ack_rule = ack_rule
        self._appended: Callable[[], None] = _to_nobody
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

    def watch_appended(self, appended: Callable[[], None]) -> None:
        """Call C{appended} after each append."""
        self._appended = appended

    def watch_before_append(self, gather: Callable[[], None]) -> None:
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
        """See L{SendAnswers.settle}."""
        self.answers.settle(drafts, code)

    def refuse_draft(
        self, draft: Draft, connection: IConnection | None, opaque: int
    ) -> None:
        """Count a draft that the store did not take, and tell its sender why."""
        self.not_stored(draft)
        if connection is not None:
            refuse(connection, opaque, problem_of(draft, self._store, self._max_bytes))
