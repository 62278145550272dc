# -*- test-case-name: tests.broker.appends.test_ack_rule -*-
"""The acknowledgement rule: the number of copies that a send needs before its answer.

It is decided before the append, once for all sends of a turn. Only a SYNC_MASTER asks;
it is one of the copies itself, so that inSyncReplicas=1, the default, waits for nobody.
Messages whose property WAIT is false are not asked about.

  - As a rule it is inSyncReplicas, whether there are so many slaves or not: without
    them each send ends with FLUSH_SLAVE_TIMEOUT, and is stored.
  - With enableSlaveActingMaster a send is refused if it cannot have so many copies: if
    fewer replicas are alive, or in sync, than are needed; nothing is stored then. With
    enableAutoInSyncReplicas as many are needed as there are, at most inSyncReplicas and
    at least minInSyncReplicas.

A slave is in sync that is less than haMaxGapNotInSync bytes behind.

C{docs/facts/ha.md} 5.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.config.broker_settings import BrokerSettings

#: What L{AckRule.copies} is when a send has to be refused.
NOT_ENOUGH: Final = 0

#: The status of a draft that is refused, besides those that the store gives.
IN_SYNC_REPLICAS_NOT_ENOUGH: Final = 100


@final
class AckRule:
    """Decides how many copies the sends of a turn need.

    @ivar waits: whether sends may have to wait for copies, or be refused for want of
        them. If not, L{copies} need not be asked.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        in_sync: Callable[[int], int],
        alive: Callable[[], int],
    ) -> None:
        """
        @param in_sync: how many copies are in sync with a position in the log.
        @param alive: how many brokers of this name are alive.
        """
        self._in_sync = in_sync
        self._alive = alive
        self.configure(settings)

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        store = settings.store
        self._wanted = store.in_sync_replicas
        self._counts = settings.broker.enable_slave_acting_master
        #: How many are enough if there are no more.
        self._least = store.in_sync_replicas
        if self._counts and store.enable_auto_in_sync_replicas:
            self._least = store.min_in_sync_replicas
        most = max(self._wanted, self._least)
        self.waits = store.broker_role == "SYNC_MASTER" and most > 1

    def copies(self, end: int) -> int:
        """How many copies sends need that are appended now, the master's included.

        @param end: where the log ends.
        @return: L{NOT_ENOUGH} if they are to be refused.
        """
        if not self._counts:
            return self._wanted
        there = min(self._alive(), self._in_sync(end))
        needed = max(self._least, min(self._wanted, there))
        return needed if needed <= there else NOT_ENOUGH
