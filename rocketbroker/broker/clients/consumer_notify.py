# -*- test-case-name: tests.broker.clients.test_consumer_notify -*-
"""NOTIFY_CONSUMER_IDS_CHANGED: the broker asks members of a group to rebalance.

RocketMQ notifies every member at every change, so that 2,000 members that come one
after the other are sent two million notices. Here the changes of a group are gathered.
A group that has not changed lately is notified as soon as the turn is over that brought
the change: within a millisecond, as by RocketMQ, and once for all that came or went in
that turn. After that it is left alone for L{PAUSE_SECONDS}, or longer if it has more
than 200 members; what changes meanwhile is one notice at the end of it. So a group of a
few members that are started one by one sees no difference, and no change is lost.

Rules: docs/facts/broker.md 21."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.frames import encode
from rocketbroker.wire.headers.client import NotifyConsumerIdsChangedRequestHeader

#: The period of notices that are not sent at once.
LATE_SECONDS: Final = 15

#: A group that was notified is not notified again for so long.
PAUSE_SECONDS: Final = 0.1

#: Nor for so long for each of its members: a notice takes ten microseconds, so that the
#: notices of one group never take more than a fiftieth of the broker's time. Clients of
#: 5.x rebalance once a second at most, however often they are notified.
MEMBER_SECONDS: Final = 0.0005


@final
class ConsumerNotify:
    """Notifies the members of groups that have changed.

    A member that does not read its connection gets no notice: every client looks by
    itself from time to time, and its notices would pile up without a bound.

    @ivar sent: how many notices were sent.
    """

    def __init__(self, clock: IReactorTime, options: BrokerOptions) -> None:
        self.sent = 0
        self._clock = clock
        self._enabled = options.notify_consumer_ids_changed_enable
        self._at_once = options.real_time_notify_consumer_change
        self._late: dict[str, ConsumerGroup] = {}
        # By name the groups that are notified soon; None: not changed since the last
        # notice.
        self._gathered: dict[str, ConsumerGroup | None] = {}

    def consumer_ids_changed(
        self, group: ConsumerGroup, member: IConnection | None = None
    ) -> None:
        """Notify a group when its time has come, or one member now.

        @param member: the only one that has to rebalance.
        """
        name = group.name
        if not self._enabled:
            return
        if not self._at_once:
            self._late[name] = group
        elif member is not None:
            self._notify(group, [member])
        else:
            if name not in self._gathered:
                self._clock.callLater(0, self._tell, name)
            self._gathered[name] = group

    def deliver(self) -> None:
        """Notify the groups that wait for the next period, each once."""
        late, self._late = self._late, {}
        for group in late.values():
            self._notify(group, group.members)

    def _tell(self, name: str) -> None:
        """Notify a group if it has changed since its last notice."""
        group = self._gathered.pop(name)
        if group is None:
            return
        self._gathered[name] = None
        pause = max(PAUSE_SECONDS, MEMBER_SECONDS * len(group.members))
        self._clock.callLater(pause, self._tell, name)
        self._notify(group, group.members)

    def _notify(self, group: ConsumerGroup, members: Iterable[IConnection]) -> None:
        """Send members the same frame."""
        header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group.name)
        code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
        frame = encode(Command(code, header.to_ext(), flag=ONEWAY))
        for connection in list(members):
            if not connection.congested:
                self.sent += 1
                connection.send(frame)
