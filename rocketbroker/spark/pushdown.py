# -*- test-case-name: tests.spark.test_pushdown -*-
"""Conditions of a query that the source sees to before it reads.

Spark offers them to a reader with C{pushFilters}, from PySpark 4.1 on, if
C{spark.sql.python.filterPushdown.enabled} is set; if it is not, such a reader makes
every query fail. So it is used with option C{pushDown=true} only.

What is given back, Spark evaluates again. Offsets, queues, brokers and topics are
exact. Times are not where a broker's clock went back, nor are tags, which brokers
compare by hash: they make less to be read, and are given back.
C{docs/facts/spark.md 3}.
"""

from __future__ import annotations

import datetime
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, final

import attrs

from rocketbroker.filtering.tags import ALL, SEPARATOR
from rocketbroker.sources.narrowing import Narrowing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.datasource import Filter

#: What lets Spark push filters down.
SETTING: Final = "spark.sql.python.filterPushdown.enabled"

#: Columns in Kafka's terms.
KAFKA: Final = {
    "partition": "queueId",
    "offset": "queueOffset",
    "timestamp": "storeTimestamp",
}

#: The columns that say where a message stands.
NAMES: Final = {"topic": "topics", "brokerName": "brokers", "queueId": "queue_ids"}

#: The filters that compare with one value, and how.
COMPARISONS: Final = {
    "EqualTo": "=",
    "EqualNullSafe": "=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
MICROSECOND: Final = datetime.timedelta(microseconds=1)


def configure(builder: SparkSession.Builder) -> SparkSession.Builder:
    """Let a session push filters down; reads need option C{pushDown=true}, too."""
    return builder.config(SETTING, "true")


@final
class PushedFilters:
    """What a query's filters ask for.

    @ivar narrowing: of where messages stand.
    @ivar tags: a tag expression; C{*} for all.
    @ivar left: the filters that Spark has to evaluate.
    """

    def __init__(self, filters: Iterable[Filter]) -> None:
        self.narrowing = Narrowing()
        self.tags = ALL
        self.left = [each for each in filters if not self._take(each)]

    def _take(self, asked: Any) -> bool:
        """Make use of a filter; whether nothing is left of it."""
        path: tuple[str, ...] = getattr(asked, "attribute", ())
        value = getattr(asked, "value", None)
        if len(path) != 1 or value is None:
            return False
        (name,) = path
        column = KAFKA.get(name, name)
        kind = type(asked).__name__
        if kind == "In":
            return not any(each is None for each in value) and self._take_any(
                column, tuple(value)
            )
        comparison = COMPARISONS.get(kind)
        if comparison == "=" and column in (*NAMES, "tags"):
            return self._take_any(column, (value,))
        if comparison is not None and column == "queueOffset":
            self._limit("start", "until", comparison, value, value + 1)
            return True
        if comparison is not None and column == "storeTimestamp":
            us = (value - EPOCH) // MICROSECOND
            self._limit(
                "from_ms", "until_ms", comparison, -(-us // 1000), us // 1000 + 1
            )
        return False

    def _take_any(self, column: str, values: tuple[Any, ...]) -> bool:
        """A column has one of these values."""
        if column in NAMES:
            self._narrow(NAMES[column], frozenset(values), operator.and_)
            return True
        if column == "tags" and self.tags == ALL and all(map(is_tag, values)):
            self.tags = SEPARATOR.join(sorted(values)) or ALL
        if column == "queueOffset" and values:
            self._narrow("start", min(values), max)
            self._narrow("until", max(values) + 1, min)
        return False

    def _limit(self, low: str, high: str, comparison: str, at: int, after: int) -> None:
        """A number compares like this.

        @param at: the first whole number not below the value.
        @param after: the first one above it.
        """
        if comparison in ("=", ">="):
            self._narrow(low, at, max)
        if comparison == ">":
            self._narrow(low, after, max)
        if comparison in ("=", "<="):
            self._narrow(high, after, min)
        if comparison == "<":
            self._narrow(high, at, min)

    def _narrow(self, name: str, value: Any, both: Any) -> None:
        known = getattr(self.narrowing, name)
        value = value if known is None else both(known, value)
        self.narrowing = attrs.evolve(self.narrowing, **{name: value})


def is_tag(value: str) -> bool:
    """Whether a tag can stand in an expression."""
    return bool(value) and value == value.strip() and value != ALL and "|" not in value
