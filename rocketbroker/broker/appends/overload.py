# -*- test-case-name: tests.broker.appends.test_overload -*-
"""The reasons to turn a send away before a draft is made of it.

A send that is appended cannot be taken back, so that an overloaded broker has to say no
before. Each limit has a reason, and its answer, always SYSTEM_BUSY, names the stage
that is slow and for how long:

  - sends that wait for the disk or for copies, by number (sendThreadPoolQueueCapacity,
    as in RocketMQ's queue of sends) and by bytes (L{MAX_WAITING_BYTES}): they are
    memory. For how long a slave keeps them waiting is no reason: each is answered after
    slaveTimeout;
  - I{the flush is stalled}: the oldest of them has waited longer than
    osPageCacheBusyTimeOutMills, or all of them will take the disk longer. One more
    would wait for that flush and for its own, which may be longer than clients wait;
  - I{what is not flushed}, with ASYNC_FLUSH: rocketbrokerMaxUnflushedBytes. It is what
    a power loss takes and what a stop waits for; beyond the kernel's own limit each
    append waits for the disk, and everybody with it;
  - I{an append has stalled}: it took longer than osPageCacheBusyTimeOutMills. RocketMQ
    sees that while it lasts, from other threads. Here an append is made in the
    reactor's thread, and what came meanwhile waits in the sockets. So the turn after it
    takes one send, and refuses the others; if the append of that one is fast, the next
    turn takes all. L{FORGET_SECONDS} after it nothing waits any more that came then.

C{docs/facts/broker.md} 7.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, final

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import SystemBusy
from rocketbroker.remoting.request_expiry import PCBUSY, busy_remark
from rocketbroker.store.interfaces import IStore

#: How many bytes of messages may wait for the disk or for copies. A turn brings 64 KiB
#: from each connection, so this is two seconds of what a disk of 100 MB/s writes.
MAX_WAITING_BYTES: Final = 256 << 20

#: An append that stalled longer ago has nothing to say about the next.
FORGET_SECONDS: Final = 1.0

#: What L{Overload.room} is when nothing is full: no turn brings so many.
UNBOUNDED: Final = 1 << 30

OVERLOAD: Final = "[OVERLOAD]system busy, start flow control for a while"
BROKER_BUSY: Final = "[PC_SYNCHRONIZED]broker busy, start flow control for a while"

#: Too many sends wait, or are too big together; the flush of those that wait is slow;
#: too much is not flushed; an append was slow.
OVERLOADED: Final = "overloaded"
FLUSH_STALLED: Final = "flush_stalled"
UNFLUSHED: Final = "unflushed"
APPEND_STALLED: Final = "append_stalled"


class Refusal(NamedTuple):
    """Why a send is turned away, and what it is answered with."""

    reason: str
    error: SystemBusy


@final
class Overload:
    """Knows whether one more send may be taken.

    @ivar room: a turn may bring so many drafts before anybody has to ask L{refusal}.
        It is made up at the end of turns, so that a flush that has stalled meanwhile
        is noticed one turn late.
    """

    def __init__(
        self,
        store: IStore,
        group_commit: GroupCommit,
        settings: BrokerSettings,
        seconds: Callable[[], float],
    ) -> None:
        """
        @param seconds: monotonic time.
        """
        self._store = store
        self._group_commit = group_commit
        self._seconds = seconds
        self._stalled_ms = 0
        self._stalled_at = 0.0
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._max_waiting = settings.broker.send_thread_pool_queue_capacity
        self._max_unflushed = settings.store.rocketbroker_max_unflushed_bytes
        self._busy_ms = settings.store.os_page_cache_busy_time_out_mills
        # The next turn asks.
        self.room = 0

    def note(self, begin: float) -> None:
        """An append that was begun at C{begin} has just ended."""
        self._stalled_at = now = self._seconds()
        took_ms = int((now - begin) * 1000)
        self._stalled_ms = took_ms if took_ms > self._busy_ms else 0

    def make_room(self) -> None:
        """A turn has ended whose sends were appended: make up L{room}."""
        group_commit = self._group_commit
        if self._stalled_ms or self.refusal(0) is not None:
            self.room = 0
        elif group_commit.waiting or group_commit.synchronous:
            self.room = self._max_waiting - group_commit.waiting
        else:
            self.room = UNBOUNDED

    def refusal(self, drafts: int) -> Refusal | None:
        """Why no other send may be taken now; C{None} if it may.

        @param drafts: how many this turn has brought.
        """
        found = self._of_waits(drafts)
        if found is None and drafts and self._stalled_ms:
            if self._seconds() - self._stalled_at < FORGET_SECONDS:
                error = SystemBusy(busy_remark(PCBUSY, self._stalled_ms, 0, "append"))
                return Refusal(APPEND_STALLED, error)
            self._stalled_ms = 0
        return found

    def _of_unflushed(self) -> Refusal | None:
        """Why nothing more may be left to a later flush."""
        size = self._store.published_position - self._store.flushed_position
        if size < self._max_unflushed:
            return None
        # With long intervals nobody else might ask for a flush.
        self._group_commit.flush_if_idle()
        stage = f"flush, with {size} bytes to go"
        remark = f"{BROKER_BUSY}, slow stage: {stage}"
        return Refusal(UNFLUSHED, SystemBusy(remark))

    def _of_waits(self, drafts: int) -> Refusal | None:
        """Why nothing more may wait for the disk, or for copies."""
        group_commit = self._group_commit
        if not group_commit.synchronous:
            found = self._of_unflushed()
            if found is not None or not group_commit.waiting:
                return found
        count, waited_ms = group_commit.waiting + drafts, group_commit.waiting_ms()
        flush_ms = group_commit.flush_waiting_ms()
        is_flush = group_commit.synchronous and flush_ms >= waited_ms
        slow = "flush" if is_flush else "slaves"
        stage = f"slow stage: {slow}, {count} sends wait, the first for {waited_ms}ms"
        if count >= self._max_waiting:
            return Refusal(OVERLOADED, SystemBusy(f"{OVERLOAD}, {stage}"))
        if group_commit.waiting_bytes >= MAX_WAITING_BYTES:
            return Refusal(OVERLOADED, SystemBusy(f"{BROKER_BUSY}, {stage}"))
        if max(flush_ms, group_commit.expected_ms()) > self._busy_ms:
            return Refusal(FLUSH_STALLED, SystemBusy(f"{BROKER_BUSY}, {stage}"))
        return None
