# -*- test-case-name: tests.spark.test_source -*-
"""The data source C{rocketmq} of Spark.

How it is called::

    spark.read.format("rocketmq").option("nameServer", "127.0.0.1:9876") \\
        .option("subscribe", "orders").load()

Spark makes the source and asks for its schema in one process, makes the reader and asks
it for partitions in another, and reads in pooled workers: the reader is pickled, so it
holds options and columns, nothing that is open. This module is imported by a scan that
guards nothing, so it imports neither numpy nor pyarrow, which only workers need.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.narrowing import Narrowing, narrow
from rocketbroker.sources.option_table import BATCH, STREAM
from rocketbroker.sources.options import ReadOptions, parse_options
from rocketbroker.sources.ranges import Range, splits
from rocketbroker.spark.splits import SplitPartition, log_lost, read_split

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter
    from pyspark.sql.types import StructType


class RocketMQDataSource(DataSource):
    """What C{format("rocketmq")} is."""

    @classmethod
    def name(cls) -> str:
        """See C{DataSource.name}."""
        return "rocketmq"

    def schema(self) -> str:
        """See C{DataSource.schema}."""
        from rocketbroker.arrow.columns import columns_of, ddl

        return ddl(columns_of(parse_options(self.options, None)))

    def reader(self, schema: StructType) -> DataSourceReader:
        """See C{DataSource.reader}; the schema is perhaps the user's own."""
        options = parse_options(self.options, BATCH)
        names = column_names(options, schema)
        if not options.push_down:
            return RocketMQReader(options, names)
        if not hasattr(DataSourceReader, "pushFilters"):
            raise ConfigurationError("pushDown=true needs PySpark 4.1 or newer")
        return PushingReader(options, names)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """See C{DataSource.streamReader}; the schema is perhaps the user's own."""
        from rocketbroker.spark.stream import RocketMQStreamReader

        options = parse_options(self.options, STREAM)
        return RocketMQStreamReader(options, column_names(options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """See C{DataSource.writer}."""
        from rocketbroker.spark.sink import make_sink

        return make_sink(self.options, schema, overwrite, stream=False)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:
        """See C{DataSource.streamWriter}."""
        from rocketbroker.spark.sink import make_sink

        return make_sink(self.options, schema, overwrite, stream=True)


class RocketMQReader(DataSourceReader):
    """A batch read.

    @ivar options: what it was told.
    @ivar columns: the columns to give, in order.
    @ivar narrowing: what the query says of the messages it wants.
    """

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self.options = options
        self.columns = columns
        self.narrowing = Narrowing()

    def partitions(self) -> list[InputPartition]:
        """See C{DataSourceReader.partitions}: the ends are fixed here."""
        from rocketbroker.sources.open_source import open_origin
        from rocketbroker.sources.resolving import resolve

        lost: list[Range] = []
        origin = open_origin(self.options)
        try:
            ranges = resolve(origin, self.options, int(time.time() * 1000), lost)
            ranges = narrow(origin, ranges, self.narrowing)
        finally:
            origin.close()
        log_lost(self.options, lost)
        least = self.options.least_partitions or os.cpu_count() or 1
        found = splits(ranges, least, self.options.max_records)
        return [SplitPartition(split) for split in found]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        """See C{DataSourceReader.read}: yields Arrow record batches.

        @param partition: None, or one without a value, where there are none: PySpark
            4.0 makes the former, later ones the latter.
        """
        split = None if partition is None else partition.value
        return read_split(self.options, self.columns, split)


class PushingReader(RocketMQReader):
    """A batch read that takes filters of the query; with C{pushDown=true}."""

    def pushFilters(self, filters: list[Filter]) -> list[Filter]:
        """See C{DataSourceReader.pushFilters}; those left to Spark."""
        from rocketbroker.spark.pushdown import PushedFilters

        pushed = PushedFilters(filters)
        self.narrowing = pushed.narrowing
        if not self.options.filtered:
            self.options = attrs.evolve(self.options, tags=pushed.tags)
        return pushed.left


def column_names(options: ReadOptions, schema: StructType) -> tuple[str, ...]:
    """The names of the columns of a schema.

    @raise ConfigurationError: there is no such column, or it is of another type.
    """
    from rocketbroker.arrow.columns import check_types, chosen, columns_of

    wanted = [(field.name, field.dataType.simpleString()) for field in schema]
    names = tuple(name for name, _ in wanted)
    check_types(wanted, chosen(names, columns_of(options)))
    return names
