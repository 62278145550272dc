# -*- test-case-name: tests.app.test_storecommands -*-
"""How far a long walk is, for people who wait for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

#: How often progress is told, in seconds.
PROGRESS_SECONDS: Final = 1.0


def progress_lines(
    total: int, say: Callable[[str], None], clock: Callable[[], float]
) -> Callable[[int], None]:
    """Tells how far a walk is, how fast, and how long it takes to the end."""
    begun = told = clock()

    def progress(done: int) -> None:
        nonlocal told
        now = clock()
        if now - told < PROGRESS_SECONDS:
            return
        told = now
        rate = done / (now - begun)
        share = min(100, done * 100 // max(total, done, 1))
        left = max(0, total - done) / rate if rate else 0
        say(
            f"{done >> 20} of {max(total, done) >> 20} MiB, {share} %, "
            f"{rate / 1e6:.0f} MB/s, {left:.0f} s left"
        )

    return progress
