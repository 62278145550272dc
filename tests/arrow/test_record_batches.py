"""Topics as record batches, for DuckDB and others."""

from __future__ import annotations

import datetime
from collections.abc import Generator
from pathlib import Path
from typing import Any

import duckdb
from twisted.trial.unittest import SynchronousTestCase

import rocketbroker.arrow
from rocketbroker.arrow import read
from rocketbroker.arrow.columns import NATIVE, arrow_schema
from rocketbroker.arrow.record_batches import Batches, log_lost, option_words
from rocketbroker.errors import ConfigurationError, StoreError, TopicNotExist
from rocketbroker.files.disk import Disk
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import DataLoss
from tests.sources.origins import MemoryOrigin
from tests.store.stores import START_MS, Wall, opened, put


class ReadTests(SynchronousTestCase):
    """L{read} on a store's files."""

    def setUp(self) -> None:
        """A store with 40 messages in two queues, a second apart, and one of another
        topic."""
        self.root = Path(self.mktemp()).absolute()
        wall = Wall()
        store = opened(Disk(), wall, store_path_root_dir=str(self.root))
        for number in range(40):
            wall.now_ms += 1000
            tag = "odd" if number % 2 else "even"
            put(store, store.queue("T", number % 2), b"%d" % number, tags=tag)
        put(store, store.queue("U", 0), b"other")
        store.close()

    def bodies(self, *topics: str, **options: object) -> list[bytes]:
        """The bodies that are read."""
        rows = read(*topics, store=self.root, columns=["body"], **options)
        return sorted(row["body"] for row in rows.read_all().to_pylist())

    def test_all(self) -> None:
        """All columns of all messages, of one topic or several."""
        reader = read("T", store=self.root)
        self.assertEqual(reader.schema, arrow_schema(NATIVE))
        table = reader.read_all()
        self.assertEqual(len(table), 40)
        self.assertEqual(table.column("queueOffset").to_pylist(), [*range(20)] * 2)
        self.assertEqual(len(self.bodies("T", "U")), 41)
        self.assertEqual(self.bodies(subscribe_pattern="U"), [b"other"])

    def test_options(self) -> None:
        """Options are those of the data source, with values as Python has them."""
        self.assertEqual(len(self.bodies("T", tags="odd")), 20)
        starts = {"T": {"local": {"0": 19, "1": 18}}}
        self.assertEqual(
            self.bodies("T", starting_offsets=starts), [b"37", b"38", b"39"]
        )
        moment = datetime.datetime.fromtimestamp(START_MS / 1000 + 39, datetime.UTC)
        self.assertEqual(self.bodies("T", starting_timestamp=moment), [b"38", b"39"])
        self.assertEqual(self.bodies("T", ending_timestamp=START_MS + 2000), [b"0"])

    def test_duckdb(self) -> None:
        """DuckDB queries it by the name of a variable."""
        rows = read("T", store=self.root)
        self.assertEqual(rows.schema.names, [*NATIVE])
        connection = duckdb.connect()
        self.addCleanup(connection.close)
        found = connection.sql(
            "select tags, count(*), max(cast(body as varchar)::int), "
            "max(properties['TAGS']) from rows group by tags order by tags"
        ).fetchall()
        self.assertEqual(found, [("even", 20, 38, "even"), ("odd", 20, 39, "odd")])

    def test_refused(self) -> None:
        """What is wrong is said at once, in one sentence."""
        for topics, words, error, sentence in (
            (("T",), {"tgas": "x"}, ConfigurationError, "unknown option 'tgas'"),
            (("T",), {"push_down": True}, ConfigurationError, "unknown option"),
            (("T",), {"columns": "bdy"}, ConfigurationError, "no column 'bdy'"),
            (("T",), {"tags": {1}}, ConfigurationError, "^tags=.1. is of no type"),
            (("T",), {"columns": [1]}, ConfigurationError, r"columns=\[1\] is of no"),
            ((), {}, ConfigurationError, "subscribe is needed"),
            (("V",), {}, TopicNotExist, "holds no queue of V"),
            (
                ("T",),
                {"starting_offsets": {"T": {"local": {"0": 21}}}},
                DataLoss,
                "queue 0 of T on local ends at 20, before 21",
            ),
        ):
            self.assertRaisesRegex(
                error, sentence, read, *topics, store=self.root, **words
            )
        self.assertRaises(StoreError, read, "T", store=self.root / "nowhere")
        self.assertRaisesRegex(ConfigurationError, "nameServer and store", read, "T")

    def test_words(self) -> None:
        """Names are those of options in Python's way, and None is nothing."""
        self.assertEqual(
            option_words(
                {
                    "name_server": None,
                    "fail_on_data_loss": False,
                    "starting_offsets_by_timestamp_strategy": "error",
                    "pull_batch_size": 5,
                    "tls_ca": "/ca",
                    "tls_key_password": "x",
                    "secret_key": "y",
                }
            ),
            {
                "failOnDataLoss": "false",
                "startingOffsetsByTimestampStrategy": "error",
                "pullBatchSize": "5",
                "tls.ca": "/ca",
                "tls.keyPassword": "x",
                "secretKey": "y",
            },
        )

    def test_others(self) -> None:
        """The package hands on nothing else."""
        self.assertRaises(AttributeError, getattr, rocketbroker.arrow, "write")


class BatchesTests(SynchronousTestCase):
    """L{Batches} closes what it reads from."""

    def setUp(self) -> None:
        """An origin."""
        self.origin = MemoryOrigin({})
        self.events: list[str] = []

    def batches(self) -> Batches:
        """Two batches."""

        def given() -> Generator[Any, None, None]:
            try:
                for number in range(2):
                    self.events.append(f"batch {number}")
                    yield number
            finally:
                self.events.append("forgotten")

        return Batches(self.origin, given())

    def test_lazy(self) -> None:
        """A batch is made when it is asked for; behind the last one all is closed."""
        batches = self.batches()
        self.assertEqual(self.events, [])
        self.assertEqual(next(batches), 0)
        self.assertEqual(self.events, ["batch 0"])
        self.assertFalse(self.origin.closed)
        self.assertEqual([*batches], [1])
        self.assertTrue(self.origin.closed)
        self.assertRaises(StopIteration, next, batches)

    def test_dropped(self) -> None:
        """One that is dropped closes everything, begun or not."""
        batches = self.batches()
        next(batches)
        del batches
        self.assertEqual(self.events, ["batch 0", "forgotten"])
        self.assertTrue(self.origin.closed)
        self.origin.closed = False
        self.batches()
        self.assertTrue(self.origin.closed)

    def test_failed(self) -> None:
        """So does one that fails."""

        def given() -> Generator[Any, None, None]:
            yield 1
            raise DataLoss("gone")

        batches = Batches(self.origin, given())
        next(batches)
        self.assertRaises(DataLoss, next, batches)
        self.assertTrue(self.origin.closed)

    def test_lost(self) -> None:
        """With failOnDataLoss=record, what is gone is logged."""
        gone = Range(Queue("T", "b", 0), 3, 5)
        with self.assertLogs("rocketbroker.arrow") as found:
            log_lost(ReadOptions(record_data_loss=True), [gone])
        self.assertEqual(
            found.records[0].getMessage(),
            "the messages [3, 5) of queue 0 of T on b are gone",
        )
        with self.assertNoLogs("rocketbroker.arrow"):
            log_lost(ReadOptions(), [gone])
