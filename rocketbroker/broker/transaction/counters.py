# -*- test-case-name: tests.broker.transaction.test_counters -*-
"""Counters of open and ended transactions, by topic, and C{transactionMetrics}.

The file is RocketMQ's, read and written: topic to count and time stamp
(C{docs/facts/transaction-timer-pop.md} A8; C{docs/facts/security-metrics.md} 5.3, group
T).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.appends.append_batcher import AnswerDraft
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.metadata.counts_file import CountsFile
from rocketbroker.store.interfaces import PUT_OK, Draft

#: Upper bounds in seconds of the time from birth to commit, the last class is open.
LATENCY_BOUNDS: Final = (5, 60, 600, 3600, 43200, 86400)


@final
class TopicTransactions:
    """The counts of one topic.

    @ivar open: how many wait for their end.
    @ivar changed_ms: when that changed.
    @ivar commits: how many were committed.
    @ivar rollbacks: how many were rolled back.
    @ivar latencies: how many commits fell into each class of C{LATENCY_BOUNDS}.
    @ivar seconds: the sum of their times.
    """

    __slots__ = ("changed_ms", "commits", "latencies", "open", "rollbacks", "seconds")

    def __init__(self) -> None:
        self.open = 0
        self.changed_ms = 0
        self.commits = 0
        self.rollbacks = 0
        self.latencies = [0] * (len(LATENCY_BOUNDS) + 1)
        self.seconds = 0.0


@final
class TransactionCounters:
    """The counts of all topics.

    @ivar topics: by name.
    """

    def __init__(self, file: JsonTable, wall_ms: Callable[[], int]) -> None:
        self.topics: dict[str, TopicTransactions] = {}
        self._file = CountsFile(file, "transactionCount", wall_ms)

    def load(self) -> None:
        """I{Blocking.} Read the file."""
        for topic, number, _ in self._file.load() or ():
            if number >= 0:
                self._of(topic).open = number

    def begin(self, found: dict[str, int]) -> None:
        """All open transactions have been counted: that wins against the file."""
        for topic in self.topics.keys() | found.keys():
            counts = self._of(topic)
            if counts.open != found.get(topic, 0):
                self._change(counts, found.get(topic, 0) - counts.open)

    def prepared(self, topic: str, answer: AnswerDraft) -> AnswerDraft:
        """What answers a half message for C{topic}, and counts it if it is stored.

        @param answer: what answers it.
        """
        return partial(self._settle, topic, answer)

    def _settle(self, topic: str, answer: AnswerDraft, draft: Draft, code: int) -> None:
        if draft.status == PUT_OK:
            self._change(self._of(topic), 1)
        answer(draft, code)

    def ended(self, topic: str, commit: bool, age_ms: int, was_open: bool) -> None:
        """A transaction was ended.

        @param age_ms: the time since its birth.
        @param was_open: whether it still counted as open; a discarded one does
            not.
        """
        counts = self._of(topic)
        if was_open:
            self._change(counts, -1)
        if not commit:
            counts.rollbacks += 1
            return
        seconds = max(0, age_ms) / 1000
        counts.commits += 1
        counts.seconds += seconds
        counts.latencies[bisect_left(LATENCY_BOUNDS, seconds)] += 1

    def discarded(self, topic: str) -> None:
        """A transaction is discarded."""
        self._change(self._of(topic), -1)

    def resumed(self, topic: str) -> None:
        """One that was discarded is open again."""
        self._change(self._of(topic), 1)

    def _of(self, topic: str) -> TopicTransactions:
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicTransactions()
        return counts

    def _change(self, counts: TopicTransactions, by: int) -> None:
        counts.open = max(0, counts.open + by)
        counts.changed_ms = self._file.changed()

    def to_json(self) -> dict[str, object]:
        """The content of the file."""
        return self._file.content(
            (topic, counts.open, counts.changed_ms)
            for topic, counts in self.topics.items()
        )

    def save(self) -> None:
        """Write the file in a thread if it is behind the counts."""
        self._file.save(self.to_json)

    def saved(self) -> Deferred[None]:
        """Fires when no write is under way."""
        return self._file.saved()
