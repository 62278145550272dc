# -*- test-case-name: tests.spark.test_stream -*-
"""The streaming source as Spark calls it.

How it is called::

    spark.readStream.format("rocketmq").option("nameServer", "127.0.0.1:9876") \\
        .option("subscribe", "orders").load()

One Python process beside Spark's driver owns a reader for as long as its query runs,
and plans its micro-batches; a copy that never plans is pickled for the tasks. So what
is open is made at the first question, and does not travel. PySpark 4.0 and 4.1 call
C{latestOffset()} without arguments, before C{initialOffset()}; at a restart they first
ask for the partitions between the last offset and itself, and never tell what the
trigger is. From 4.2 on it gets the start and a limit, and C{availableNow} ends where
C{prepareForTriggerAvailableNow()} says. C{docs/facts/spark.md 3}.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from rocketbroker.sources.network import NetworkOrigin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import splits
from rocketbroker.sources.source import StreamOrigin
from rocketbroker.spark.lag import serve_lag
from rocketbroker.spark.limits import BatchLimits
from rocketbroker.spark.microbatches import MicroBatches, least_partitions
from rocketbroker.spark.splits import SplitPartition, read_split
from rocketbroker.spark.watching import Watch

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
else:
    try:
        from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
    except ImportError:  # PySpark 4.0 and 4.1

        class SupportsTriggerAvailableNow:
            """Nothing that Spark looks for."""


class Open(NamedTuple):
    """What a reader that plans has open.

    @ivar origin: where messages are.
    @ivar batches: plans over it.
    @ivar stop_serving: ends what answers Prometheus.
    """

    origin: StreamOrigin
    batches: MicroBatches
    stop_serving: Callable[[], None]


def open_network(options: ReadOptions) -> Open:
    """Plan over brokers."""
    origin = NetworkOrigin(options)
    watch = Watch(time.monotonic, time.sleep, origin, options)
    batches = MicroBatches(lambda: int(time.time() * 1000), watch, origin, options)
    stop_serving: Callable[[], None] = lambda: None  # noqa: E731
    if options.metrics_port:
        stop_serving = serve_lag(batches.lags, options.metrics_port)
    return Open(origin, batches, stop_serving)


class RocketMQStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A stream.

    @ivar options: what it was told.
    @ivar columns: the columns to give, in order.
    """

    def __init__(
        self,
        options: ReadOptions,
        columns: tuple[str, ...],
        make: Callable[[ReadOptions], Open] = open_network,
    ) -> None:
        """
        @param make: opens what planning needs.
        """
        self.options = options
        self.columns = columns
        self._make = make
        self._open: Open | None = None
        self._last: dict[str, Any] | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.options, self.columns, self._make)

    def _batches(self) -> MicroBatches:
        if self._open is None:
            self._open = self._make(self.options)
        return self._open.batches

    def initialOffset(self) -> dict[str, Any]:
        """See C{DataSourceStreamReader.initialOffset}."""
        if self._last is None:
            self._last = self._batches().initial()
        return self._last

    def getDefaultReadLimit(self) -> ReadLimit:
        """See C{DataSourceStreamReader.getDefaultReadLimit}.

        Only one limit can be given to Spark; L{latestOffset} looks at the options
        unless Spark says that no limit holds.
        """
        from pyspark.sql.streaming import datasource

        options = self.options
        if options.max_offsets:
            return datasource.ReadMaxRows(options.max_offsets)
        if options.max_bytes:
            return datasource.ReadMaxBytes(options.max_bytes)
        if options.min_offsets:
            return datasource.ReadMinRows(options.min_offsets)
        return datasource.ReadAllAvailable()

    def latestOffset(
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """See C{DataSourceStreamReader.latestOffset}."""
        if start is None:
            limited = self.options.limits_on_old_spark
            start = self.initialOffset() if self._last is None else self._last
        else:
            limited = type(limit).__name__ != "ReadAllAvailable"
        limits = limits_of(self.options) if limited else BatchLimits()
        return self._batches().following(start, limits)

    def reportLatestOffset(self) -> dict[str, Any]:
        """See C{DataSourceStreamReader.reportLatestOffset}; with the lag."""
        return self._batches().latest()

    def prepareForTriggerAvailableNow(self) -> None:
        """See C{SupportsTriggerAvailableNow.prepareForTriggerAvailableNow}."""
        self._batches().stop_at_present_ends()

    def partitions(
        self, start: dict[str, Any], end: dict[str, Any]
    ) -> list[InputPartition]:
        """See C{DataSourceStreamReader.partitions}."""
        self._last = end
        ranges = self._batches().ranges(start, end)
        least = least_partitions(ranges, self.options, os.cpu_count() or 1)
        found = splits(ranges, least, self.options.max_records)
        return [SplitPartition(split) for split in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """See C{DataSourceStreamReader.read}: yields Arrow record batches."""
        return read_split(self.options, self.columns, partition.value)

    def commit(self, end: dict[str, Any]) -> None:
        """See C{DataSourceStreamReader.commit}."""
        self._batches().commit(end)

    def stop(self) -> None:
        """See C{DataSourceStreamReader.stop}."""
        if self._open is not None:
            self._open.stop_serving()
            self._open.origin.close()
            self._open = None


def limits_of(options: ReadOptions) -> BatchLimits:
    """The limits that these options set."""
    return BatchLimits(
        options.max_offsets,
        options.max_bytes,
        options.min_offsets,
        options.max_delay_ms,
    )
