# -*- test-case-name: tests.remoting.test_table -*-
"""Counters of the connections of one port.

Plain integers, counted where it happens; C{metrics} reads them when it is asked.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final, final

#: Upper bounds, in milliseconds, of the histogram rocketmq_rpc_latency;
#: C{docs/facts/security-metrics.md} 5.3. Longer times go into one more bucket.
LATENCY_BOUNDS_MS: Final = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)


#: The longest durations are those of the last minute, or two.
WINDOW_SECONDS: Final = 60.0


@final
class Longest:
    """The longest of the durations since the begin of the last whole minute.

    So each is shown for one to two minutes: by two scrapes at least, and by those of
    every scraper, which a maximum that a scrape resets is not.
    """

    __slots__ = ("_before", "_begin", "_current")

    def __init__(self) -> None:
        self._begin = 0.0
        self._current = 0.0
        self._before = 0.0

    def note(self, seconds: float, now: float) -> None:
        """Something took so long.

        @param now: monotonic time.
        """
        if now - self._begin >= WINDOW_SECONDS:
            self._next_window(now)
        if seconds > self._current:
            self._current = seconds

    def value(self, now: float) -> float:
        """The longest, in seconds; 0 if there was none."""
        if now - self._begin >= WINDOW_SECONDS:
            self._next_window(now)
        return max(self._current, self._before)

    def _next_window(self, now: float) -> None:
        is_next = now - self._begin < 2 * WINDOW_SECONDS
        self._before = self._current if is_next else 0.0
        self._current = 0.0
        self._begin = now


@final
class Latencies:
    """How long the answers with one code to requests with one code took.

    @ivar count: how many.
    @ivar total_ms: the sum, in milliseconds.
    @ivar buckets: how many lie at or below each of L{LATENCY_BOUNDS_MS} and above the
        bound before it, and at last those above all.
    """

    __slots__ = ("buckets", "count", "total_ms")

    def __init__(self) -> None:
        self.count = 0
        self.total_ms = 0.0
        self.buckets = [0] * (len(LATENCY_BOUNDS_MS) + 1)

    def add(self, elapsed_ms: float, count: int = 1) -> None:
        """Count C{count} answers that took C{elapsed_ms} each."""
        self.count += count
        self.total_ms += elapsed_ms * count
        self.buckets[bisect_left(LATENCY_BOUNDS_MS, elapsed_ms)] += count


@final
class Counts:
    """Counters of one port, or of one client.

    @ivar accepted: connections made, ever.
    @ivar broken: connections closed because the peer broke the protocol.
    @ivar idle: connections closed because nothing moved on them for too long.
    @ivar stalled: connections closed because buffers took all memory they may, and
        theirs did not move.
    @ivar pauses: how often a connection had to wait because of that memory.
    @ivar refused: connections that could not be accepted (no more descriptors).
    @ivar lost: connections that the peer closed or the network broke.
    @ivar frames_in: whole frames received.
    @ivar frames_out: frames sent, be it that they still wait for the kernel.
    @ivar bytes_in: bytes received.
    @ivar bytes_out: bytes given to the kernel or the transport.
    @ivar stray: responses to no request that waits; dropped.
    @ivar failed: requests whose responder failed in a way it does not know.
    @ivar overloaded: requests answered SYSTEM_BUSY because too many were under way on
        their connection, or because unread answers took too much memory.
    @ivar overdue: requests answered SYSTEM_BUSY because they waited too long to be
        begun; those that want no answer were dropped.
    @ivar congestions: how often a connection was not read because its peer did not.
    """

    __slots__ = (
        "accepted",
        "broken",
        "bytes_in",
        "bytes_out",
        "congestions",
        "failed",
        "frames_in",
        "frames_out",
        "idle",
        "lost",
        "overdue",
        "overloaded",
        "pauses",
        "refused",
        "stalled",
        "stray",
    )

    def __init__(self) -> None:
        self.accepted = 0
        self.broken = 0
        self.idle = 0
        self.stalled = 0
        self.pauses = 0
        self.refused = 0
        self.lost = 0
        self.frames_in = 0
        self.frames_out = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.stray = 0
        self.failed = 0
        self.overloaded = 0
        self.overdue = 0
        self.congestions = 0
