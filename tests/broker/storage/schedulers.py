"""A scheduler of the steps of a store in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.group_commit import GroupCommit
from rocketbroker.broker.storage.store_scheduler import (
    StoreScheduler,
)
from rocketbroker.config.store import StoreOptions
from rocketbroker.remoting.turns import Turns
from rocketbroker.store.interfaces import Arrival
from rocketbroker.store.message_store import Store
from rocketbroker.testing.replicas import ScriptedReplicas
from tests.broker.rig import Rig, context_of, settings_of


class SchedulerCase(SynchronousTestCase):
    """Regular work over a store in memory."""

    def setUp(self) -> None:
        """The usual settings; threads wait to be run."""
        self.arrived: list[tuple[int, int]] = []
        self.begin()

    def begin(
        self, wrap: Callable[[Store], Any] = lambda store: store, /, **settings: object
    ) -> None:
        """Work with those settings of the store.

        @param wrap: makes of the store what the scheduler is to see of it.
        """
        flush = str(settings.get("flush_disk_type", "ASYNC_FLUSH"))
        given = {
            "flushDiskType": flush,
            "maxIndexNum": str(settings.get("max_index_num", 1000)),
        }
        self.rig = Rig(given, threads=True, wrap=wrap)
        self.addCleanup(self.rig.close)
        options = StoreOptions(**settings)  # type: ignore[arg-type]
        clock, store, threads = self.rig.clock, self.rig.seen, self.rig.threads
        self.replicas = ScriptedReplicas()
        self.group_commit = GroupCommit(
            clock, store, options, threads, self.replicas.acked
        )
        self.turns = Turns()
        context = context_of(clock, settings_of(options), store, threads, self.turns)
        self.services = context.services
        self.scheduler = StoreScheduler(
            context, self.group_commit, self.replicas.appended
        )
        self.scheduler.watch(self.wake)

    def wake(self, arrival: Arrival) -> None:
        """Note how far the queue is and how many came."""
        self.arrived.append((arrival.queue.max_offset, len(arrival.tag_codes)))

    def append(self, count: int = 1) -> None:
        """Append messages, and say so."""
        for _ in range(count):
            self.rig.append()
        self.scheduler.appended()

    def stop(self) -> None:
        """Stop; it has to come to an end."""
        self.services.stop()
        done = self.scheduler.stop()
        self.rig.threads.run()
        self.successResultOf(done)
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
