# -*- test-case-name: tests.broker.admin.test_stats_views -*-
"""Request 315: one statistic of a topic, a group or the broker.

C{mqadmin statsAll} and the official exporter ask for it once for each topic and group;
the exporter takes its rates from the last minute.

Rules: docs/facts/admin.md 2.4, docs/facts/broker.md 22.3."""

from __future__ import annotations

from typing import final

from rocketbroker.broker.json_bodies import with_body
from rocketbroker.broker.stats.keyed_stats import KeyedStats
from rocketbroker.errors import SystemFailure
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.admin import ViewBrokerStatsDataRequestHeader


@final
class StatsViews:
    """The responder of request 315, statistics of one key."""

    def __init__(self, stats: KeyedStats) -> None:
        self._stats = stats

    def register(self, table: IResponderTable) -> None:
        """Register the responders in the table of a port."""
        table.register(RequestCode.VIEW_BROKER_STATS_DATA, self.respond)

    def respond(self, connection: IConnection, request: Command) -> Command:
        """The last minute, hour and day of one statistic.

        @raise SystemFailure: nothing was counted under that name and key.
        """
        header = ViewBrokerStatsDataRequestHeader.complete(request.ext)
        name, key = header.stats_name, header.stats_key
        found = self._stats.find(name, key)
        if found is None:
            raise SystemFailure(f"The stats <{name}> <{key}> not exist")
        return with_body(
            request, {view: window._asdict() for view, window in found.items()}
        )
