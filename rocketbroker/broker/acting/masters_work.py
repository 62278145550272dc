# -*- test-case-name: tests.broker.acting.test_group_roles -*-
"""A master's work: by a slave that acts for it, and taken back by the master."""

from __future__ import annotations

from typing import final

from twisted.internet.defer import Deferred, gatherResults

from rocketbroker.broker.acting.escape_delays import EscapeDelays
from rocketbroker.broker.acting.escape_halves import EscapeHalves
from rocketbroker.broker.acting.reverse_sync import ReverseSync
from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.broker.context import BrokerContext
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.replicas.escape_bridge import EscapeBridge
from rocketbroker.broker.schedule.room import ScheduleRoom
from rocketbroker.broker.timer.due_sink import EscapeOutlet
from rocketbroker.broker.timer.room import TimerRoom
from rocketbroker.broker.transaction.room import TransactionRoom


@final
class MastersWork:
    """What cannot wait for a master that is gone: messages whose time has come.

    @ivar reverse_sync: takes over what a slave has done meanwhile.
    """

    def __init__(
        self,
        context: BrokerContext,
        metadata: MetadataRoom,
        bridge: EscapeBridge,
        appends: OwnAppends,
        timer: TimerRoom,
        schedule: ScheduleRoom,
        transactions: TransactionRoom,
    ) -> None:
        """
        @param bridge: takes what an acting master may not store itself.
        """
        offsets, put = metadata.offsets, bridge.put
        self._timers = timer.service
        self._outlet = EscapeOutlet(put, timer.service.timers.precision_ms)
        self.reverse_sync = ReverseSync(
            context.client,
            offsets,
            schedule.offsets.take_back,
            timer.service.take_back,
        )
        self._delays = EscapeDelays(
            context, schedule.offsets, schedule.service.levels, put
        )
        self._halves = EscapeHalves(
            context, transactions.checks, transactions.marks, offsets, appends, put
        )

    def start(self) -> None:
        """Do it whenever this broker acts for a master."""
        self._delays.start()
        self._halves.start()
        self._timers.escape_by(self._outlet)

    def ended(self) -> Deferred[None]:
        """Fires when nothing of it is under way."""
        works = self._delays, self._halves, self._timers
        return gatherResults([work.ended() for work in works]).addCallback(_nothing)


def _nothing(_: object) -> None:
    """Nothing is told."""
