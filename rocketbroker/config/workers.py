# -*- test-case-name: tests.config.test_workers -*-
"""The number of workers of a broker."""

from __future__ import annotations

from typing import Final

from rocketbroker.config import machine

#: One worker for each core.
AUTO: Final = "auto"

#: The most workers. Each is a process of some thirty megabytes, and one core of the
#: owner cannot feed as many; beyond it is a mistake.
MAX_WORKERS: Final = 64


def check_workers(text: str) -> None:
    """Check the setting.

    @raise ValueError: what it must be instead.
    """
    is_number = text.isascii() and text.isdigit() and len(text) < 9
    if text != AUTO and not (is_number and int(text) <= MAX_WORKERS):
        raise ValueError(
            f"it must be {AUTO}, or a whole number from 0 to {MAX_WORKERS}"
        )


def worker_count(text: str) -> int:
    """The number of workers that a checked setting asks for."""
    return min(machine.processors(), MAX_WORKERS) if text == AUTO else int(text)
