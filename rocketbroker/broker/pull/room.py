# -*- test-case-name: tests.broker.pull -*-
"""The room of pulls: those that are answered at once, and those that wait."""

from __future__ import annotations

from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.pull.broadcast_offsets import BroadcastOffsets
from rocketbroker.broker.pull.cold_flow import ColdFlow
from rocketbroker.broker.pull.denied_pulls import DeniedPulls
from rocketbroker.broker.pull.long_polling import CHECK_SECONDS, LongPolling
from rocketbroker.broker.pull.pull import PullRequests
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.broker.pull.slow_groups import SlowGroups
from rocketbroker.broker.room import Room
from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.broker.services import Service, Services, always
from rocketbroker.broker.storage.room import StorageRoom
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable

HELD_PULLS: Final = Service(
    "check of held pulls",
    "catches arrivals that were not announced",
    lambda s: (
        CHECK_SECONDS
        if s.broker.long_polling_enable
        else s.broker.short_polling_time_mills / 1000
    ),
)
SLOW_GROUPS: Final = Service(
    "protection from slow groups",
    "with disableConsumeIfConsumerReadSlowly groups far behind are switched off",
    always(180),
)


@final
class PullRoom(Room):
    """What hands messages out to those that ask for them.

    @ivar refusals: pulls that were refused, for diagnostics.
    @ivar checks: what a pull has to pass, and the counts of what was read.
    @ivar long_polling: the pulls that wait.
    @ivar broadcasts: how far consumers are that get all messages.
    @ivar cold_flow: bounds reads from the disk.
    @ivar pulling: answers pulls.
    @ivar slow_groups: switches groups off that are far behind.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        clients: ClientsRoom,
        storage: StorageRoom,
        running: RunningSettings,
    ) -> None:
        settings, clock, store = context.settings, context.clock, context.store
        options, seconds = settings.broker, clock.seconds
        topics, groups, offsets = metadata.topics, metadata.groups, metadata.offsets
        consumers = clients.consumers
        self._services: Services = context.services
        self.refusals = DeniedPulls()
        self.checks = PullChecks(
            context, topics, groups, consumers, clients.filters, self.refusals
        )
        self.long_polling = LongPolling(clock, store, options, context.turns)
        storage.scheduler.watch(self.long_polling.wake)
        self.broadcasts = BroadcastOffsets(
            store, topics, consumers, offsets, options, seconds
        )
        self.cold_flow = ColdFlow(
            settings, consumers, seconds, context.wall_ms, running.change
        )
        self.pulling = PullRequests(
            context,
            self.checks,
            offsets,
            self.broadcasts,
            self.long_polling,
            self.cold_flow,
            storage.scheduler.dispatch,
        )
        self.slow_groups = SlowGroups(
            store, offsets, groups, settings, context.slices, context.in_thread
        )

    def is_broadcast(self, group: str) -> bool:
        """Whether each member of a group gets all messages."""
        return group in self.broadcasts.groups

    def pulled_by_worker(self, pulls: int, found: int, missed: int) -> None:
        """Count pulls that a worker has taken.

        @param found: how many reads for them found something.
        @param missed: how many did not.
        """
        self.pulling.pulled_elsewhere(pulls, found, missed)

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.cold_flow.register(table)

    def register_pulls(self, table: IResponderTable) -> None:
        """Answer pulls."""
        self.pulling.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.long_polling.configure(settings)
        self.checks.configure(settings)
        self.broadcasts.configure(settings)
        self.cold_flow.configure(settings)
        self.pulling.configure(settings)
        self.slow_groups.configure(settings)

    def start(self) -> None:
        """Look at the pulls that wait, and at the groups that are slow."""
        self._services.begin(HELD_PULLS, self.long_polling.check)
        self._services.begin(SLOW_GROUPS, self.slow_groups.look)

    def stop_answering(self) -> None:
        """Answer the pulls that wait."""
        self.long_polling.stop()

    def save(self) -> Deferred[None]:
        """Put into the table of offsets how far broadcasts are."""
        self.broadcasts.look()
        return super().save()
