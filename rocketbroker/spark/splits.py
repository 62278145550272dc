# -*- test-case-name: tests.spark.test_source -*-
"""Splits: the ranges that a task reads, in a batch as in a stream."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, final

from pyspark.sql.datasource import InputPartition

from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Range, Split

logger = logging.getLogger("rocketbroker.spark")


@final
class SplitPartition(InputPartition):
    """What one task reads.

    @ivar value: its split.
    """

    def __init__(self, split: Split) -> None:
        super().__init__(split)


def read_split(
    options: ReadOptions, names: tuple[str, ...], split: Split | None
) -> Iterator[Any]:
    """The messages of a split as Arrow record batches.

    @param names: the columns, in order.
    @param split: None for nothing: Spark makes a partition without a value where
        there are none.
    """
    from rocketbroker.arrow.columns import chosen, columns_of
    from rocketbroker.arrow.record_batches import read_ranges
    from rocketbroker.sources.open_source import shared_origin

    if split is None:
        return
    columns = chosen(names, columns_of(options))
    origin = shared_origin(options)
    yield from read_ranges(origin, options, columns, split.ranges, log_lost)


def log_lost(options: ReadOptions, lost: list[Range]) -> None:
    """Log what is gone, with C{failOnDataLoss=record}."""
    if options.record_data_loss:
        for gone in lost:
            logger.warning("the messages %s are gone", gone)
