# -*- test-case-name: tests.app.test_signals -*-
"""What servers do when their terminal goes away.

Twisted stops at SIGINT and SIGTERM; SIGHUP would kill at once, and the store would have
to be recovered. A Java broker stops at all three.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Any, Protocol

from twisted.internet.error import ReactorNotRunning
from twisted.logger import Logger

_log = Logger()


class Stopping(Protocol):
    """What is needed of a reactor."""

    def callFromThread(self, callable: Callable[..., Any], *args: Any) -> Any:
        """Call in the next turn; also from a signal."""

    def stop(self) -> Any:
        """Stop, as at SIGTERM."""


def stop_at_hangup(reactor: Stopping) -> None:
    """Stop at SIGHUP as at SIGTERM, unless somebody (nohup) has it ignored."""
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_DFL:
        return

    def stop() -> None:
        _log.info("Received SIGHUP, shutting down.")
        with suppress(ReactorNotRunning):  # it stops already
            reactor.stop()

    def received(number: int, frame: FrameType | None) -> None:
        reactor.callFromThread(stop)

    signal.signal(signal.SIGHUP, received)
