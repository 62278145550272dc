"""How far a long walk is."""

from __future__ import annotations

import io

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.progress import Progress, on_terminal


class Terminal(io.StringIO):
    """Something that somebody looks at."""

    def isatty(self) -> bool:
        """See L{io.IOBase.isatty}."""
        return True


class ProgressTests(SynchronousTestCase):
    """Lines, once a second."""

    def setUp(self) -> None:
        """The clock stands."""
        self.now = 0.0

    def clock(self) -> float:
        """What it says."""
        return self.now

    def test_bytes(self) -> None:
        """How far, how fast, how long to the end."""
        printed: list[str] = []
        progress = Progress(400 << 20, "bytes", printed.append, self.clock)
        self.now = 0.5
        progress.reach(50 << 20)
        self.now = 1.0
        progress.reach(100 << 20)
        self.assertEqual(printed, ["100 of 400 MiB, 25 %, 105 MB/s, 3 s left"])

    def test_messages(self) -> None:
        """Other things are counted one by one, and may become more than expected."""
        printed: list[str] = []
        progress = Progress(100, "messages", printed.append, self.clock)
        for _ in range(4):
            self.now += 1
            progress.add(30)
        self.assertEqual(printed[0], "30 of 100 messages, 30 %, 30 a second, 2 s left")
        self.assertEqual(
            printed[3], "120 of 120 messages, 100 %, 30 a second, 0 s left"
        )

    def test_nothing(self) -> None:
        """A walk of nothing has no rate."""
        printed: list[str] = []
        progress = Progress(0, "bytes", printed.append, self.clock)
        self.now = 2.0
        progress.reach(0)
        self.assertEqual(printed, ["0 of 0 MiB, 0 %, 0 MB/s, 0 s left"])

    def test_terminal(self) -> None:
        """It is told on terminals only, and not among what a verb prints there."""
        for error, output, lines in (
            (Terminal(), None, 1),
            (Terminal(), io.StringIO(), 1),
            (Terminal(), Terminal(), 0),
            (io.StringIO(), None, 0),
        ):
            self.now = 0.0
            add = on_terminal(error, output, 10, self.clock)
            self.now = 1.0
            add(5)
            self.assertEqual(error.getvalue().count("messages"), lines)
