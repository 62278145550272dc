# -*- test-case-name: tests.cli.test_progress -*-
"""Progress of a long operation, on a terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from typing import Final, TextIO, final

#: How often progress is shown, in seconds.
PROGRESS_SECONDS: Final = 1.0


@final
class Progress:
    """Tells how far a walk is, how fast it is, and how long it takes to the end.

    @ivar total: how much there is, which may turn out to be more.
    @ivar done: how much of it was walked.
    """

    def __init__(
        self,
        total: int,
        unit: str,
        say: Callable[[str], None],
        clock: Callable[[], float],
    ) -> None:
        """
        @param unit: what is counted, in the plural; C{bytes} are shown as MiB.
        """
        self.total = total
        self.done = 0
        self._unit = unit
        self._say = say
        self._clock = clock
        self._begun = self._shown = clock()

    def add(self, more: int) -> None:
        """So much more was walked."""
        self.reach(self.done + more)

    def reach(self, done: int) -> None:
        """So much was walked since the beginning."""
        self.done = done
        now = self._clock()
        if now - self._shown < PROGRESS_SECONDS:
            return
        self._shown = now
        rate = done / (now - self._begun)
        total = max(self.total, done)
        share = done * 100 // max(total, 1)
        left = (total - done) / rate if rate else 0
        if self._unit == "bytes":
            what = f"{done >> 20} of {total >> 20} MiB"
            speed = f"{rate / 1e6:.0f} MB/s"
        else:
            what = f"{done} of {total} {self._unit}"
            speed = f"{rate:.0f} a second"
        self._say(f"{what}, {share} %, {speed}, {left:.0f} s left")


def say(text: str) -> None:
    """A line on standard error, whether somebody reads it or not."""
    with contextlib.suppress(BrokenPipeError):
        print(text, file=sys.stderr, flush=True)


def of_bytes(total: int) -> Progress:
    """Progress of a walk through so many, on standard error."""
    return Progress(total, "bytes", say, time.monotonic)


def on_terminal(
    error: TextIO, output: TextIO | None, total: int, clock: Callable[[], float]
) -> Callable[[int], None]:
    """Progress in messages, where somebody sees it and nothing else is disturbed.

    @param error: where it is told, if that is a terminal.
    @param output: must not be a terminal, too: a verb fills it all the time.
    @return: is told that so many more were looked at.
    """
    if not error.isatty() or (output is not None and output.isatty()):
        return lambda more: None

    def say(text: str) -> None:
        print(text, file=error, flush=True)

    return Progress(total, "messages", say, clock).add
