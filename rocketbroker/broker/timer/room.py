# -*- test-case-name: tests.broker.timer -*-
"""The room of messages for later: how they wait, the timer wheel, and recall.

Delay levels have a room of their own (L{rocketbroker.broker.schedule.room}); which of
the two a message waits in is decided here, by L{DelayMessages}.
"""

from __future__ import annotations

import random
from typing import final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.delay_messages import DelayMessages
from rocketbroker.broker.messages.timer_messages import TimerMessages
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.replicas.timer_checkpoint import TimerCheckpoint
from rocketbroker.broker.room import Room
from rocketbroker.broker.timer.due_sink import StoreOutlet
from rocketbroker.broker.timer.recall import Recall
from rocketbroker.broker.timer.timer_counts import TimerCounts
from rocketbroker.broker.timer.timer_service import TimerService
from rocketbroker.broker.timer.timer_sync import TimerSync
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable
from rocketbroker.store.timerwheel.timers import Timers


@final
class TimerRoom(Room):
    """The timers of a broker.

    @ivar delay_messages: lets messages wait.
    @ivar service: delivers those for any time.
    @ivar recall: takes such a message back.
    @ivar sync: of a slave, is where its master's timers are.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        registration: RegistrationRoom,
        appends: AppendsRoom,
    ) -> None:
        options, store, wall_ms = context.settings.store, context.store, context.wall_ms
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
        counts = TimerCounts(context.tables.file("timermetrics"), wall_ms)
        outlet = StoreOutlet(store, appends.own, appends.lmqs)
        self.service = TimerService(context, timers, counts, outlet)
        self._checkpoint = TimerCheckpoint(self.service.checkpoint, counts.to_json)
        self.recall = Recall(
            context,
            metadata.topics,
            appends.batcher,
            self.delay_messages,
            self._timer_messages,
        )
        self.sync = TimerSync(
            context.client,
            registration.registration.masters,
            context.address,
            self.service,
            context.services,
        )

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.recall.register(table)
        self._checkpoint.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._timer_messages.configure(settings.store)
        self.service.configure(settings)
        self.recall.configure(settings)

    def load(self) -> None:
        """I{Blocking.} Read wheel, timer log and counts; the store is open."""
        self.service.load()

    def start(self) -> None:
        """Begin to enter and to deliver, or to ask the master."""
        self.service.start()
        self.sync.start()

    def stop(self) -> Deferred[None]:
        """Enter and deliver nothing any more; fires when nobody works for it."""
        return self.service.stop()

    def save(self) -> Deferred[None]:
        """Write the counts if they changed; fires when that is done."""
        self.service.counts.save()
        return self.service.counts.saved()
