# -*- test-case-name: tests.broker.admin.test_runtime_info -*-
"""The statistics of the store, as tools ask for them.

The parts count where it happens, in plain integers: the store counts appended messages,
the append batcher how long they took, pulls the messages found. The totals are sampled
here once a second and written as text when a tool asks, so a message costs nothing.

There are two totals of incoming messages. That of the store has every appended message.
That of the sends leaves the topics of the system out; tools show it by days.

Forms: docs/facts/store.md 20, docs/facts/broker.md 22.4, docs/facts/admin.md 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from twisted.logger import Logger

from rocketbroker.broker.stats.day_totals import DayTotals
from rocketbroker.broker.stats.keyed_stats import PullCounters, SendCounters
from rocketbroker.broker.stats.rates import Rates
from rocketbroker.broker.stats.store_latency import StoreLatency
from rocketbroker.store.interfaces import IStore

#: The distribution of times is that of the last whole minute.
MINUTE_SECONDS: Final = 60


class ReadCounters(Protocol):
    """The counters of L{rocketbroker.broker.pull.pull.PullRequests}."""

    missed: int
    longest_read_ms: float

    def found(self) -> int:
        """How many reads found something for the pull."""


@final
class BrokerStats:
    """Totals and rates of a broker."""

    _log = Logger()

    def __init__(
        self,
        seconds: Callable[[], float],
        wall_ms: Callable[[], int],
        store: IStore,
        latency: StoreLatency,
        sends: SendCounters,
        reads: ReadCounters,
        pulls: PullCounters,
    ) -> None:
        """
        @param seconds: monotonic time.
        @param wall_ms: the time of day.
        """
        self._seconds = seconds
        self._store = store
        self._latency = latency
        self._sends = sends
        self._reads = reads
        self._pulls = pulls
        self._minute_at = seconds()
        self.rates = Rates(
            seconds,
            {
                "put": lambda: store.appended_messages,
                "found": reads.found,
                "missed": lambda: reads.missed,
                "transferred": self.transferred,
            },
        )
        self.days = DayTotals(wall_ms, {"put": self.put, "got": self.got})

    def put(self) -> int:
        """Messages that came into topics that are not of the system.

        One with a delay level does so when it is delivered.
        """
        counters = self._sends.counters()
        sent = sum([each.messages for each in counters if not each.is_system])
        return sent + self._sends.forgotten_messages

    def got(self) -> int:
        """Messages that were handed out, without those of the system."""
        counters = self._pulls.counters()
        taken = sum([each.messages for each in counters if not each.is_system])
        return taken + self._pulls.forgotten_messages

    def transferred(self) -> int:
        """Messages that were handed out."""
        checks = self._pulls
        taken = sum([each.messages for each in checks.counters()])
        return taken + checks.forgotten_messages

    def look(self) -> None:
        """Look at all totals; once a second."""
        self.rates.sample()
        if self.days.look():
            for name, word in (("put", "put"), ("got", "get")):
                self._log.info(
                    "yesterday {word} message total: {total}",
                    word=word,
                    total=self.days.of_yesterday(name),
                )
        now = self._seconds()
        if now - self._minute_at >= MINUTE_SECONDS:
            self._minute_at = now
            self._latency.end_minute()

    def table(self) -> dict[str, str]:
        """The figures of request 28 that are statistics."""
        store, times, rates = self._store, self._latency, self.rates
        messages = store.appended_messages
        transferred = rates.text("transferred")
        today, yesterday = self.days.today, self.days.yesterday
        return {
            # RocketMQ has no buffer in front of its dispatcher any more, nor has this.
            "dispatchMaxBuffer": "0",
            "getFoundTps": rates.text("found"),
            "getMessageEntireTimeMax": str(int(self._reads.longest_read_ms)),
            "getMissTps": rates.text("missed"),
            "getTotalTps": rates.sum_text("found", "missed"),
            "getTransferedTps": transferred,  # as 4.9 spells it
            "getTransferredTps": transferred,
            "msgGetTotalTodayMorning": str(today["got"]),
            "msgGetTotalTodayNow": str(self.got()),
            "msgGetTotalYesterdayMorning": str(yesterday["got"]),
            "msgPutTotalTodayMorning": str(today["put"]),
            "msgPutTotalTodayNow": str(self.put()),
            "msgPutTotalYesterdayMorning": str(yesterday["put"]),
            "putLatency99": f"{times.quantile_ms(0.99):.2f}",
            "putLatency999": f"{times.quantile_ms(0.999):.2f}",
            "putMessageAverageSize": str(
                store.appended_bytes / messages if messages else 0.0
            ),
            "putMessageDistributeTime": times.distribution(),
            "putMessageEntireTimeMax": str(int(times.longest_ms)),
            "putMessageFailedTimes": str(store.append_failures),
            "putMessageSizeTotal": str(store.appended_bytes),
            "putMessageTimesTotal": str(max(messages, 1)),
            "putTps": rates.text("put"),
        }
