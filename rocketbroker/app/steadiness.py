# -*- test-case-name: tests.app.test_steadiness -*-
"""A reactor whose time only goes forward.

Twisted's own is the time of day. Set an hour back, no timer would fire for an hour:
nothing would be flushed, dispatched or woken. Set forward, every connection would be
idle and every client silent for too long, all at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Timed(Protocol):
    """The part of a reactor that is used here."""

    seconds: Callable[[], float]

    def getDelayedCalls(self) -> Sequence[Any]:
        """The calls that wait."""


def make_steady(reactor: Timed) -> None:
    """Let a reactor that has not begun to work count with the monotonic clock.

    One for which calls wait already, by the other clock, stays as it is.
    """
    if not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic
