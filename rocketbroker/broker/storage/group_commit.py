# -*- test-case-name: tests.broker.storage.test_group_commit -*-
"""Group commit of sends, and the flush that both flush modes share.

One flush is in flight at a time, in a thread; everything appended meanwhile goes into
the next one. With SYNC_FLUSH the drafts of a turn wait here as one group until the
flushed position has passed them. A group that waits longer than syncFlushTimeout is
answered with FLUSH_DISK_TIMEOUT, and so is every group that waits when a flush fails:
after a failed fdatasync the kernel may have dropped the pages, so a later success says
nothing about them.

C{docs/facts/store.md} 6.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final, TypeAlias, final

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.interfaces import Draft, IStore
from rocketbroker.wire.codes import ResponseCode

#: Called with a group of drafts and the response code that became of their wait.
Settle: TypeAlias = Callable[[list[Draft], int], None]

#: A flush of less tells how long the disk takes to answer, and not how fast it is; and
#: for less nobody is kept waiting.
MEASURED_BYTES: Final = 1 << 20

#: How long to wait after a flush that failed: a disk that refuses is not asked in a
#: busy loop, and one that recovers is noticed soon.
RETRY_SECONDS: Final = 0.1


@final
class _Group:
    """The drafts of one turn that wait for the disk together."""

    __slots__ = ("begun", "deadline", "drafts", "end", "over", "settle", "size")

    def __init__(
        self, drafts: list[Draft], settle: Settle, begun: float, deadline: float
    ) -> None:
        self.drafts = drafts
        self.settle = settle
        self.begun = begun
        self.deadline = deadline
        self.over: list[Deferred[None]] = []
        self.end = drafts[-1].end
        self.size = self.end - drafts[0].position


@final
class GroupCommit:
    """Flushes the commit log and answers the sends that waited for it.

    @ivar synchronous: whether answers wait for the disk (SYNC_FLUSH).
    @ivar waiting: how many drafts wait now.
    @ivar waiting_bytes: how many bytes of the log they are.
    @ivar flushes: how many flushes succeeded.
    @ivar failures: how many failed.
    @ivar timeouts: how many drafts were answered with FLUSH_DISK_TIMEOUT.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        options: StoreOptions,
        in_thread: InThread,
    ) -> None:
        self.synchronous = options.flush_disk_type == "SYNC_FLUSH"
        self.waiting = 0
        self.waiting_bytes = 0
        self.flushes = 0
        self.failures = 0
        self.timeouts = 0
        self._clock = clock
        self._store = store
        self._timeout = options.sync_flush_timeout / 1000.0
        self._in_thread = in_thread
        self._groups: deque[_Group] = deque()
        self._in_flight = False
        self._again = False
        self._stopped = False
        self._idle: list[Deferred[None]] = []
        self._timer: IDelayedCall | None = None
        self._retry: IDelayedCall | None = None
        self._observers: list[Callable[[], None]] = []
        self._begun_at = 0.0
        self._bytes_before = 0
        self._bytes_per_second = inf

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on; who waits already keeps his time."""
        self._timeout = settings.store.sync_flush_timeout / 1000.0

    def waiting_ms(self) -> int:
        """For how many ms the draft that waits for longest has waited; 0 if none."""
        if not self._groups:
            return 0
        begun = self._groups[0].begun
        return max(0, int((self._clock.seconds() - begun) * 1000))

    def expected_ms(self) -> int:
        """How many ms the disk will take for all that waits, as fast as it was."""
        if self.waiting_bytes <= MEASURED_BYTES:
            return 0
        return int(self.waiting_bytes / self._bytes_per_second * 1000)

    def on_flush(self, observer: Callable[[], None]) -> None:
        """Call C{observer} after each flush that succeeded."""
        self._observers.append(observer)

    def admit(self, drafts: list[Draft], settle: Settle) -> None:
        """Let stored drafts wait for the disk.

        @param drafts: not empty, all appended, in the order of the log.
        @param settle: called once for all of them, with SUCCESS or FLUSH_DISK_TIMEOUT.
        """
        now = self._clock.seconds()
        group = _Group(drafts, settle, now, now + self._timeout)
        self._groups.append(group)
        self.waiting += len(drafts)
        self.waiting_bytes += group.size
        if self._timer is None:
            self._timer = self._clock.callLater(self._timeout, self._expire)
        self.flush()

    def flush(self) -> None:
        """Flush what is appended by now: at once, or after the flush in flight."""
        if self._in_flight:
            self._again = True
        elif self._retry is None:
            self._start()

    def flush_if_idle(self) -> None:
        """Flush what is appended by now, unless a flush is in flight."""
        if not self._in_flight:
            self.flush()

    def settled(self) -> Deferred[None]:
        """Fires when all sends that wait now are answered."""
        done: Deferred[None] = Deferred()
        if self._groups:
            self._groups[-1].over.append(done)
        else:
            done.callback(None)
        return done

    def stop(self) -> Deferred[None]:
        """Let the disk have what waits, and start no other flush after that.

        @return: fires when no send waits and no thread flushes any more.
        """
        self._stopped = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        done: Deferred[None] = Deferred()
        self._idle.append(done)
        if self._groups:
            self.flush()
        self._rest()
        return done

    def _start(self) -> None:
        self._in_flight = True
        self._again = False
        self._begun_at = self._clock.seconds()
        self._bytes_before = self._store.flushed_position
        done = self._in_thread(self._store.flush)
        done.addCallbacks(self._flushed, self._failed)
        done.addErrback(self._broken)

    def _flushed(self, position: int) -> None:
        self._in_flight = False
        self.flushes += 1
        size = position - self._bytes_before
        seconds = self._clock.seconds() - self._begun_at
        if size >= MEASURED_BYTES:
            self._bytes_per_second = size / seconds if seconds > 0 else inf
        self._release(position)
        for observer in self._observers:
            observer()
        if (self._again or self._groups) and not self._in_flight:
            self._start()
        self._rest()

    def _failed(self, failure: Failure) -> None:
        self._in_flight = False
        self.failures += 1
        self._log.error(
            "The commit log could not be flushed: {reason}",
            reason=failure.getErrorMessage(),
        )
        self._give_up()
        if not self._stopped:
            self._retry = self._clock.callLater(RETRY_SECONDS, self._try_again)
        self._rest()

    def _broken(self, failure: Failure) -> None:
        self._log.failure("An observer of the flush failed.", failure=failure)

    def _try_again(self) -> None:
        self._retry = None
        self._start()

    def _rest(self) -> None:
        if self._in_flight:
            return
        if self._stopped and self._timer is not None and not self._groups:
            self._timer.cancel()
            self._timer = None
        idle, self._idle = self._idle, []
        for done in idle:
            done.callback(None)

    def _release(self, position: int) -> None:
        groups = self._groups
        while groups and groups[0].end <= position:
            self._settle(groups.popleft(), ResponseCode.SUCCESS)

    def _give_up(self) -> None:
        groups, self._groups = self._groups, deque()
        for group in groups:
            self._settle(group, ResponseCode.FLUSH_DISK_TIMEOUT)

    def _settle(self, group: _Group, code: int) -> None:
        self.waiting -= len(group.drafts)
        self.waiting_bytes -= group.size
        if code:
            self.timeouts += len(group.drafts)
        group.settle(group.drafts, code)
        for done in group.over:
            # Not in the middle of a release.
            self._clock.callLater(0, done.callback, None)

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        while self._groups and self._groups[0].deadline <= now:
            self._settle(self._groups.popleft(), ResponseCode.FLUSH_DISK_TIMEOUT)
        if self._groups:
            wait = self._groups[0].deadline - now
            self._timer = self._clock.callLater(wait, self._expire)
