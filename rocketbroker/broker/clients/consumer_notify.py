# -*- test-case-name: tests.broker.clients.test_consumer_notify -*-
"""NOTIFY_CONSUMER_IDS_CHANGED: the broker asks members of a group to rebalance.

RocketMQ notifies every member at every change, so that 2,000 members that come one
after the other are sent two million notices. Here the changes of a group are gathered.
A group that has not changed lately is notified as soon as the turn is over that brought
the change: within a millisecond, as by RocketMQ, and once for all that came or went in
that turn. After that it is left alone for L{PAUSE_SECONDS}; what changes meanwhile is
one notice at the end of it. So a group of a few members that are started one by one
sees no difference, and no change is lost.

Of a large group L{MAX_NOTIFIED} members are notified each time, the others after them,
and only then it begins anew: each asks for the list of members when it is notified,
which is long, and others are not to wait for thousands of these answers.

Rules: docs/facts/broker.md 21."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, final

from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.frames import encode
from rocketbroker.wire.headers.client import NotifyConsumerIdsChangedRequestHeader

#: A group that was notified is not notified again for so long.
PAUSE_SECONDS: Final = 0.1

#: So many members of one group are notified at a time. A notice, the request that
#: follows, and its answer take a hundred microseconds. Clients of 5.x rebalance once a
#: second at most, however often they are notified.
MAX_NOTIFIED: Final = 200


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
        self._take(options)
        self._late: dict[str, ConsumerGroup] = {}
        # By name the groups that are notified soon; None: not changed since the last
        # notice.
        self._gathered: dict[str, ConsumerGroup | None] = {}

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._take(settings.broker)

    def _take(self, options: BrokerOptions) -> None:
        self._enabled = options.notify_consumer_ids_changed_enable
        self._at_once = options.real_time_notify_consumer_change

    def consumer_ids_changed(
        self, group: ConsumerGroup, member: IConnection | None = None
    ) -> None:
        """Notify a group when its time has come, or one member now.

        @param member: the only one that has to rebalance.
        """
        if not self._enabled:
            return
        if not self._at_once:
            self._late[group.name] = group
        elif member is not None:
            self._send(notice(group.name), [member])
        else:
            self._gather(group)

    def deliver(self) -> None:
        """Notify the groups that wait for the next period, each once."""
        late, self._late = self._late, {}
        for group in late.values():
            self._gather(group)

    def _gather(self, group: ConsumerGroup) -> None:
        """A group has changed: notify it as soon as it may be."""
        if group.name not in self._gathered:
            self._clock.callLater(0, self._notify, group.name)
        self._gathered[group.name] = group

    def _notify(self, name: str) -> None:
        """Notify a group if it has changed since its last notice."""
        group = self._gathered.pop(name)
        if group is not None:
            self._gathered[name] = None
            self._notify_some(name, notice(name), list(group.members))

    def _notify_some(self, name: str, frame: bytes, members: list[IConnection]) -> None:
        """Notify the first of these members, and the others after a pause."""
        self._send(frame, members[:MAX_NOTIFIED])
        others = members[MAX_NOTIFIED:]
        if others:
            self._clock.callLater(PAUSE_SECONDS, self._notify_some, name, frame, others)
        else:
            self._clock.callLater(PAUSE_SECONDS, self._notify, name)

    def _send(self, frame: bytes, members: Iterable[IConnection]) -> None:
        for connection in members:
            if not (connection.closed or connection.congested):
                self.sent += 1
                connection.send(frame)


def notice(group: str) -> bytes:
    """The frame that all members of a group are sent."""
    header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
    code = RequestCode.NOTIFY_CONSUMER_IDS_CHANGED
    return encode(Command(code, header.to_ext(), flag=ONEWAY))
