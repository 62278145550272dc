"""The options of a read."""

from __future__ import annotations

from pathlib import Path

import attrs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.sources.option_table import OPTIONS, STREAM, options_page
from rocketbroker.sources.option_values import (
    BeforeLatest,
    ExportEnds,
    GroupOffsets,
    Time,
)
from rocketbroker.sources.options import ReadOptions, parse_options
from rocketbroker.sources.ranges import Queue
from rocketbroker.sources.source import SQL92, Filter

ROOT = Path(__file__).resolve().parent.parent.parent

LEAST = {"nameServer": "a:1", "subscribe": "T"}


class OptionTests(SynchronousTestCase):
    """L{parse_options}."""

    def one(self, name: str, value: str) -> ReadOptions:
        """The options with one more than needed."""
        return parse_options({**LEAST, name: value})

    def refusal(self, **given: str) -> str:
        """What is said of options that make no sense."""
        error = self.assertRaises(ConfigurationError, parse_options, given)
        return str(error)

    def test_defaults(self) -> None:
        """Where to read from and what are enough."""
        self.assertEqual(
            parse_options(LEAST), ReadOptions(name_server="a:1", topics=("T",))
        )

    def test_anyCase(self) -> None:
        """Names are taken in any case."""
        self.assertEqual(self.one("PULLBATCHSIZE", "7").pull_batch_size, 7)

    def test_topics(self) -> None:
        """Several topics, each once."""
        self.assertEqual(self.one("subscribe", " b, a,b,").topics, ("b", "a"))

    def test_unknown(self) -> None:
        """A misspelled option is refused, not passed over."""
        refusal_text = self.refusal(**LEAST, endingOfsets="x")
        self.assertTrue(
            refusal_text.startswith("unknown option 'endingofsets'; known are")
        )

    def test_purposes(self) -> None:
        """Options of a stream are no use in a batch read, and the other way round."""
        limited = {**LEAST, "maxOffsetsPerTrigger": "7"}
        self.assertEqual(
            self.refusal(**limited),
            "maxOffsetsPerTrigger is an option of a stream, not of a batch",
        )
        self.assertEqual(parse_options(limited, STREAM).max_offsets, 7)
        self.assertEqual(parse_options(limited, None).max_offsets, 7)
        ended = {**LEAST, "endingOffsets": "latest"}
        error = self.assertRaises(ConfigurationError, parse_options, ended, STREAM)
        self.assertIn("an option of a batch, not of a stream", str(error))

    def test_startOfStreams(self) -> None:
        """A stream begins with what comes, unless told otherwise."""
        self.assertEqual(parse_options(LEAST, STREAM).starting, "latest")
        told = {**LEAST, "startingOffsets": "earliest"}
        self.assertEqual(parse_options(told, STREAM).starting, "earliest")

    def test_limits(self) -> None:
        """A micro-batch has a size that is possible."""
        least = {**LEAST, "maxBytesPerTrigger": "2g", "minOffsetsPerTrigger": "9"}
        found = parse_options(least, STREAM)
        self.assertEqual((found.max_bytes, found.min_offsets), (2 << 30, 9))
        for words, sentence in (
            ({"maxOffsetsPerTrigger": "8"}, "is more than maxOffsetsPerTrigger"),
            ({"metricsPort": "65536"}, "must be 65535 or less"),
            ({"commitGroup": "a b"}, "commitGroup='a b'"),
        ):
            error = self.assertRaises(
                ConfigurationError, parse_options, {**least, **words}, STREAM
            )
            self.assertIn(sentence, str(error))

    def test_needed(self) -> None:
        """One place to read from, and a topic."""
        self.assertEqual(
            self.refusal(subscribe="T"),
            "one of nameServer and store is needed, not both",
        )
        self.assertEqual(
            self.refusal(subscribe="T", nameServer="a", store="b"),
            "one of nameServer and store is needed, not both",
        )
        self.assertIn("subscribe is needed", self.refusal(store="d"))

    def test_offsets(self) -> None:
        """Offsets are earliest, latest, or JSON."""
        self.assertEqual(self.one("startingOffsets", "Latest").starting, "latest")
        found = self.one("startingOffsets", '{"T": {"b": {"1": 5, "0": 7}}}')
        self.assertEqual(
            found.starting, ((Queue("T", "b", 0), 7), (Queue("T", "b", 1), 5))
        )

    def test_starts(self) -> None:
        """A start is also counted from the end, a group's, or that of an export."""
        for text, start in {
            "Latest-20": BeforeLatest(20),
            "GROUP: readers": GroupOffsets("readers"),
            "export:/data/Orders": ExportEnds("/data/Orders"),
        }.items():
            self.assertEqual(self.one("startingOffsets", text).starting, start)
        for text in ("latest-", "latest-x", "group:", "group:a b", "export:"):
            sentence = self.refusal(**LEAST, startingOffsets=text)
            self.assertTrue(sentence.startswith(f"startingOffsets={text!r}: "))
        sentence = self.refusal(store="d", subscribe="T", startingOffsets="group:G")
        self.assertIn("startingOffsets=group: needs nameServer", sentence)

    def test_queueTimes(self) -> None:
        """Times by queue are numbers or texts."""
        found = self.one("startingOffsetsByTimestamp", '{"T": {"b": {"0": "-1s"}}}')
        time = Time(-1000, relative=True)
        self.assertEqual(found.starting_times, ((Queue("T", "b", 0), time),))
        found = self.one("endingOffsetsByTimestamp", '{"T": {"b": {"0": 7}}}')
        self.assertEqual(found.ending_times, ((Queue("T", "b", 0), Time(7)),))
        for text in ("5", '{"T": {"b": {"0": true}}}', '{"T": {"b": {"0": "x"}}}'):
            self.refusal(**LEAST, startingOffsetsByTimestamp=text)

    def test_names(self) -> None:
        """Topics and queues that are not read are refused in offsets and times."""
        for option in (
            "startingOffsets",
            "endingOffsets",
            "startingOffsetsByTimestamp",
            "endingOffsetsByTimestamp",
        ):
            sentence = self.refusal(**{**LEAST, option: '{"U": {"b": {"0": 1}}}'})
            self.assertEqual(
                sentence, f"{option} names topic 'U', but subscribe does not"
            )
            assign = {"nameServer": "a:1", "assign": '{"T": {"b": [0]}}'}
            sentence = self.refusal(**{**assign, option: '{"T": {"b": {"1": 1}}}'})
            self.assertIn("names queue 1 of T on b, but assign does not", sentence)

    def test_assign(self) -> None:
        """Queues are named one by one, each once."""
        given = {"store": "d", "assign": '{"T": {"b": [1, 0, "1"]}}'}
        self.assertEqual(
            parse_options(given).assigned, (Queue("T", "b", 0), Queue("T", "b", 1))
        )
        for text in ("{}", "[]", '{"T": [1]}', '{"T": {"b": {"0": 1}}}', "x"):
            self.assertIn("assign=", self.refusal(store="d", assign=text))
        self.refusal(store="d", assign='{"T": {"b": [-1]}}')

    def test_pattern(self) -> None:
        """Topics may be given by a regular expression, which must be one."""
        given = {"store": "d", "subscribePattern": "orders-.*"}
        self.assertEqual(parse_options(given).pattern, "orders-.*")
        sentence = self.refusal(store="d", subscribePattern="(")
        self.assertIn("subscribePattern='(': is no regular expression", sentence)
        self.assertIn("one of the three", self.refusal(**LEAST, subscribePattern="x"))

    def test_loss(self) -> None:
        """What is gone ends the read, is passed over, or is listed."""
        for text, wanted in {
            "true": (True, False),
            "FALSE": (False, False),
            "record": (False, True),
        }.items():
            found = self.one("failOnDataLoss", text)
            self.assertEqual((found.fail_on_data_loss, found.record_data_loss), wanted)

    def test_columns(self) -> None:
        """A set of columns, or names of columns."""
        self.assertEqual(self.one("columns", "Kafka").columns, "kafka")
        self.assertEqual(self.one("columns", " body, keys").select, ("body", "keys"))
        self.refusal(**LEAST, columns="body,")
        self.refusal(**LEAST, columns="body,body")

    def test_table(self) -> None:
        """Each field is some option's, and the page of options is up to date."""
        told = [name for option in OPTIONS for name in option.attributes]
        self.assertEqual(sorted(told), sorted(attrs.fields_dict(ReadOptions)))
        page = (ROOT / "docs" / "spark-options.rst").read_text("utf-8")
        self.assertEqual(page, options_page())

    def test_badOffsets(self) -> None:
        """What is none of these is refused with the option's name."""
        for text in ("first", "[1]", '{"T": 1}', '{"T": {"b": {"0": -1}}}', "{"):
            refusal_text = self.refusal(**LEAST, startingOffsets=text)
            self.assertTrue(refusal_text.startswith("startingOffsets="), refusal_text)
        self.assertIn("cannot", self.refusal(**LEAST, endingOffsets="earliest"))

    def test_times(self) -> None:
        """Milliseconds, ISO 8601, or time before now."""
        for text, time in {
            "1700000000000": Time(1_700_000_000_000),
            "2023-11-14T22:13:20": Time(1_700_000_000_000),
            "2023-11-14T23:13:20.001+01:00": Time(1_700_000_000_001),
            "-10m": Time(-600_000, relative=True),
        }.items():
            self.assertEqual(self.one("startingTimestamp", text).starting_time, time)
        self.assertIn("startingTimestamp", self.refusal(**LEAST, startingTimestamp="x"))
        self.assertEqual(Time(-5, relative=True).at(100), 95)
        self.assertEqual(Time(5).at(100), 5)

    def test_others(self) -> None:
        """Numbers, sizes, spans, truth values, and what is none of them."""
        self.assertEqual(self.one("pullBytes", "64k").pull_bytes, 65536)
        self.assertEqual(self.one("pullBytes", "1g").pull_bytes, 64 << 20)
        self.assertEqual(self.one("pullTimeout", "5s").pull_timeout_ms, 5000)
        self.assertEqual(self.one("retryTimeout", "0").retry_timeout_ms, 0)
        self.assertIn("more than 0", self.refusal(**LEAST, pullTimeout="0"))
        self.assertFalse(self.one("verifyCounts", "False").verify_counts)
        for name, text in {
            "pullBytes": "many",
            "pullTimeout": "long",
            "verifyCounts": "maybe",
            "maxRecordsPerPartition": "0",
            "pullConcurrency": "9" * 5000,
            "startingTimestamp": "9" * 20,
            "startingOffsetsByTimestampStrategy": "never",
            "missingQueues": "maybe",
            "subscribe": "a b",
            "tags": "",
        }.items():
            self.assertIn(text, self.refusal(**{**LEAST, name: text}))

    def test_sql(self) -> None:
        """A condition in SQL92 is kept as it is, one that is none is refused."""
        found = self.one("sqlFilter", "a > 5 AND b IS NOT NULL")
        self.assertEqual(found.filter, Filter(SQL92, "a > 5 AND b IS NOT NULL"))
        self.assertTrue(found.filtered)
        text = self.refusal(**LEAST, sqlFilter="a >")
        self.assertEqual(text, "sqlFilter='a >': the end at 3 is not expected")
        text = self.refusal(**LEAST, sqlFilter="a > 5", tags="b")
        self.assertIn("one of tags and sqlFilter", text)
        self.assertIn("only separators", self.refusal(**LEAST, tags="||"))

    def test_filtered(self) -> None:
        """A tag expression filters, a star does not."""
        self.assertTrue(self.one("tags", "a || b").filtered)
        self.assertFalse(self.one("tags", "*").filtered)
