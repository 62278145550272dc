"""What a terminal that goes away does."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

from twisted.internet.error import ReactorNotRunning
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.signals import stop_at_hangup


class Stopped:
    """Counts stops; the second one is too many, as for a reactor."""

    def __init__(self) -> None:
        self.stops = 0
        self.calls: list[Callable[..., Any]] = []

    def callFromThread(self, callable: Callable[..., Any], *args: Any) -> None:
        """Note what is to be called."""
        self.calls.append(callable)

    def stop(self) -> None:
        """Stop once."""
        self.stops += 1
        if self.stops > 1:
            raise ReactorNotRunning


class HangupTests(SynchronousTestCase):
    """SIGHUP."""

    def setUp(self) -> None:
        """The signal as a process finds it."""
        self.addCleanup(signal.signal, signal.SIGHUP, signal.getsignal(signal.SIGHUP))
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    def test_stops(self) -> None:
        """It stops the reactor from a turn of its own; a second one is no matter."""
        reactor = Stopped()
        stop_at_hangup(reactor)
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGHUP)
        self.assertEqual((reactor.stops, len(reactor.calls)), (0, 2))
        for call in reactor.calls:
            call()
        self.assertEqual(reactor.stops, 2)

    def test_ignored(self) -> None:
        """Where it is ignored, as under nohup, it stays so."""
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        reactor = Stopped()
        stop_at_hangup(reactor)
        os.kill(os.getpid(), signal.SIGHUP)
        self.assertEqual(reactor.calls, [])
