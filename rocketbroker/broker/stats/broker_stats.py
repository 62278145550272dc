# -*- test-case-name: tests.broker.admin.test_runtime_info -*-
"""The statistics of the store, as tools ask for them.

The parts count where it happens, in plain integers: the store what it has appended, the
intake how long that took, pulls what they have found. Here the totals are looked at
once a second, and put into words when somebody asks. Nothing of it is paid by a
message.

Two totals of what came in exist. That of the store has everything that was appended,
whoever did it. That of the sends leaves topics of the system out; tools show it by
days.

The store sheet, section 20; the broker sheet, 22.4; the admin sheet, 4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.pull.pull import Pulling
from rocketbroker.broker.pull.pull_checks import PullChecks
from rocketbroker.broker.send.append_batcher import AppendBatcher
from rocketbroker.broker.send.send import Sending
from rocketbroker.broker.stats.day_totals import DayTotals
from rocketbroker.broker.stats.rates import KeyedRates, Rates
from rocketbroker.store.interfaces import IStore

#: The distribution of times is that of the last whole minute.
MINUTE_SECONDS: Final = 60


@final
class BrokerStats:
    """What happened, and how fast."""

    def __init__(
        self,
        seconds: Callable[[], float],
        wall_ms: Callable[[], int],
        store: IStore,
        topics: TopicTable,
        batcher: AppendBatcher,
        sending: Sending,
        pulling: Pulling,
        pull_checks: PullChecks,
    ) -> None:
        """
        @param seconds: monotonic time.
        @param wall_ms: the time of day.
        """
        self._seconds = seconds
        self._store = store
        self._topics = topics
        self._batcher = batcher
        self._sending = sending
        self._pulling = pulling
        self._pull_checks = pull_checks
        self._minute_at = seconds()
        self.rates = Rates(
            seconds,
            {
                "put": lambda: store.appended_messages,
                "found": pulling.found,
                "missed": lambda: pulling.missed,
                "transferred": self.transferred,
            },
        )
        self._taken = KeyedRates(
            seconds,
            lambda: (
                ((counter.group, counter.topic), counter.messages)
                for counter in pull_checks.counters()
            ),
        )
        self._came = KeyedRates(
            seconds,
            lambda: (
                (counter.topic, counter.messages) for counter in sending.counters()
            ),
        )
        self.days = DayTotals(wall_ms, {"put": self.put, "got": self.got})

    def put(self) -> int:
        """Messages that came into topics that are not of the system.

        One with a delay level does so when it is delivered.
        """
        system = self._topics.is_system
        sent = sum(
            counter.messages
            for counter in self._sending.counters()
            if not system(counter.topic)
        )
        return sent + self._sending.forgotten_messages

    def got(self) -> int:
        """Messages that were handed out, without those of the system."""
        system = self._topics.is_system
        taken = sum(
            counter.messages
            for counter in self._pull_checks.counters()
            if not system(counter.topic)
        )
        return taken + self._pull_checks.forgotten_messages

    def transferred(self) -> int:
        """Messages that were handed out."""
        checks = self._pull_checks
        taken = sum(counter.messages for counter in checks.counters())
        return taken + checks.forgotten_messages

    def taken_tps(self, group: str, topic: str) -> float:
        """How many messages of a topic a group got a second in the last minute."""
        return self._taken.rate((group, topic))

    def put_tps(self, topic: str) -> float:
        """How many messages came into a topic a second in the last minute."""
        return self._came.rate(topic)

    def look(self) -> None:
        """Look at all totals; once a second."""
        self.rates.sample()
        self._taken.sample()
        self._came.sample()
        self.days.look()
        now = self._seconds()
        if now - self._minute_at >= MINUTE_SECONDS:
            self._minute_at = now
            self._batcher.put_times.end_minute()

    def table(self) -> dict[str, str]:
        """The figures of request 28 that are statistics."""
        store, times, rates = self._store, self._batcher.put_times, self.rates
        messages = store.appended_messages
        transferred = rates.text("transferred")
        today, yesterday = self.days.today, self.days.yesterday
        return {
            # The reference has no buffer in front of its dispatcher any more, and
            # neither has this.
            "dispatchMaxBuffer": "0",
            "getFoundTps": rates.text("found"),
            "getMessageEntireTimeMax": str(int(self._pulling.longest_read_ms)),
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
