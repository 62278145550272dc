# -*- test-case-name: tests.broker.schedule -*-
"""The room of the delay levels."""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.room import Room
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.broker.schedule.schedule_service import ScheduleService
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable

SAVE_DELAYS: Final = Service(
    "save of delays",
    "the progress of delay levels goes to the disk",
    lambda s: s.store.flush_delay_offset_interval / 1000,
    always(10),
)


@final
class ScheduleRoom(Room):
    """The delay levels of a broker.

    @ivar delay_messages: lets messages wait, for a level or for a time.
    @ivar offsets: how far each level is.
    @ivar service: delivers messages whose delay is over.
    """

    def __init__(
        self, context: BrokerContext, appends: AppendsRoom, timer: TimerRoom
    ) -> None:
        self._services: Services = context.services
        self._counts = context.settings.store.enable_schedule_message_stats
        self.delay_messages = timer.delay_messages
        self.offsets = DelayOffsets(
            context.tables.file("delayOffset.json"),
            context.settings.broker.delay_offset_update_version_step,
            context.wall_ms,
        )
        self.service = ScheduleService(
            context, self.offsets, timer.delay_messages, appends.own, appends.lmqs
        )

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.offsets.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.offsets.configure(settings)
        self._counts = settings.store.enable_schedule_message_stats

    def delivered(self) -> tuple[int, int]:
        """The messages that count as pulled by a group, and their bytes."""
        if not self._counts:
            return 0, 0
        return self.service.delivered, self.service.delivered_bytes

    def load(self) -> None:
        """I{Blocking.} Read how far each level is; the store is open."""
        self.service.load()

    def start(self) -> None:
        """Begin to deliver."""
        self.service.start()
        self._services.begin(SAVE_DELAYS, self.service.save)

    def stop(self) -> Deferred[None]:
        """Deliver nothing any more; fires when no thread reads for it."""
        return self.service.stop()

    def save(self) -> Deferred[None]:
        """Write how far each level is; fires when that is done."""
        self.service.save()
        return self.service.saved()
