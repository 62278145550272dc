# -*- test-case-name: tests.broker.timer.test_recount -*-
"""The nightly recount of waiting timer messages (timerEnableCheckMetrics).

Counts by topic are kept as messages come and go; a broker that was killed, and a marker
that rolls in RocketMQ, leave them wrong. So between five and six o'clock the wheel is
copied and the units of all its slots are counted, a few at a time and in a thread. A
unit has the hash of its topic only: topics that share one are left as they are, and
those with timerMetricSmallThreshold messages and more, for which it does not matter.

C{docs/facts/transaction-timer-pop.md} B8.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.timer.step_runner import Pauses
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.wheel_clock import WheelClock
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.timerwheel.wheel import slots_of

#: The hour of the local day.
HOUR: Final = 5

#: Not again before so many seconds have passed.
PAUSE_SECONDS: Final = 70 * 60.0

#: So many units are counted in one step.
MAX_UNITS: Final = 10_000


@final
class Recount:
    """The nightly count of messages that wait.

    @ivar options: as they are in force.
    @ivar runs: how often all was counted.
    """

    def __init__(
        self,
        clock: WheelClock,
        counts: TimerCounts,
        options: StoreOptions,
        local_hour: Callable[[], int],
        seconds: Callable[[], float],
        pauses: Pauses,
    ) -> None:
        """
        @param local_hour: the hour of the day.
        """
        self.options = options
        self.runs = 0
        self._clock = clock
        self._counts = counts
        self._local_hour = local_hour
        self._seconds = seconds
        self._pauses = pauses
        self._not_before = 0.0

    def look(self) -> Deferred[None] | None:
        """Count if it is time, and no slot is half delivered; fires when that is
        done."""
        if (
            not self.options.timer_enable_check_metrics
            or self._seconds() < self._not_before
            or self._local_hour() != HOUR
            or self._clock.is_in_slot
        ):
            return None
        self._not_before = self._seconds() + PAUSE_SECONDS
        return self._pauses.begin(self._count())

    async def _count(self) -> None:
        timers, pauses = self._clock.timers, self._pauses
        first = self._clock.read_ms // timers.precision_ms
        pages = timers.wheel.copied()
        self._counts.begin_recount()
        found: Counter[int] = Counter()

        def count(last: int) -> int:
            units, last = timers.log.chain(last, MAX_UNITS)
            for unit in units:
                found[unit.topic_hash] += -1 if unit.deletes else 1
            return last

        try:
            for _, slot in slots_of(pages, first):
                last = slot.last
                while last >= 0:
                    last = await pauses.run(partial(count, last), True)
                    await pauses.rest()
                    if pauses.is_stopped:
                        return
            most = self.options.timer_metric_small_threshold
            self._counts.recounted(found, most)
            self.runs += 1
        finally:
            self._counts.end_recount()
