# -*- test-case-name: tests.app.test_signals -*-
"""The signal handlers of servers.

SIGINT and SIGTERM stop the reactor, as Twisted does; a second one changes nothing.
SIGHUP opens the log file again, so that C{logrotate} can move it away. A server without
a log file stops, because its terminal is gone; at once, the store would have to be
recovered.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger

from rocketbroker.app.logs import LogOutput

_log = Logger()


class Stopping(Protocol):
    """The part of a reactor that is used here."""

    def callFromThread(self, callable: Callable[..., Any], *args: Any) -> Any:
        """Call in the next turn; also from a signal."""

    def stop(self) -> Any:
        """Stop, as at SIGTERM."""

    def addSystemEventTrigger(
        self, phase: str, event: str, callable: Callable[..., Any]
    ) -> Any:
        """Call at an event."""


def handle_signals(reactor: Stopping, output: LogOutput | None) -> None:
    """React to signals from now on; the reactor runs already.

    @param output: the log file, or None.
    """
    stop_once(reactor)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not so under nohup

        def hangup() -> None:
            if output is not None:
                _reopen(output)
                return
            _log.info("Received SIGHUP, shutting down.")
            with suppress(ReactorNotRunning):  # it stops already
                reactor.stop()

        _call_at(reactor, signal.SIGHUP, hangup)
    if output is not None:
        # What twistd does with a log file.
        _call_at(reactor, signal.SIGUSR1, output.rotate)


def stop_once(reactor: Stopping) -> None:
    """Let only the first SIGINT or SIGTERM reach the reactor."""
    stopping = [False]

    def began() -> None:
        stopping[0] = True

    reactor.addSystemEventTrigger("before", "shutdown", began)
    for number in (signal.SIGINT, signal.SIGTERM):
        stop = signal.getsignal(number)
        if not callable(stop):
            continue

        def received(
            number: int,
            frame: FrameType | None,
            stop: Callable[[int, FrameType | None], Any] = stop,
        ) -> None:
            if not stopping[0]:
                stopping[0] = True
                stop(number, frame)

        signal.signal(number, received)


def _call_at(
    reactor: Stopping, number: signal.Signals, function: Callable[[], Any]
) -> None:
    """Call a function in a turn of its own at each signal."""

    def received(_number: int, _frame: FrameType | None) -> None:
        reactor.callFromThread(function)

    signal.signal(number, received)


def _reopen(output: LogOutput) -> None:
    try:
        output.reopen()
    except OSError as error:
        _log.error(
            "The log file {path} cannot be opened again: {reason}.",
            path=output.path,
            reason=error.strerror,
        )
    else:
        _log.info("Received SIGHUP, opened the log file again.")
