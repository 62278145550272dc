"""Showing how far an export is."""

from __future__ import annotations

import io

from rich.console import Console
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.progress import (
    BarDisplay,
    Done,
    LineDisplay,
    quoted,
    time_left,
)


class LineTests(SynchronousTestCase):
    """L{LineDisplay}."""

    def setUp(self) -> None:
        """A clock and a place to write to."""
        self.now = 100.0
        self.out = io.StringIO()
        self.display = LineDisplay(self.out, lambda: self.now)

    def test_say(self) -> None:
        """What happened is one line of keys and values."""
        self.display.say("not there", queue="queue 1", rows=5)
        self.assertEqual(
            self.out.getvalue(), 'event=not_there queue="queue 1" rows=5\n'
        )

    def test_progress(self) -> None:
        """A line each ten seconds, with rate and time left."""
        self.display.start(1000, 4)
        self.now += 9
        self.display.show(Done(100, 5, 0))
        self.assertEqual(self.out.getvalue(), "")
        self.now += 1
        self.display.show(Done(200, 9, 1))
        self.display.show(Done(210, 9, 1))
        self.display.stop()
        self.assertEqual(
            self.out.getvalue(),
            "event=progress rows=200 total=1000 bytes=9 files=1 total_files=4 "
            "rows_per_second=20 seconds_left=40\n",
        )

    def test_noRateYet(self) -> None:
        """Before anything is done nobody knows how long it takes."""
        self.display.start(1000, 4)
        self.now += 10
        self.display.show(Done(0, 0, 0))
        self.assertIn("seconds_left=unknown", self.out.getvalue())
        self.assertIsNone(time_left(0, 5, 1.0))
        self.assertEqual(time_left(7, 5, 1.0), 0)

    def test_quoted(self) -> None:
        """A value stays one word, without line breaks."""
        self.assertEqual(quoted("a"), "a")
        self.assertEqual(quoted(""), '""')
        self.assertEqual(quoted('a "b"\nc'), '"a \\"b\\"\\nc"')


class BarTests(SynchronousTestCase):
    """L{BarDisplay}."""

    def test_bar(self) -> None:
        """Messages, size, files and time are shown, and sentences as they are."""
        out = io.StringIO()
        console = Console(file=out, force_terminal=True, width=150)
        display = BarDisplay(console)
        display.say("exported", rows=1234567, reason="[0, 5) of [x]")
        display.start(1000, 4)
        display.show(Done(250, 2_500_000, 1))
        display.stop()
        display.stop()
        text = out.getvalue()
        self.assertIn("1,234,567", text)
        self.assertIn("[0, 5) of [x]", text)
        self.assertIn("250 of 1,000 messages", text)
        self.assertIn("2.5 MB", text)
        self.assertIn("files 1/4", text)
