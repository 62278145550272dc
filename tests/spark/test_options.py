"""The options of a read."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.options import ReadOptions, Time, parse_options

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
        self.assertEqual(found.starting, (("T", "b", 0, 7), ("T", "b", 1, 5)))

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
        self.assertFalse(self.one("verifyCounts", "False").verify_counts)
        self.assertEqual(self.one("columns", "Kafka").columns, "kafka")
        for name, text in {
            "pullBytes": "many",
            "pullTimeout": "long",
            "verifyCounts": "maybe",
            "maxRecordsPerPartition": "0",
            "columns": "pulsar",
            "tags": "",
        }.items():
            self.assertIn(text, self.refusal(**{**LEAST, name: text}))

    def test_filtered(self) -> None:
        """A tag expression filters, a star does not."""
        self.assertTrue(self.one("tags", "a || b").filtered)
        self.assertFalse(self.one("tags", "*").filtered)
