"""How servers react to signals."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from twisted.internet.error import ReactorNotRunning
from twisted.logger import capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.logs import LogOutput
from rocketbroker.app.signals import handle_signals


class Stopped:
    """Counts stops; the second one is too many, as for a reactor."""

    def __init__(self) -> None:
        self.stops = 0
        self.calls: list[Callable[..., Any]] = []
        self.triggers: list[Callable[..., Any]] = []

    def callFromThread(self, callable: Callable[..., Any], *args: Any) -> None:
        """Note what is to be called."""
        self.calls.append(callable)

    def addSystemEventTrigger(
        self, phase: str, event: str, callable: Callable[..., Any]
    ) -> None:
        """Note what is to be called when it stops."""
        self.triggers.append(callable)

    def stop(self) -> None:
        """Stop once."""
        self.stops += 1
        if self.stops > 1:
            raise ReactorNotRunning


class SignalCase(SynchronousTestCase):
    """Signals as a process finds them."""

    def setUp(self) -> None:
        """The signals as they are, and a reactor that stops at two of them."""
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGINT, signal.SIGTERM):
            self.addCleanup(signal.signal, number, signal.getsignal(number))
            signal.signal(number, signal.SIG_DFL)
        self.reactor = Stopped()

        def stop(number: int, frame: FrameType | None) -> None:
            self.reactor.callFromThread(self.reactor.stop)

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)

    def send(self, *numbers: signal.Signals) -> None:
        """Send signals to this process; then the reactor turns."""
        for number in numbers:
            os.kill(os.getpid(), number)
        calls, self.reactor.calls = self.reactor.calls, []
        for call in calls:
            call()


class StopTests(SignalCase):
    """SIGINT and SIGTERM."""

    def test_twice(self) -> None:
        """A second one changes nothing, whichever they are."""
        handle_signals(self.reactor, None)
        self.send(signal.SIGTERM, signal.SIGINT, signal.SIGTERM)
        self.assertEqual(self.reactor.stops, 1)

    def test_stopping(self) -> None:
        """Nor does the first one, if the reactor stops already."""
        handle_signals(self.reactor, None)
        for began in self.reactor.triggers:
            began()
        self.send(signal.SIGTERM)
        self.assertEqual(self.reactor.stops, 0)


class HangupTests(SignalCase):
    """SIGHUP and SIGUSR1."""

    def output(self) -> LogOutput:
        """A log file."""
        path = Path(self.mktemp()).absolute()
        path.mkdir()
        output = LogOutput("log", str(path))
        self.addCleanup(output.close)
        return output

    def test_stops(self) -> None:
        """Without a log file SIGHUP stops the reactor; a second one is no matter."""
        handle_signals(self.reactor, None)
        self.send(signal.SIGHUP, signal.SIGHUP)
        self.assertEqual(self.reactor.stops, 2)

    def test_ignored(self) -> None:
        """Where it is ignored, as under nohup, it stays so."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        handle_signals(self.reactor, self.output())
        self.send(signal.SIGHUP)
        self.assertIs(signal.getsignal(signal.SIGHUP), signal.SIG_IGN)

    def test_reopens(self) -> None:
        """With a log file SIGHUP opens it again, and nothing stops."""
        output = self.output()
        handle_signals(self.reactor, output)
        output.write("before\n")
        os.rename(output.path, output.path + ".old")
        self.send(signal.SIGHUP)
        output.write("after\n")
        self.assertEqual(Path(output.path).read_text(), "after\n")
        self.assertEqual(Path(output.path + ".old").read_text(), "before\n")
        self.assertEqual(self.reactor.stops, 0)

    def test_cannotReopen(self) -> None:
        """A file that cannot be opened again is told, and the log goes on."""
        output = self.output()
        handle_signals(self.reactor, output)
        os.rename(output.path, output.path + ".old")
        os.mkdir(output.path)
        with capturedLogs() as events:
            self.send(signal.SIGHUP)
        output.write("after\n")
        self.assertIn("cannot be opened again: Is a", formatEvent(events[0]))
        self.assertEqual(Path(output.path + ".old").read_text(), "after\n")

    def test_rotates(self) -> None:
        """SIGUSR1 rotates the log file, as twistd does."""
        output = self.output()
        handle_signals(self.reactor, output)
        output.write("before\n")
        self.send(signal.SIGUSR1)
        output.write("after\n")
        self.assertEqual(Path(output.path + ".1").read_text(), "before\n")
        self.assertEqual(Path(output.path).read_text(), "after\n")
