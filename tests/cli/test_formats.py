"""Sizes and times for people."""

from __future__ import annotations

import json
import os
import time

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.formats import (
    Moment,
    Size,
    Span,
    count_of,
    matches,
    parse_moment,
    parse_span,
    without_zone,
)
from rocketbroker.errors import ConfigurationError

NOW = 1_700_000_000_123


class FormatTests(SynchronousTestCase):
    """Numbers as texts, and back."""

    def setUp(self) -> None:
        """Local time is UTC + 1."""
        before = os.environ.get("TZ")

        def restore() -> None:
            if before is None:
                del os.environ["TZ"]
            else:
                os.environ["TZ"] = before
            time.tzset()

        os.environ["TZ"] = "XXX-1"
        time.tzset()
        self.addCleanup(restore)

    def test_size(self) -> None:
        """Bytes in the unit that leaves few digits."""
        sizes = [0, 1023, 1024, 1536, 1 << 30, 1 << 60]
        texts = ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 GiB", "1024.0 PiB"]
        self.assertEqual([str(Size(size)) for size in sizes], texts)

    def test_moment(self) -> None:
        """Local time with milliseconds; a dash for never; what is no time, as it is."""
        self.assertEqual(str(Moment(NOW)), "2023-11-14 23:13:20.123+01:00")
        self.assertEqual(str(Moment(0)), "-")
        self.assertEqual(str(Moment(-1)), "-")
        self.assertEqual(str(Moment(1 << 62)), str(1 << 62))

    def test_momentIsRead(self) -> None:
        """What is shown can be given again."""
        self.assertEqual(parse_moment(str(Moment(NOW)), 0), NOW)

    def test_zone(self) -> None:
        """A date and time without a zone is told from all else."""
        for text in ("2023-11-14T23:13:20.123", "2023-11-14", "2023-11-14 10:00"):
            self.assertTrue(without_zone(text), text)
        for text in ("2023-11-14T22:13Z", "2023-11-14T22:13+01:00", "2h", "now"):
            self.assertFalse(without_zone(text), text)

    def test_countOf(self) -> None:
        """One thing is one, and all else several."""
        found = [count_of(number, "message") for number in (0, 1, 2)]
        self.assertEqual(found, ["0 messages", "1 message", "2 messages"])

    def test_matches(self) -> None:
        """A pattern with a star is a whole name, one without a part of it."""
        for name, pattern, is_wanted in (
            ("Orders", "*", True),
            ("Orders", "Ord*", True),
            ("Orders", "rder", True),
            ("Orders", "rder*", False),
            ("Orders", "O?ders", True),
            ("Orders", "order", False),
        ):
            self.assertEqual(matches(name, pattern), is_wanted, pattern)

    def test_span(self) -> None:
        """The two largest units."""
        spans = [0, 999, 1000, 61_001, 3_600_000, 90_061_001, -5000]
        texts = ["0 ms", "999 ms", "1 s", "1 m 1 s", "1 h", "1 d 1 h", "-5 s"]
        self.assertEqual([str(Span(span)) for span in spans], texts)

    def test_json(self) -> None:
        """Programs get numbers."""
        self.assertEqual(json.dumps([Size(5000), Moment(5), Span(7)]), "[5000, 5, 7]")

    def test_parseMoment(self) -> None:
        """Now, ages, ISO times with and without offset, and milliseconds."""
        for text, ms in (
            ("now", NOW),
            ("2h", NOW - 7_200_000),
            ("1700000000123", NOW),
            ("2023-11-14T23:13:20.123", NOW),
            ("2023-11-14T22:13:20.123+00:00", NOW),
            ("2023-11-14", 1_699_916_400_000),
        ):
            self.assertEqual(parse_moment(text, NOW), ms, text)
        for text in ("", "yesterday", "17", "2023-13-01", "-1h"):
            self.assertRaises(ConfigurationError, parse_moment, text, NOW)

    def test_parseSpan(self) -> None:
        """A number and a unit."""
        for text, ms in (
            ("5ms", 5),
            ("90s", 90_000),
            ("1m", 60_000),
            ("1d", 86_400_000),
        ):
            self.assertEqual(parse_span(text), ms)
        for text in ("", "5", "5 s", "1w", "-1s"):
            self.assertRaises(ConfigurationError, parse_span, text)
