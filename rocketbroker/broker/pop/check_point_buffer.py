# -*- test-case-name: tests.broker.pop.test_check_point_buffer -*-
"""Check points that are not in the log: those that wait for acknowledgements, and those
that could not be stored.

With enablePopBufferMerge a check point stays in memory for popCkStayBufferTime, in
which most consumers are ready: when all its messages are acknowledged, nothing at all
is written. If not, it is stored with the acknowledgements that came; and so it is in
good time before it is due. The group's offset is committed when that is over
(L{progress}), so a broker that dies has the messages popped again.

Without it (the default) each is stored with the turn of its pop. One that the disk
refuses stays here and is tried again; its messages are with the consumer already.

C{docs/facts/transaction-timer-pop.md} C7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

from rocketbroker.broker.pop.progress import (
    HeldCheckPoint,
    Line,
    Place,
    PointInput,
    PointState,
    PopProgress,
)
from rocketbroker.broker.pop.revive_log import ReviveLog
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import BrokerError
from rocketbroker.records.check_points import Ack, CheckPoint, Key
from rocketbroker.store.interfaces import PUT_OK, Draft

#: What a check point has to spare besides popCkStayBufferTimeOut, in ms.
SPARE_MS: Final = 1500

#: So many of those that could not be stored are tried again at once: ten milliseconds.
#: While nothing can be stored there may be very many.
MAX_RETRIED: Final = 256

# Members of an enumeration are slow to look up.
_DUE: Final = PointState.DUE
_KEPT: Final = PointState.KEPT
_STORED: Final = PointState.STORED
_WRITING: Final = PointState.WRITING
_WRITE: Final = PointInput.WRITE
_WRITTEN: Final = PointInput.WRITTEN


@final
class CheckPointBuffer:
    """Check points in memory, which the log does not have yet.

    @ivar merged: how many were acknowledged before they were written.
    @ivar failures: how many appends the store has refused.
    """

    def __init__(
        self,
        log: ReviveLog,
        progress: PopProgress,
        options: BrokerOptions,
        seconds: Callable[[], float],
        wall_ms: Callable[[], int],
    ) -> None:
        self.merged = 0
        self.failures = 0
        self._log = log
        self._progress = progress
        self._options = options
        self._seconds = seconds
        self._wall_ms = wall_ms
        self._waiting: dict[Key, HeldCheckPoint] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def __len__(self) -> int:
        """How many there are."""
        return len(self._waiting)

    def add(
        self,
        place: Place,
        line: Line,
        point: CheckPoint,
        revive_queue: int,
        next_offset: int,
        stored: Callable[[], None],
    ) -> bool:
        """Keep a new check point in memory or in the log.

        @param stored: called when it is in the log, or cannot be now.
        @return: whether C{stored} will be called; if not, it is kept in memory.
        """
        stays = self._may_stay(line, point)
        held = HeldCheckPoint(point, revive_queue, next_offset, self._seconds(), stays)
        if not stays:
            self._write(held, stored)
        line.held.append(held)
        if held.state is not _STORED:
            self._waiting[point.key] = held
        self._progress.popped(place, point.count)
        return not stays

    def _may_stay(self, line: Line, point: CheckPoint) -> bool:
        options = self._options
        return (
            options.enable_pop_buffer_merge
            and point.revive_ms - self._wall_ms()
            >= options.pop_ck_stay_buffer_time_out + SPARE_MS
            and len(self._waiting) <= options.pop_ck_max_buffer_size
            and len(line.held) < options.pop_ck_offset_max_queue_size
            and point.key not in self._waiting
        )

    def stays(self, key: Key) -> bool:
        """Whether acknowledgements may find a check point here."""
        held = self._waiting.get(key)
        return held is not None and held.state is _KEPT

    def ack(self, key: Key, offsets: Sequence[int]) -> bool:
        """Acknowledge messages of a check point in memory.

        @return: whether it is there, so that nothing has to be written.
        """
        held = self._waiting.get(key)
        if held is None or held.state is not _KEPT:
            return False
        assert held.point is not None
        options = self._options
        left_ms = held.point.revive_ms - self._wall_ms()
        age_ms = (self._seconds() - held.born_s) * 1000
        if (
            left_ms < options.pop_ck_stay_buffer_time_out + SPARE_MS
            or age_ms > options.pop_ck_stay_buffer_time - SPARE_MS
        ):
            return False
        for offset in offsets:
            index = held.point.index_of(offset)
            if index >= 0:
                held.acked |= 1 << index
        if held.is_acked():
            held.on(PointInput.ALL_ACKED)
            self.merged += 1
            del self._waiting[key]
        return True

    def look(self) -> None:
        """Write what may not stay any longer, and what could not be written."""
        retried = 0
        now, now_ms, options = self._seconds(), self._wall_ms(), self._options
        for held in list(self._waiting.values()):
            assert held.point is not None
            state = held.state
            if state is _WRITING:
                continue
            if state is _DUE:
                if retried < MAX_RETRIED:
                    retried += 1
                    self._write(held, _nothing)
                continue
            left_ms = held.point.revive_ms - now_ms
            age_ms = (now - held.born_s) * 1000
            if (
                left_ms < options.pop_ck_stay_buffer_time_out
                or age_ms >= options.pop_ck_stay_buffer_time
            ):
                self._write(held, _nothing)

    def drain(self) -> None:
        """Write all: the broker stops, and the next one is not to pop them again."""
        for held in list(self._waiting.values()):
            if held.state is not _WRITING:
                self._write(held, _nothing)

    def clear(self) -> None:
        """Forget all: this broker may write nothing any more."""
        self._waiting.clear()

    def _write(self, held: HeldCheckPoint, stored: Callable[[], None]) -> None:
        """Append it, and what is acknowledged of it."""
        point = held.point
        assert point is not None
        settled = partial(self._settled, held, stored)
        held.on(_WRITE)
        try:
            self._log.put_check_point(point, held.revive_queue, settled)
        except BrokerError:
            held.on(PointInput.REFUSED)
            raise
        if held.acked:
            offsets = enumerate(point.offsets())
            ack = Ack(
                point.topic,
                point.group,
                point.queue_id,
                point.start_offset,
                point.pop_ms,
                point.broker_name,
                [offset for index, offset in offsets if held.acked >> index & 1],
            )
            self._log.put_ack(ack, held.revive_queue, point.revive_ms, _ignore)

    def _settled(
        self,
        held: HeldCheckPoint,
        stored: Callable[[], None],
        draft: Draft,
        code: int,
    ) -> None:
        if draft.status == PUT_OK:
            held.on(_WRITTEN)
            held.end = draft.end
            assert held.point is not None
            if self._waiting.get(held.point.key) is held:
                del self._waiting[held.point.key]
        else:
            held.on(PointInput.REFUSED)
            self.failures += 1
        stored()


def _nothing() -> None:
    """Nobody waits for it."""


def _ignore(draft: Draft, code: int) -> None:
    """An acknowledgement that is lost brings its message again."""
