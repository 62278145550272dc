# -*- test-case-name: tests.broker.storage -*-
"""The room of the work on the store."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.appends.room import AppendsRoom
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.replicas.room import ReplicasRoom
from rocketbroker.broker.room import Room
from rocketbroker.broker.storage.cleanup import Cleanup
from rocketbroker.broker.storage.log_subscribers import SUBSCRIBERS, LogSubscribers
from rocketbroker.broker.storage.store_scheduler import StoreScheduler
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IResponderTable


@final
class StorageRoom(Room):
    """The steps of the store, when they run, and who sees what was stored.

    @ivar scheduler: dispatch, index, flush, and the making of segments.
    @ivar cleanup: removes expired files.
    @ivar log_subscribers: the plug-ins that see each stored message.
    """

    def __init__(
        self, context: BrokerContext, appends: AppendsRoom, replicas: ReplicasRoom
    ) -> None:
        clock, store, services = context.clock, context.store, context.services
        scheduler = self.scheduler = StoreScheduler(
            context, appends.group_commit, replicas.server.appended
        )
        appends.batcher.watch_appended(scheduler.dispatch_later)
        appends.own.watch(scheduler.appended, scheduler.dispatch)
        replicas.link.watch(scheduler.received)
        self.cleanup = Cleanup(clock, store, context.in_thread, services)
        self.log_subscribers = LogSubscribers(clock, context.tables.file(SUBSCRIBERS))
        self.log_subscribers.add_plugins(context.followers, store, context.settings)

    def appended(self) -> None:
        """Something was appended or flushed: dispatch it soon, and send it on."""
        self.scheduler.appended()

    def appended_by_worker(self) -> None:
        """A worker has appended: dispatch it, and send it on."""
        self.scheduler.appended_elsewhere()

    def dispatch(self) -> None:
        """Dispatch what was appended, one step."""
        self.scheduler.dispatch()

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        self.cleanup.register(table)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.scheduler.configure(settings)

    def load(self) -> None:
        """I{Blocking.} Read how far the plug-ins are."""
        self.log_subscribers.load()

    def start(self) -> None:
        """Begin all steps."""
        self.scheduler.start()
        self.cleanup.start()
        self.log_subscribers.start()
