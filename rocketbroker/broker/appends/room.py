# -*- test-case-name: tests.broker.appends -*-
"""The room of what is appended, by clients and by the broker itself."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.appends.ack_rule import AckRule
from rocketbroker.broker.appends.append_batcher import AppendBatcher
from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.messages.lmq import Lmq
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.broker.replicas.room import ReplicasRoom
from rocketbroker.broker.room import Room
from rocketbroker.config.broker_settings import BrokerSettings


@final
class AppendsRoom(Room):
    """The appends of a broker.

    @ivar group_commit: what waits for the disk and for copies.
    @ivar batcher: the sends of a turn.
    @ivar own: appends of the broker itself.
    @ivar lmqs: the other queues that a message goes to.
    """

    def __init__(
        self,
        context: BrokerContext,
        registration: RegistrationRoom,
        replicas: ReplicasRoom,
    ) -> None:
        clock, store, settings = context.clock, context.store, context.settings
        server, turns = replicas.server, context.turns
        group_commit = self.group_commit = GroupCommit(
            clock, store, settings.store, context.in_thread, server.acked
        )
        server.watch(lambda: turns.within(group_commit.copied))
        members = registration.registration.members
        self.batcher = AppendBatcher(
            store,
            group_commit,
            AckRule(settings, server.in_sync, lambda: members.alive),
            settings,
            clock.seconds,
        )
        turns.watch_turn_end(self.batcher.flush)
        turns.watch_turn_end(server.push)
        self.own = OwnAppends(store, group_commit)
        self.lmqs = Lmq(store, settings.store.enable_lmq)

    @property
    def waits(self) -> bool:
        """Whether answers to sends may have to wait, for the disk or for copies."""
        return self.batcher.waits

    def appended_by_worker(self, seconds: float, messages: int) -> None:
        """Count messages that a worker has appended.

        @param seconds: how long it took until they could be answered.
        """
        self.batcher.put_times.add(seconds * 1000.0, messages)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self.group_commit.configure(settings)
        self.batcher.configure(settings)
