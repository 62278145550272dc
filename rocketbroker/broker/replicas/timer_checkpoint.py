# -*- test-case-name: tests.broker.replicas.test_timer_checkpoint -*-
"""Request 60: how far the timers are. There are none yet, so nothing is to be done.

RocketMQ's brokers ask for it all the same: a slave every three seconds, and a master
that comes back, of each of its slaves; without an answer that master is never
registered. What is said here is that all timers up to now are over. A slave takes that,
and a master of its own timers does not, as the data version is zero, older than any.

C{docs/facts/ha.md} 11 and 13; C{docs/facts/admin.md}.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, final

from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to

_BODY: Final = struct.Struct(
    ">"
    "q"  # the time up to which timers are read, in ms
    "q"  # flushed position of the timer log
    "q"  # queue offset up to which timers are in it
    "q"  # the same of the master
    "q"  # data version: state version
    "q"  # time
    "q"  # counter
)

#: A timer wheel has a slot for each second.
SLOT_MS: Final = 1000


@final
class TimerCheckpoint:
    """Answers request 60."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        self._wall_ms = wall_ms

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.GET_TIMER_CHECK_POINT, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Command:
        """Request 60."""
        now_ms = self._wall_ms()
        body = _BODY.pack(now_ms - now_ms % SLOT_MS, 0, 0, 0, 0, 0, 0)
        return response_to(request, body=body)
