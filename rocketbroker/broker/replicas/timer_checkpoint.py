# -*- test-case-name: tests.broker.replicas.test_timer_checkpoint -*-
"""Requests 60 and 61: how far the timers are, and how many wait for each topic.

RocketMQ's slaves ask for the first every three seconds, and a master that comes back
asks each of its slaves; without an answer it is never registered. So a broker without
timers answers, too: that all timers up to now are over. A slave takes that, and a
master of its own timers does not, as the data version is zero, older than any.

C{docs/facts/ha.md} 11 and 13; C{docs/facts/admin.md}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from rocketbroker.broker.json_bodies import with_body
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command, response_to


@final
class TimerCheckpoint:
    """Answers requests 60 and 61."""

    def __init__(
        self,
        checkpoint: Callable[[], Checkpoint],
        counts: Callable[[], dict[str, object]],
    ) -> None:
        """
        @param checkpoint: how far the timers are.
        @param counts: how many messages wait, as the file timermetrics has it.
        """
        self._checkpoint = checkpoint
        self._counts = counts

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.GET_TIMER_CHECK_POINT, self.respond)
        table.register(RequestCode.GET_TIMER_METRICS, self.respond_metrics)

    def respond(self, connection: IConnection, request: Command) -> Command:
        """Request 60."""
        return response_to(request, body=self._checkpoint().encode())

    def respond_metrics(self, connection: IConnection, request: Command) -> Command:
        """Request 61."""
        return with_body(request, self._counts())
