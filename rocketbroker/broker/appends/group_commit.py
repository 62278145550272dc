# -*- test-case-name: tests.broker.appends.test_group_commit -*-
"""Group commit of sends, and the flush that both flush modes share.

One flush is in flight at a time, in a thread; everything appended meanwhile goes into
the next one. The drafts of a turn wait here as one group, for two things:

  - the disk, with SYNC_FLUSH: until the flushed position has passed them. A group that
    waits longer than syncFlushTimeout is answered with FLUSH_DISK_TIMEOUT, and so is
    every group that waits when a flush fails: after a failed fdatasync the kernel may
    have dropped the pages, so a later success says nothing about them;
  - copies, with SYNC_MASTER: until so many replicas as the group needs have reported a
    position behind it, the master being one of them. After slaveTimeout the answer is
    FLUSH_SLAVE_TIMEOUT. The message is stored all the same.

Who waits for both is answered when both are decided, and then the replicas' outcome
counts, if it is none of success.

Each thing that is waited for has a L{line<_Line>} of its own, in the order of the log,
and there is one for each number of copies. So a group that needs more copies than there
are keeps nobody waiting but itself. RocketMQ looks at them one after the other: there
each send that waits in vain delays those behind it.

C{docs/facts/store.md} 6, C{docs/facts/ha.md} 5.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final, TypeAlias, final

from twisted.internet.defer import Deferred, gatherResults
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

#: The position up to which the log is stored so many times; -1 for nowhere.
Acked: TypeAlias = Callable[[int], int]

#: A flush of less tells how long the disk takes to answer, and not how fast it is; and
#: for less nobody is kept waiting.
MEASURED_BYTES: Final = 1 << 20

#: How long to wait after a flush that failed: a disk that refuses is not asked in a
#: busy loop, and one that recovers is noticed soon.
RETRY_SECONDS: Final = 0.1


@final
class _Group:
    """The drafts of one turn that wait together.

    @ivar lines: in how many lines it stands.
    @ivar code: what it will be answered with, as far as is known.
    """

    __slots__ = ("begun", "code", "drafts", "end", "lines", "over", "settle", "size")

    def __init__(self, drafts: list[Draft], settle: Settle, begun: float) -> None:
        self.drafts = drafts
        self.settle = settle
        self.begun = begun
        self.lines = 0
        self.code = 0
        self.over: list[Deferred[None]] = []
        self.end = drafts[-1].end
        self.size = self.end - drafts[0].position


@final
class _Line:
    """Groups that wait for the same thing, first come first, with their deadlines.

    @ivar late: the code for a group whose deadline has passed.
    @ivar drafts: how many drafts wait in it.
    @ivar bytes: how many bytes of the log they are.
    """

    __slots__ = ("bytes", "drafts", "groups", "late")

    def __init__(self, late: int) -> None:
        self.late = late
        self.drafts = 0
        self.bytes = 0
        self.groups: deque[tuple[float, _Group]] = deque()

    def join(self, group: _Group, deadline: float) -> None:
        """Let one more wait."""
        self.groups.append((deadline, group))
        self.drafts += len(group.drafts)
        self.bytes += group.size
        group.lines += 1

    def leave(self) -> _Group:
        """Take the first one out."""
        _, group = self.groups.popleft()
        self.drafts -= len(group.drafts)
        self.bytes -= group.size
        group.lines -= 1
        return group

    def first_ms(self, now: float) -> int:
        """For how many ms the first of them has waited; 0 if there is none."""
        if not self.groups:
            return 0
        return max(0, int((now - self.groups[0][1].begun) * 1000))


@final
class GroupCommit:
    """Flushes the commit log, and answers the sends that waited.

    @ivar synchronous: whether answers wait for the disk (SYNC_FLUSH).
    @ivar waiting: how many drafts wait now.
    @ivar waiting_bytes: how many bytes of the log they are.
    @ivar flushes: how many flushes succeeded.
    @ivar failures: how many failed.
    @ivar timeouts: how many drafts were answered with FLUSH_DISK_TIMEOUT.
    @ivar slave_timeouts: how many were answered with FLUSH_SLAVE_TIMEOUT.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        options: StoreOptions,
        in_thread: InThread,
        acked: Acked,
    ) -> None:
        self.synchronous = options.flush_disk_type == "SYNC_FLUSH"
        self.waiting = 0
        self.waiting_bytes = 0
        self.flushes = 0
        self.failures = 0
        self.timeouts = 0
        self.slave_timeouts = 0
        self._clock = clock
        self._store = store
        self._take(options)
        self._in_thread = in_thread
        self._acked = acked
        self._disk = _Line(ResponseCode.FLUSH_DISK_TIMEOUT)
        self._copies: dict[int, _Line] = {}
        self._in_flight = False
        self._again = False
        self._stopped = False
        self._idle: list[Deferred[None]] = []
        self._timer: IDelayedCall | None = None
        self._due = inf
        self._retry: IDelayedCall | None = None
        self._observers: list[Callable[[], None]] = []
        self._begun_at = 0.0
        self._bytes_before = 0
        self._bytes_per_second = inf

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on; who waits already keeps his time."""
        self._take(settings.store)

    def _take(self, options: StoreOptions) -> None:
        self._timeout = options.sync_flush_timeout / 1000.0
        self._slave_timeout = options.slave_timeout / 1000.0

    @property
    def waiting_for_copies(self) -> int:
        """How many of the drafts that wait do so for copies."""
        return sum(line.drafts for line in self._copies.values())

    def waiting_ms(self) -> int:
        """For how many ms the draft that waits for longest has waited; 0 if none."""
        now = self._clock.seconds()
        return max(line.first_ms(now) for line in self._lines())

    def flush_waiting_ms(self) -> int:
        """The same of those that wait for the disk."""
        return self._disk.first_ms(self._clock.seconds())

    def expected_ms(self) -> int:
        """How many ms the disk will take for all that waits, as fast as it was."""
        if self._disk.bytes <= MEASURED_BYTES:
            return 0
        return int(self._disk.bytes / self._bytes_per_second * 1000)

    def watch_flush(self, observer: Callable[[], None]) -> None:
        """Call C{observer} after each flush that succeeded."""
        self._observers.append(observer)

    def admit(self, drafts: list[Draft], settle: Settle, copies: int = 1) -> None:
        """Let stored drafts wait: for the disk with SYNC_FLUSH, and for copies.

        @param drafts: not empty, all appended, in the order of the log.
        @param settle: called once for all of them, with SUCCESS, FLUSH_DISK_TIMEOUT or
            FLUSH_SLAVE_TIMEOUT.
        @param copies: how many there have to be, the master's included.
        """
        assert self.synchronous or copies > 1, "there is nothing to wait for"
        now = self._clock.seconds()
        group = _Group(drafts, settle, now)
        self.waiting += len(drafts)
        self.waiting_bytes += group.size
        if copies > 1:
            line = self._copies.get(copies)
            if line is None:
                line = self._copies[copies] = _Line(ResponseCode.FLUSH_SLAVE_TIMEOUT)
            line.join(group, now + self._slave_timeout)
            self._wake_at(now + self._slave_timeout)
        if self.synchronous:
            self._disk.join(group, now + self._timeout)
            self._wake_at(now + self._timeout)
            self.flush()

    def copied(self) -> None:
        """Replicas have reported, or one has gone: release who has enough copies."""
        for copies, line in list(self._copies.items()):
            if line.groups:
                self._release(line, self._acked(copies))

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
        # Each line is left in order.
        last = [line.groups[-1][1] for line in self._lines() if line.groups]
        waits: list[Deferred[None]] = []
        for group in last:
            waits.append(Deferred())
            group.over.append(waits[-1])
        return gatherResults(waits).addCallback(lambda _: None)

    def stop(self) -> Deferred[None]:
        """Let the disk have what waits, and start no other flush after that.

        Who waits for copies is answered as if they had not come in time: by now there
        is nobody who would report them.

        @return: fires when no send waits and no thread flushes any more.
        """
        self._stopped = True
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        done: Deferred[None] = Deferred()
        self._idle.append(done)
        for line in self._copies.values():
            self._give_up(line)
        if self._disk.groups:
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
        self._release(self._disk, position)
        for observer in self._observers:
            observer()
        if (self._again or self._disk.groups) and not self._in_flight:
            self._start()
        self._rest()

    def _failed(self, failure: Failure) -> None:
        self._in_flight = False
        self.failures += 1
        self._log.error(
            "The commit log could not be flushed: {reason}",
            reason=failure.getErrorMessage(),
        )
        self._give_up(self._disk)
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
        if self._stopped and self._timer is not None and not self.waiting:
            self._timer.cancel()
            self._timer = None
        idle, self._idle = self._idle, []
        for done in idle:
            done.callback(None)

    def _lines(self) -> list[_Line]:
        return [self._disk, *self._copies.values()]

    def _release(self, line: _Line, position: int) -> None:
        groups = line.groups
        while groups and groups[0][1].end <= position:
            self._decide(line.leave(), ResponseCode.SUCCESS)

    def _give_up(self, line: _Line) -> None:
        for _ in range(len(line.groups)):
            self._decide(line.leave(), line.late)

    def _decide(self, group: _Group, code: int) -> None:
        """One of the things that a group waits for has happened, or will not."""
        # That of the replicas is the greater one.
        group.code = max(group.code, code)
        if group.lines:
            return
        count = len(group.drafts)
        self.waiting -= count
        self.waiting_bytes -= group.size
        if group.code == ResponseCode.FLUSH_DISK_TIMEOUT:
            self.timeouts += count
        elif group.code:
            self.slave_timeouts += count
        group.settle(group.drafts, group.code)
        for done in group.over:
            # Not in the middle of a release.
            self._clock.callLater(0, done.callback, None)

    def _wake_at(self, deadline: float) -> None:
        """Look for deadlines that have passed by then, or before."""
        # One may have passed while those before it were answered; a reactor takes no
        # negative delay.
        wait = max(0.0, deadline - self._clock.seconds())
        if self._timer is None:
            self._timer = self._clock.callLater(wait, self._expire)
        elif deadline < self._due:
            self._timer.reset(wait)
        else:
            return
        self._due = deadline

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.seconds()
        for line in self._lines():
            while line.groups and line.groups[0][0] <= now:
                self._decide(line.leave(), line.late)
            if line.groups:
                self._wake_at(line.groups[0][0])
