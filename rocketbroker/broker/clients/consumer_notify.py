# -*- test-case-name: tests.broker.clients.test_consumer_notify -*-
"""What the broker tells its clients unasked: that they have to rebalance.

NOTIFY_CONSUMER_IDS_CHANGED: the broker sheet, section 21.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.headers.client import NotifyConsumerIdsChangedRequestHeader

#: How often groups are told that were not told at once.
LATE_SECONDS: Final = 15


@final
class ConsumerNotify:
    """Tells the members of groups that these have changed.

    A member that does not read what it was sent is not told: every client looks by
    itself from time to time, and notices for it would pile up without a bound.

    @ivar sent: how many members were told.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.sent = 0
        self._enabled = options.notify_consumer_ids_changed_enable
        self._at_once = options.real_time_notify_consumer_change
        self._late: dict[str, ConsumerGroup] = {}

    def consumer_ids_changed(
        self, group: ConsumerGroup, members: Iterable[IConnection]
    ) -> None:
        """Tell these members of a group now, or all with the next L{deliver}."""
        if not self._enabled:
            return
        if self._at_once:
            self._tell(group, members)
        else:
            self._late[group.name] = group

    def deliver(self) -> None:
        """Tell the groups that wait, each once."""
        late, self._late = self._late, {}
        for group in late.values():
            self._tell(group, group.members)

    def _tell(self, group: ConsumerGroup, members: Iterable[IConnection]) -> None:
        header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group.name)
        for connection in list(members):
            if connection.congested:
                continue
            self.sent += 1
            connection.oneway(
                Command(
                    RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
                    header.to_ext(),
                    flag=ONEWAY,
                )
            )
