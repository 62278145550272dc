"""Filters of queries."""

from __future__ import annotations

import datetime
from typing import Any

import attrs

try:
    from pyspark.sql.datasource import (
        EqualNullSafe,
        EqualTo,
        Filter,
        GreaterThan,
        GreaterThanOrEqual,
        In,
        IsNotNull,
        LessThan,
        LessThanOrEqual,
        Not,
    )
except ImportError:
    skip = "PySpark 4.0 pushes no filters down"
from pyspark.sql.types import BinaryType, StructType
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.sources.narrowing import Narrowing
from rocketbroker.spark.pushdown import SETTING, PushedFilters, configure
from rocketbroker.spark.source import PushingReader, RocketMQDataSource

#: 1,700,000,000,000 ms.
MOMENT = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC)
MS = 1_700_000_000_000
MICROSECOND = datetime.timedelta(microseconds=1)


class PushdownTests(SynchronousTestCase):
    """L{PushedFilters}."""

    def check(
        self, *filters: Filter, left: bool, tags: str = "*", **wanted: Any
    ) -> None:
        """See what filters come to, and whether all or none are left."""
        pushed = PushedFilters(filters)
        nothing = Narrowing()
        self.assertEqual(pushed.narrowing, attrs.evolve(nothing, **wanted))
        self.assertEqual(pushed.tags, tags)
        self.assertEqual(pushed.left, [*filters] if left else [])

    def test_names(self) -> None:
        """Topics, brokers and queues, in Kafka's terms, too."""
        self.check(EqualTo(("topic",), "T"), left=False, topics=frozenset({"T"}))
        self.check(
            EqualNullSafe(("brokerName",), "b"), left=False, brokers=frozenset({"b"})
        )
        self.check(
            In(("queueId",), (1, 2, 3)),
            In(("partition",), (2, 3, 4)),
            left=False,
            queue_ids=frozenset({2, 3}),
        )

    def test_offsets(self) -> None:
        """Each comparison of offsets; of several, what all allow."""
        at = ("queueOffset",)
        self.check(EqualTo(at, 5), left=False, start=5, until=6)
        self.check(GreaterThan(at, 5), left=False, start=6)
        self.check(GreaterThanOrEqual(("offset",), 5), left=False, start=5)
        self.check(LessThan(at, 5), left=False, until=5)
        self.check(LessThanOrEqual(at, 5), left=False, until=6)
        self.check(
            GreaterThan(at, 5),
            GreaterThan(at, 3),
            LessThan(at, 9),
            left=False,
            start=6,
            until=9,
        )
        self.check(In(at, (5, 2, 9)), left=True, start=2, until=10)

    def test_times(self) -> None:
        """Times are in microseconds, those of messages in milliseconds."""
        at = ("storeTimestamp",)
        self.check(GreaterThanOrEqual(at, MOMENT), left=True, from_ms=MS)
        self.check(GreaterThan(at, MOMENT), left=True, from_ms=MS + 1)
        self.check(GreaterThan(at, MOMENT - MICROSECOND), left=True, from_ms=MS)
        self.check(
            GreaterThanOrEqual(at, MOMENT + MICROSECOND), left=True, from_ms=MS + 1
        )
        self.check(LessThan(("timestamp",), MOMENT), left=True, until_ms=MS)
        self.check(LessThan(at, MOMENT + MICROSECOND), left=True, until_ms=MS + 1)
        self.check(LessThanOrEqual(at, MOMENT), left=True, until_ms=MS + 1)
        self.check(LessThanOrEqual(at, MOMENT - MICROSECOND), left=True, until_ms=MS)
        self.check(EqualTo(at, MOMENT), left=True, from_ms=MS, until_ms=MS + 1)

    def test_tags(self) -> None:
        """Brokers see to tags roughly, where an expression can say them."""
        self.check(EqualTo(("tags",), "a"), left=True, tags="a")
        self.check(In(("tags",), ("b", "a")), left=True, tags="a||b")
        for tag in ("", "*", " a", "a||b"):
            self.check(EqualTo(("tags",), tag), left=True)

    def test_others(self) -> None:
        """All others are Spark's."""
        for asked in (
            IsNotNull(("topic",)),
            Not(EqualTo(("topic",), "T")),
            EqualTo(("msgId",), "x"),
            EqualTo(("properties", "topic"), "x"),
            EqualNullSafe(("topic",), None),
            In(("queueId",), (1, None)),
            GreaterThan(("queueId",), 1),
        ):
            self.check(asked, left=True)

    def test_reader(self) -> None:
        """Only with pushDown there is a reader that takes filters."""
        given = {"nameServer": "127.0.0.1:1", "subscribe": "T"}
        schema = StructType().add("body", BinaryType())
        plain = RocketMQDataSource(given).reader(schema)
        self.assertNotIsInstance(plain, PushingReader)
        reader = RocketMQDataSource({**given, "pushdown": "true"}).reader(schema)
        assert isinstance(reader, PushingReader)
        filters = [EqualTo(("tags",), "a"), EqualTo(("queueId",), 3)]
        self.assertEqual(reader.pushFilters([*filters]), filters[:1])
        self.assertEqual(reader.options.tags, "a")
        self.assertEqual(reader.narrowing, Narrowing(queue_ids=frozenset({3})))

    def test_ownTags(self) -> None:
        """Tags that the user gave are not widened."""
        given = {"nameServer": "a:1", "subscribe": "T", "pushDown": "true", "tags": "x"}
        reader = RocketMQDataSource(given).reader(
            StructType().add("body", BinaryType())
        )
        assert isinstance(reader, PushingReader)
        reader.pushFilters([EqualTo(("tags",), "a")])
        self.assertEqual(reader.options.tags, "x")

    def test_configure(self) -> None:
        """A session's builder is told to let Spark push."""

        class Builder:
            def config(self, name: str, value: str) -> tuple[str, str]:
                return name, value

        builder: Any = Builder()
        self.assertEqual(configure(builder), (SETTING, "true"))
