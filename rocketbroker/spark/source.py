# -*- test-case-name: tests.spark.test_source -*-
"""The data source C{rocketmq} of Spark.

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
from typing import TYPE_CHECKING, Any, final

from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.columns import check_columns, columns_of, ddl
from rocketbroker.spark.options import ReadOptions, parse_options
from rocketbroker.spark.ranges import Split, splits

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


@final
class SplitPartition(InputPartition):
    """What one task reads.

    @ivar value: its split.
    """

    def __init__(self, split: Split) -> None:
        super().__init__(split)


class RocketMQDataSource(DataSource):
    """What C{format("rocketmq")} is."""

    @classmethod
    def name(cls) -> str:
        """See C{DataSource.name}."""
        return "rocketmq"

    def schema(self) -> str:
        """See C{DataSource.schema}."""
        return ddl(columns_of(parse_options(self.options).columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """See C{DataSource.reader}; the schema is perhaps the user's own."""
        options = parse_options(self.options)
        wanted = [(field.name, field.dataType.simpleString()) for field in schema]
        check_columns(wanted, columns_of(options.columns))
        return RocketMQReader(options, tuple(name for name, _ in wanted))

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        """See C{DataSource.writer}."""
        raise ConfigurationError("writing to RocketMQ is not supported yet")


class RocketMQReader(DataSourceReader):
    """A batch read.

    @ivar options: what it was told.
    @ivar columns: the columns to give, in order.
    """

    def __init__(self, options: ReadOptions, columns: tuple[str, ...]) -> None:
        self.options = options
        self.columns = columns

    def partitions(self) -> list[InputPartition]:
        """See C{DataSourceReader.partitions}: the ends are fixed here."""
        from rocketbroker.spark.open_origins import open_origin
        from rocketbroker.spark.planning import resolve

        origin = open_origin(self.options)
        try:
            ranges = resolve(origin, self.options, int(time.time() * 1000))
        finally:
            origin.close()
        least = self.options.least_partitions or os.cpu_count() or 1
        found = splits(ranges, least, self.options.max_records)
        return [SplitPartition(split) for split in found]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """See C{DataSourceReader.read}: yields Arrow record batches."""
        from rocketbroker.spark.decoding import Decoder
        from rocketbroker.spark.open_origins import shared_origin
        from rocketbroker.spark.reading import RangeReader

        # Spark makes a partition without a value where there are none.
        split: Split | None = partition.value
        if split is None:
            return
        origin = shared_origin(self.options)
        for wanted in split.ranges:
            decoder = Decoder(
                self.columns, wanted.queue.broker, self.options.decompress
            )
            for layout in RangeReader(origin, wanted, self.options).layouts():
                yield from decoder.batches(layout)
