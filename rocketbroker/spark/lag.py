# -*- test-case-name: tests.spark.test_lag -*-
"""The lag of a stream: for Prometheus, and for listeners of Spark.

Lag is what a queue has beyond the offset up to which the stream has read: in messages,
and in seconds since the first of them was stored. Option C{metricsPort} lets the
process that plans micro-batches answer Prometheus; there, seconds go on counting while
a micro-batch runs, so that one that hangs can be seen. From PySpark 4.2 on the lag that
is left after a micro-batch stands in the progress that Spark gives its listeners:
L{LagListener} takes it from there.
"""

from __future__ import annotations

import errno
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, final

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from pyspark.sql.streaming.listener import StreamingQueryListener

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.ranges import Queue
from rocketbroker.spark.offsets import leaves, tree

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

LABELS: Final = ("topic", "broker", "queue")

#: A query that is started again may find its port still taken by the process before,
#: which is about to end: so many seconds it tries.
PORT_SECONDS: Final = 5.0


class QueueLag(NamedTuple):
    """How far a stream is behind in a queue.

    @ivar messages: how many it has not read.
    @ivar seconds: since the first of them was stored; 0 if there is none.
    """

    queue: Queue
    messages: int
    seconds: float


class QueuePosition(NamedTuple):
    """A position in a queue.

    @ivar since_ms: when the message there was stored; None if it is not known.
    """

    position: int
    since_ms: int | None


@final
class Lags:
    """Keeps how far behind a stream is.

    @ivar asked: how many requests for ends brokers have got.
    @ivar losses: how many messages were gone before they were read, by queue.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        """
        @param now_ms: the time, ms since 1970.
        """
        self._now_ms = now_ms
        self._ends: dict[Queue, int] = {}
        self._read: dict[Queue, QueuePosition] = {}
        self._planned: dict[Queue, QueuePosition] = {}
        self.asked = 0
        self.losses: dict[Queue, int] = {}

    def at(self, queue: Queue, position: int, since_ms: int | None) -> None:
        """The stream will have read up to a position.

        @param since_ms: when the message there was stored; None if there is none yet.
        """
        self._planned[queue] = QueuePosition(position, since_ms)

    def lost(self, queue: Queue, number: int) -> None:
        """So many messages were gone before they were read."""
        self.losses[queue] = self.losses.get(queue, 0) + number

    def known(
        self,
        positions: Mapping[Queue, int],
        bounds: Mapping[Queue, tuple[int, int]],
        asked: int,
    ) -> None:
        """The stream has read up to these positions.

        @param bounds: the queues now.
        @param asked: see L{asked}.
        """
        self.asked = asked
        read: dict[Queue, QueuePosition] = {}
        for queue, (first, end) in bounds.items():
            position = positions.get(queue, first)
            place = self._read.get(queue)
            if place is None or place.position != position:
                place = self._planned.get(queue, QueuePosition(position, None))
            if place.position != position:
                place = QueuePosition(position, None)
            if place.since_ms is None and position < end:
                # It came while nothing waited, so a moment ago.
                place = QueuePosition(position, self._now_ms())
            read[queue] = place
        self._read = read
        self._ends = {queue: end for queue, (_, end) in bounds.items()}

    def read(self) -> list[QueueLag]:
        """Behind what has been read."""
        return self._behind(self._read)

    def planned(self) -> list[QueueLag]:
        """Behind what will have been read by the micro-batch that begins now."""
        places = dict(self._read)
        for queue, place in self._planned.items():
            if queue in places and places[queue].position < place.position:
                places[queue] = place
        return self._behind(places)

    def to_json(self) -> dict[str, Any]:
        """The same for Spark: messages and ms by topic, broker name and queue."""
        return tree(
            {
                lag.queue: {"messages": lag.messages, "ms": int(lag.seconds * 1000)}
                for lag in self.planned()
            }
        )

    def _behind(self, places: Mapping[Queue, QueuePosition]) -> list[QueueLag]:
        now = self._now_ms()
        found = []
        for queue, end in sorted(self._ends.items()):
            position, since = places[queue]
            messages = max(0, end - position)
            seconds = max(0, now - (since or now)) / 1000 if messages else 0.0
            found.append(QueueLag(queue, messages, seconds))
        return found


@final
class LagCollector:
    """Gives Prometheus the lag of a stream."""

    def __init__(self, lags: Lags) -> None:
        self._lags = lags

    def collect(self) -> Iterator[Metric]:
        """See C{prometheus_client.registry.Collector.collect}."""
        lags = self._lags.read()
        messages = GaugeMetricFamily(
            "rocketbroker_stream_lag_messages",
            "messages of a queue that the stream has not read",
            labels=LABELS,
        )
        seconds = GaugeMetricFamily(
            "rocketbroker_stream_lag_seconds",
            "seconds since the first of them was stored",
            labels=LABELS,
        )
        for lag in lags:
            messages.add_metric([*map(str, lag.queue)], lag.messages)
            seconds.add_metric([*map(str, lag.queue)], lag.seconds)
        lost = CounterMetricFamily(
            "rocketbroker_stream_lost_messages_total",
            "messages that were gone before the stream read them",
            labels=LABELS,
        )
        for queue, number in sorted(self._lags.losses.items()):
            lost.add_metric([*map(str, queue)], number)
        asked = CounterMetricFamily(
            "rocketbroker_stream_end_requests_total",
            "requests to brokers for the ends of queues",
            value=self._lags.asked,
        )
        yield from (messages, seconds, lost, asked)


def serve_lag(
    lags: Lags, port: int, sleep: Callable[[float], None] = time.sleep
) -> Callable[[], None]:
    """Answer Prometheus at a port of 127.0.0.1.

    @return: ends it.
    @raise ConfigurationError: the port cannot be had.
    """
    registry = CollectorRegistry()
    registry.register(LagCollector(lags))
    tries = int(PORT_SECONDS / 0.25)
    for left in reversed(range(tries)):
        try:
            server, thread = start_http_server(port, "127.0.0.1", registry)
        except OSError as error:
            if left and error.errno == errno.EADDRINUSE:
                sleep(0.25)
                continue
            raise ConfigurationError(
                f"metricsPort={port} cannot be used: {error.strerror}"
            ) from None
        break

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop


def lags_of(sources: Iterable[Any]) -> list[QueueLag]:
    """The lag that is left after a micro-batch.

    @param sources: C{StreamingQueryProgress.sources}; from PySpark 4.2 on.
    """
    found = []
    for source in sources:
        try:
            tree = json.loads(source.latestOffset or "null")["lag"]
            pairs = [*leaves(tree)]
            for queue, lag in pairs:
                found.append(QueueLag(queue, lag["messages"], lag["ms"] / 1000))
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # another kind of source
    return found


class LagListener(StreamingQueryListener):
    """Tells of a stream's lag after each micro-batch.

    spark.streams.addListener(LagListener(lambda name, lags: print(name, lags)))
    """

    def __init__(self, tell: Callable[[str, list[QueueLag]], None]) -> None:
        """
        @param tell: gets the name of the query, or its id, and the lag of each queue.
        """
        self._tell = tell

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """See C{StreamingQueryListener}."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """See C{StreamingQueryListener}."""
        progress = event.progress
        lags = lags_of(progress.sources)
        if lags:
            self._tell(progress.name or str(progress.id), lags)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """See C{StreamingQueryListener}."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """See C{StreamingQueryListener}."""
