"""The data source as Spark's processes call it, without Spark."""

from __future__ import annotations

import pickle

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, LongType, StructType
from twisted.trial.unittest import SynchronousTestCase

import pyspark_rocketmq
from rocketbroker.arrow.columns import KAFKA, NATIVE, ddl
from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.spark.source import RocketMQDataSource, RocketMQReader
from rocketbroker.spark.splits import log_lost

LEAST = {"nameServer": "127.0.0.1:1", "subscribe": "T"}


class SourceTests(SynchronousTestCase):
    """L{RocketMQDataSource}."""

    def test_found(self) -> None:
        """Spark finds it by the name of a package and of a class in it."""
        self.assertIs(pyspark_rocketmq.DefaultSource, RocketMQDataSource)
        self.assertEqual(RocketMQDataSource.name(), "rocketmq")

    def test_schema(self) -> None:
        """The schema is that of the set of columns."""
        self.assertEqual(RocketMQDataSource(LEAST).schema(), ddl(NATIVE))
        kafka = RocketMQDataSource({**LEAST, "columns": "kafka"})
        self.assertEqual(kafka.schema(), ddl(KAFKA))

    def test_reader(self) -> None:
        """A reader gives the columns of the schema asked for, and can be pickled."""
        schema = StructType().add("queueOffset", LongType()).add("body", BinaryType())
        reader = RocketMQDataSource(LEAST).reader(schema)
        assert isinstance(reader, RocketMQReader)
        self.assertEqual(reader.columns, ("queueOffset", "body"))
        again = pickle.loads(pickle.dumps(reader))
        self.assertEqual(again.options, reader.options)

    def test_unknownColumn(self) -> None:
        """A column that does not exist is refused in one sentence."""
        schema = StructType().add("bdy", BinaryType())
        error = self.assertRaises(
            ConfigurationError, RocketMQDataSource(LEAST).reader, schema
        )
        self.assertIn("there is no column 'bdy'", str(error))

    def test_noPartition(self) -> None:
        """Spark reads one partition without a value where there are none."""
        reader = RocketMQDataSource(LEAST).reader(
            StructType().add("body", BinaryType())
        )
        self.assertEqual(list(reader.read(InputPartition(None))), [])
        assert isinstance(reader, RocketMQReader)
        # PySpark 4.0.
        self.assertEqual(list(reader.read(None)), [])

    def test_lost(self) -> None:
        """With failOnDataLoss=record, what is gone is logged."""
        gone = Range(Queue("T", "b", 0), 3, 5)
        with self.assertLogs("rocketbroker.spark") as found:
            log_lost(ReadOptions(record_data_loss=True), [gone])
        self.assertEqual(
            found.records[0].getMessage(),
            "the messages [3, 5) of queue 0 of T on b are gone",
        )
        with self.assertNoLogs("rocketbroker.spark"):
            log_lost(ReadOptions(), [gone])
