"""The streaming source as Spark's processes call it, without Spark."""

from __future__ import annotations

import pickle
from typing import Any

from pyspark.sql.datasource import InputPartition

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
    )
except ImportError:
    skip = "PySpark 4.0 and 4.1 give a stream no limits"
from pyspark.sql.types import BinaryType, StructType
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue
from rocketbroker.spark.microbatches import MicroBatches
from rocketbroker.spark.source import RocketMQDataSource
from rocketbroker.spark.stream import Open, RocketMQStreamReader
from rocketbroker.spark.watching import Watch
from tests.sources.messages import START_MS
from tests.sources.origins import MemoryOrigin

QUEUE = Queue("T", "b", 0)

LEAST = {"nameServer": "127.0.0.1:1", "subscribe": "T"}


def total(partitions: list[InputPartition]) -> int:
    """How many messages partitions have."""
    return sum(partition.value.size for partition in partitions)


class StreamTests(SynchronousTestCase):
    """L{RocketMQStreamReader}."""

    def setUp(self) -> None:
        """A queue of 10 messages."""
        self.clock = Clock()
        self.origin = MemoryOrigin({QUEUE: 10})
        self.served = True

    def make(self, options: ReadOptions) -> Open:
        """Plan over memory."""

        def stop() -> None:
            self.served = False

        clock = self.clock
        watch = Watch(clock.seconds, clock.advance, self.origin, options)
        batches = MicroBatches(lambda: START_MS + 1000, watch, self.origin, options)
        return Open(self.origin, batches, stop)

    def reader(self, **words: Any) -> RocketMQStreamReader:
        """A reader of the queue."""
        options = ReadOptions(topics=("T",), **words)
        return RocketMQStreamReader(options, ("body",), self.make)

    def test_made(self) -> None:
        """The source makes it, with the columns asked for, and it can be pickled."""
        schema = StructType().add("body", BinaryType())
        made = RocketMQDataSource({**LEAST, "MAXOFFSETSPERTRIGGER": "7"})
        reader = made.streamReader(schema)
        again = pickle.loads(pickle.dumps(reader))
        self.assertEqual((again.columns, again.options.max_offsets), (("body",), 7))
        self.assertEqual(again.options.starting, "latest")

    def test_refusals(self) -> None:
        """What makes no sense in a stream is refused in one sentence."""
        schema = StructType().add("body", BinaryType())
        for words, sentence in (
            ({"endingOffsets": "latest"}, "an option of a batch, not of a stream"),
            ({"maxOffsetsPerTriger": "5"}, "unknown option 'maxoffsetspertriger'"),
        ):
            source = RocketMQDataSource({**LEAST, **words})
            error = self.assertRaises(ConfigurationError, source.streamReader, schema)
            self.assertIn(sentence, str(error))

    def test_new(self) -> None:
        """The calls of PySpark 4.2 and later: limits hold, then there is nothing."""
        reader = self.reader(max_offsets=7)
        limit = reader.getDefaultReadLimit()
        start = reader.initialOffset()
        sizes = []
        for _ in range(3):
            end = reader.latestOffset(start, limit)
            self.assertEqual(reader.reportLatestOffset()["t"], {"T": {"b": {"0": 10}}})
            sizes.append(total(reader.partitions(start, end)))
            start = end
        self.assertEqual(sizes, [7, 3, 0])

    def test_once(self) -> None:
        """A trigger for which no limit holds gets all."""
        reader = self.reader(max_offsets=7)
        start = reader.initialOffset()
        end = reader.latestOffset(start, ReadAllAvailable())
        self.assertEqual(total(reader.partitions(start, end)), 10)

    def test_readLimits(self) -> None:
        """Spark is told of one limit."""
        for words, expected in (
            ({"max_offsets": 7, "max_bytes": 9}, ReadMaxRows(7)),
            ({"max_bytes": 9, "min_offsets": 5}, ReadMaxBytes(9)),
            ({"min_offsets": 5}, ReadMinRows(5)),
            ({}, ReadAllAvailable()),
        ):
            self.assertEqual(self.reader(**words).getDefaultReadLimit(), expected)

    def test_availableNow(self) -> None:
        """What comes after the preparation is left for the next query."""
        reader = self.reader(max_offsets=7)
        reader.prepareForTriggerAvailableNow()
        limit = reader.getDefaultReadLimit()
        self.origin.ends[QUEUE] = 30
        start = reader.initialOffset()
        sizes = []
        while (end := reader.latestOffset(start, limit)) != start:
            sizes.append(total(reader.partitions(start, end)))
            start = end
        self.assertEqual(sizes, [7, 3])

    def old_step(self, reader: RocketMQStreamReader, start: Any) -> tuple[Any, int]:
        """A micro-batch as PySpark 4.0 and 4.1 ask for it; its end and size."""
        end = reader.latestOffset()
        self.assertEqual(reader.latestOffset(), end)
        return end, total(reader.partitions(start, end))

    def test_old(self) -> None:
        """Calls of PySpark 4.0 and 4.1: the end first, at a restart partitions."""
        reader = self.reader(max_offsets=7)
        end = reader.latestOffset()
        start = reader.initialOffset()
        self.assertEqual(total(reader.partitions(start, end)), 10)
        again = self.reader(max_offsets=7)
        self.assertEqual(again.partitions(end, end), [])
        self.assertEqual(again.latestOffset(), end)
        self.origin.ends[QUEUE] = 19
        self.clock.advance(1)
        self.assertEqual(self.old_step(again, end)[1], 9)

    def test_oldLimits(self) -> None:
        """Limits hold there if asked for; an end is kept until it is planned."""
        reader = self.reader(max_offsets=7, limits_on_old_spark=True)
        end, size = self.old_step(reader, reader.initialOffset())
        self.assertEqual(size, 7)
        self.assertEqual(self.old_step(reader, end)[1], 3)

    def test_stop(self) -> None:
        """What is open is closed; a reader that never planned has nothing open."""
        self.reader().stop()
        self.assertFalse(self.origin.closed)
        reader = self.reader()
        reader.initialOffset()
        reader.stop()
        self.assertEqual((self.origin.closed, self.served), (True, False))

    def test_noPartition(self) -> None:
        """Nothing is read of a partition without a value."""
        self.assertEqual(list(self.reader().read(InputPartition(None))), [])
