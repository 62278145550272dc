# -*- test-case-name: tests.broker.clients.test_consumer_notify -*-
"""NOTIFY_CONSUMER_IDS_CHANGED: the broker asks members of a group to rebalance.

Rules: docs/facts/broker.md 21."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.headers.client import NotifyConsumerIdsChangedRequestHeader

#: The period of notices that are not sent at once.
LATE_SECONDS: Final = 15


@final
class ConsumerNotify:
    """Notifies the members of groups that have changed.

    A member that does not read its connection gets no notice: every client looks by
    itself from time to time, and its notices would pile up without a bound.

    @ivar sent: how many notices were sent.
    """

    def __init__(self, options: BrokerOptions) -> None:
        self.sent = 0
        self._enabled = options.notify_consumer_ids_changed_enable
        self._at_once = options.real_time_notify_consumer_change
        self._late: dict[str, ConsumerGroup] = {}

    def consumer_ids_changed(
        self, group: ConsumerGroup, members: Iterable[IConnection]
    ) -> None:
        """Notify these members of a group now, or all with the next L{deliver}."""
        if not self._enabled:
            return
        if self._at_once:
            self._notify(group, members)
        else:
            self._late[group.name] = group

    def deliver(self) -> None:
        """Notify the groups that wait, each once."""
        late, self._late = self._late, {}
        for group in late.values():
            self._notify(group, group.members)

    def _notify(self, group: ConsumerGroup, members: Iterable[IConnection]) -> None:
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
