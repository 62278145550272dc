# -*- test-case-name: tests.broker.timer.test_timer_service -*-
"""Counts of the messages that wait for a time, by topic, and the file C{timermetrics}.

The file is RocketMQ's, read and written: topic to count and time stamp
(C{docs/facts/transaction-timer-pop.md} B3; C{docs/facts/security-metrics.md} 5.4).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.messages.timer_messages import NEVER
from rocketbroker.broker.metadata.counts_file import CountsFile, Row
from rocketbroker.broker.timer.due_sink import Due
from rocketbroker.records.properties import find
from rocketbroker.store.timerwheel.units import topic_hash
from rocketbroker.wire.bodies.topics import DataVersion

#: Upper bounds in seconds of the time from birth to the due time, the last class is
#: open.
DELAY_BOUNDS: Final = (60, 600, 3600, 43200, 86400, 259200)


@final
class TopicTimers:
    """The counts of one topic.

    @ivar waiting: how many messages wait.
    @ivar changed_ms: when that changed.
    @ivar entered: how many came to wait, since the start.
    @ivar delivered: how many were delivered, or entered anew.
    @ivar delays: how many of those that came fell into each class of C{DELAY_BOUNDS}.
    @ivar seconds: the sum of their delays.
    """

    __slots__ = (
        "changed_ms",
        "delays",
        "delivered",
        "entered",
        "seconds",
        "waiting",
    )

    def __init__(self) -> None:
        self.waiting = 0
        self.changed_ms = 0
        self.entered = 0
        self.delivered = 0
        self.delays = [0] * (len(DELAY_BOUNDS) + 1)
        self.seconds = 0


@final
class TimerCounts:
    """The counts of all topics.

    @ivar topics: by name.
    @ivar entered: how many messages of any topic came to wait, since the start.
    @ivar delivered_messages: how many of them were delivered, or entered anew.
    """

    def __init__(self, file: JsonTable, wall_ms: Callable[[], int]) -> None:
        self.topics: dict[str, TopicTimers] = {}
        self.entered = 0
        self.delivered_messages = 0
        self._file = CountsFile(file, "timingCount", wall_ms)
        self._since: Counter[str] | None = None

    @property
    def version(self) -> DataVersion:
        """It moves with each write of the file."""
        return self._file.version

    def load(self) -> None:
        """I{Blocking.} Read the file."""
        self._become(self._file.load())

    def become(self, value: dict[object, object]) -> None:
        """Be what a master says."""
        self._become(self._file.read(value))

    def _become(self, rows: list[Row] | None) -> None:
        if rows is None:
            return
        for counts in self.topics.values():
            counts.waiting = 0
        for topic, number, changed_ms in rows:
            counts = self.of(topic)
            counts.waiting, counts.changed_ms = number, changed_ms

    def of(self, topic: str) -> TopicTimers:
        """The counts of a topic."""
        counts = self.topics.get(topic)
        if counts is None:
            counts = self.topics[topic] = TopicTimers()
        return counts

    def came(self, topic: str, delay_ms: int) -> None:
        """A message came that is to wait.

        @param delay_ms: from its birth to its time.
        """
        counts = self.of(topic)
        counts.entered += 1
        self.entered += 1
        seconds = max(0, delay_ms) // 1000
        counts.seconds += seconds
        counts.delays[bisect_left(DELAY_BOUNDS, seconds)] += 1

    def change(self, topic: str, by: int) -> None:
        """So many more wait, or fewer."""
        counts = self.of(topic)
        counts.waiting += by
        counts.changed_ms = self._file.changed()
        if self._since is not None:
            self._since[topic] += by

    def delivered(self, due: Iterable[Due]) -> None:
        """Messages were stored where they belong, or to wait once more."""
        waited: dict[str, int] = {}
        found: dict[str, int] = {}
        for message, enqueue_ms, rolls, place in due:
            if place is None:
                continue
            topic = place[0]
            found[topic] = found.get(topic, 0) + 1
            if enqueue_ms == NEVER:
                self.came(topic, 0)
                continue
            by = -1
            if rolls and find(message.property_bytes, b"TIMER_DEL_UNIQKEY"):
                # It counts as one less, and will once more.
                by = 1
            waited[topic] = waited.get(topic, 0) + by
        for topic, by in waited.items():
            self.change(topic, by)
        for topic, count in found.items():
            self.of(topic).delivered += count
            self.delivered_messages += count

    def forget(self, topic: str) -> None:
        """A topic is deleted: what waits for it does not count any more."""
        counts = self.topics.get(topic)
        if counts is not None and counts.waiting:
            self.change(topic, -counts.waiting)
        self.topics.pop(topic, None)

    # Counting anew.

    def begin_recount(self) -> None:
        """What waits now is counted: note what comes and goes meanwhile."""
        self._since = Counter()

    def end_recount(self) -> None:
        """It is counted, or not any more."""
        self._since = None

    def recounted(self, found: Mapping[int, int], most: int) -> None:
        """So many messages waited when counting began.

        @param found: by the hash of their topic.
        @param most: topics with as many and more are left as they are.
        """
        assert self._since is not None
        hashes = Counter(map(topic_hash, self.topics))
        for topic, counts in list(self.topics.items()):
            code = topic_hash(topic)
            right = found.get(code, 0) + self._since[topic]
            is_small = counts.waiting < most and hashes[code] == 1
            if is_small and counts.waiting != right:
                self.change(topic, right - counts.waiting)

    def to_json(self) -> dict[str, object]:
        """The content of the file, and the answer to request 61."""
        return self._file.content(
            (topic, counts.waiting, counts.changed_ms)
            for topic, counts in self.topics.items()
        )

    def save(self) -> None:
        """Write the file in a thread if it is behind the counts."""
        self._file.save(self.to_json)

    def saved(self) -> Deferred[None]:
        """Fires when no write is under way."""
        return self._file.saved()
