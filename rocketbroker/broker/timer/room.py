# -*- test-case-name: tests.broker.test_broker -*-
"""All parts that concern messages for later: delay levels, timers, and recall."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import final

from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.appends.send_answers import QueueSends
from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.messages.timer_messages import TimerMessages
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.schedule.schedule_service import ScheduleService
from rocketbroker.broker.services import Services
from rocketbroker.broker.timer.outlet import StoreOutlet
from rocketbroker.broker.timer.recall import Recall
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.timer_service import TimerService
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.store.interfaces import IStore
from rocketbroker.store.timerwheel.timers import Timers


@final
class LaterParts:
    """The parts.

    @ivar delay_messages: lets messages wait.
    @ivar schedule: delivers those with a delay level.
    @ivar timers: delivers those for any time.
    @ivar recall: takes such a message back.
    """

    def __init__(
        self,
        clock: IReactorTime,
        store: IStore,
        settings: BrokerSettings,
        delay_offsets: DelayOffsets,
        timer_counts: JsonTable,
        topics: TopicTable,
        batcher: AppendBatcher,
        group_commit: GroupCommit,
        appended: Callable[[], None],
        lmqs: Lmq,
        counter: Callable[[str, int, str], QueueSends],
        wall_ms: Callable[[], int],
        in_thread: InThread,
        services: Services,
    ) -> None:
        """
        @param timer_counts: the file timermetrics.
        @param appended: called after each append.
        @param counter: the counts of a queue and type of message.
        """
        options = settings.store
        timers = Timers(store.open_files, options)

        def slot_size(ms: int) -> int:
            slot = timers.wheel.get(ms)
            return 0 if slot is None else slot.messages

        self._timer_messages = TimerMessages(
            options, timers.precision_ms, slot_size, random.random
        )
        self.delay_messages = DelayMessages(
            options.message_delay_level, self._timer_messages, wall_ms
        )
        self.timers = TimerService(
            clock,
            store,
            timers,
            TimerCounts(timer_counts, wall_ms),
            StoreOutlet(store, lmqs, group_commit, appended),
            settings,
            wall_ms,
            in_thread,
            services,
        )
        self.recall = Recall(
            store,
            topics,
            batcher,
            self.delay_messages,
            self._timer_messages,
            settings,
            wall_ms,
        )
        pending = options.schedule_async_deliver_max_pending_limit
        self.schedule = ScheduleService(
            clock,
            store,
            delay_offsets,
            self.delay_messages,
            lmqs,
            group_commit,
            appended,
            counter if options.enable_schedule_message_stats else None,
            pending if options.enable_schedule_async_deliver else 1,
            wall_ms,
            in_thread,
            services,
        )

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._timer_messages.configure(settings.store)
        self.timers.configure(settings)
        self.recall.configure(settings)
