# -*- test-case-name: tests.broker.stats -*-
"""The room of figures over time, which are taken from other rooms."""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.pull.room import PullRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.schedule.room import ScheduleRoom
from rocketbroker.broker.send.room import SendRoom
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.stats.broker_stats import BrokerStats
from rocketbroker.broker.stats.creation_times import CreationTimes
from rocketbroker.broker.stats.keyed_stats import KeyedStats
from rocketbroker.broker.stats.watermarks import WaitingCount, Watermarks, of_families
from rocketbroker.remoting.cooperative_tasks import only_stopped
from rocketbroker.remoting.interfaces import ISlices

#: How often the counters of topics and groups are looked at: a minute has six looks.
LOOK_SECONDS: Final = 10.0

SAMPLES: Final = Service(
    "samples",
    "rates of the last seconds and minutes are taken",
    always(1),
)
STATISTICS: Final = Service(
    "statistics",
    "tools ask for the last minute, hour and day of topics and groups",
    always(LOOK_SECONDS),
)
WATERMARKS: Final = Service(
    "watermarks",
    "requests that have waited for long are logged",
    always(1),
    always(10),
)
DISPATCH_BEHIND: Final = Service(
    "log of the dispatch",
    "messages that no consumer sees yet are logged",
    always(60),
    always(10),
)


@final
class FiguresRoom(Room):
    """The figures of a broker.

    @ivar statistics: rates and totals of the broker.
    @ivar keyed: statistics of topics and groups.
    @ivar creation_times: how long requests took that make topics and groups.
    @ivar watermarks: log what has waited for long.
    """

    def __init__(
        self,
        context: BrokerContext,
        appends: AppendsRoom,
        schedule: ScheduleRoom,
        send: SendRoom,
        pull: PullRoom,
    ) -> None:
        seconds, settings = context.clock.seconds, context.settings
        sending, pulling, checks = send.sending, pull.pulling, pull.checks
        commit = appends.group_commit
        self._services: Services = context.services
        self._slices: ISlices = context.slices
        self.statistics = BrokerStats(
            seconds,
            context.wall_ms,
            context.store,
            appends.batcher.put_times,
            sending,
            pulling,
            checks,
        )
        self.keyed = KeyedStats(
            seconds,
            settings.broker.broker_cluster_name,
            sending,
            checks,
            send.send_back.counts.messages,
            schedule.delivered,
        )
        self.creation_times = CreationTimes(seconds)
        self.watermarks = Watermarks(
            context.store,
            (
                WaitingCount("Send", lambda: commit.waiting, commit.waiting_ms),
                WaitingCount("Pull", lambda: pulling.cold, pulling.cold_since_ms),
                *of_families(context.waiting.all.values()),
            ),
        )

    def start(self) -> None:
        """Look again and again."""
        begin = self._services.begin
        begin(WATERMARKS, self.watermarks.look)
        begin(DISPATCH_BEHIND, self.watermarks.look_behind)
        begin(SAMPLES, self.statistics.look)
        begin(STATISTICS, self._look)

    def _look(self) -> Deferred[None]:
        """Look at all topics and groups, in slices; the stop drops it."""
        look = self.keyed.look
        return self._slices.run(look, look()).addErrback(only_stopped)
