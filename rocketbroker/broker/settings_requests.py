# -*- test-case-name: tests.broker.test_settings_requests -*-
"""What the broker says of itself: its settings (26) and how it is (28).

Forms: the admin sheet, sections 2.4 and 4. Of the figures of request 28, those are
there that something measures, and those without which C{clusterList} of a tool of
4.9 fails; tools take the rest as unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.bodies import with_body
from rocketbroker.broker.rates import Rates
from rocketbroker.broker.sending import Sending
from rocketbroker.broker.topics import TopicTable
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.properties import render
from rocketbroker.remoting.interfaces import IConnection, IResponderTable
from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.admin_headers import GetBrokerConfigResponseHeader
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import VERSION, Command, response_to
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.topics import DataVersion

#: The release whose behaviour this is, as tools show it.
VERSION_NAME: Final = "V5_3_3"

#: Figures of queues in front of threads, and of a lock that is waited for. There are
#: none here: what has arrived is answered in the same turn, or waits for the disk.
NOTHING_WAITS: Final = {
    "sendThreadPoolQueueSize": "0",
    "sendThreadPoolQueueHeadWaitTimeMills": "0",
    "pullThreadPoolQueueSize": "0",
    "pullThreadPoolQueueHeadWaitTimeMills": "0",
    "pageCacheLockTimeMills": "0",
}


@final
class SettingsRequests:
    """Answers what tools ask about this broker."""

    def __init__(
        self,
        settings: BrokerSettings,
        store: IStore,
        topics: TopicTable,
        sending: Sending,
        rates: tuple[Rates, Rates],
        wall_ms: Callable[[], int],
    ) -> None:
        """
        @param rates: of messages that come in, and of those that go out.
        """
        self._settings = settings
        self._store = store
        self._topics = topics
        self._sending = sending
        self._incoming, self._outgoing = rates
        self._wall_ms = wall_ms
        self._started_ms = wall_ms()
        self._version = DataVersion(timestamp=self._started_ms)

    def register(self, table: IResponderTable) -> None:
        """Answer on a port."""
        table.register(RequestCode.GET_BROKER_CONFIG, self.settings)
        table.register(RequestCode.GET_BROKER_RUNTIME_INFO, self.runtime)

    def settings(self, connection: IConnection, request: Command) -> Command:
        """Request 26: all settings as lines of a properties file, sorted."""
        settings = self._settings
        known = dict(settings.unknown)
        for options in (settings.broker, settings.server, settings.client):
            known.update(options.as_properties())
        known.update(settings.store.as_properties())
        header = GetBrokerConfigResponseHeader(
            version=dumps(self._version.to_json()).decode()
        )
        return response_to(
            request, ext=header.to_ext(), body=render(known).encode("utf-8")
        )

    def runtime(self, connection: IConnection, request: Command) -> Command:
        """Request 28: figures, all as text."""
        store = self._store
        now = self._wall_ms()
        stored = sum(
            counter.messages
            for counter in self._sending.counters()
            if not self._topics.is_system(counter.topic)
        )
        usage = f"{store.disk_usage():.2f}"
        outgoing = self._outgoing.text()
        return with_body(
            request,
            {
                "table": {
                    "bootTimestamp": str(self._started_ms),
                    "brokerActive": "true",
                    "brokerVersion": str(VERSION),
                    "brokerVersionDesc": VERSION_NAME,
                    "commitLogDiskRatio": usage,
                    "commitLogMaxOffset": str(store.published_position),
                    "commitLogMinOffset": str(store.min_position),
                    "consumeQueueDiskRatio": usage,
                    **NOTHING_WAITS,
                    "dispatchBehindBytes": str(
                        store.published_position - store.dispatched_position
                    ),
                    "getTransferedTps": outgoing,  # as 4.9 spells it
                    "getTransferredTps": outgoing,
                    "msgPutTotalTodayNow": str(stored),
                    "putMessageFailedTimes": str(store.append_failures),
                    "putMessageTimesTotal": str(max(stored, 1)),
                    "putTps": self._incoming.text(),
                    "remainHowManyDataToFlush": sized(
                        store.published_position - store.flushed_position
                    ),
                    "runtime": lasted(now - self._started_ms),
                    "startAcceptSendRequestTimeStamp": str(
                        self._settings.broker.start_accept_send_request_time_stamp
                    ),
                }
            },
        )


def sized(count: int) -> str:
    """A number of bytes as tools print it.

    >>> sized(1536)
    '1.5 KiB'
    """
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def lasted(ms: int) -> str:
    """A time since the start as tools print it.

    >>> lasted(90_061_000)
    '[ 1 days, 1 hours, 1 minutes, 1 seconds ]'
    """
    minutes, seconds = divmod(ms // 1000, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
