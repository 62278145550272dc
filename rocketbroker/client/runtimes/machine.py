# -*- test-case-name: tests.client.test_runtimes -*-
"""The machine that a client runs on: clock, directory, signals, words of errors."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import TYPE_CHECKING

from rocketbroker.config import forks
from rocketbroker.config.forks import Forked

if TYPE_CHECKING:
    from rocketbroker.client.local_offsets import OffsetFolder


def wall_ms() -> int:
    """The wall clock, in milliseconds."""
    return time.time_ns() // 1_000_000


def offset_folder() -> OffsetFolder:
    """Where Java's clients keep the offsets of consumers that broadcast."""
    # Few programs need these.
    from rocketbroker.client.local_offsets import OffsetFolder
    from rocketbroker.files.disk import Disk

    return OffsetFolder(Disk(), os.path.expanduser("~/.rocketmq_offsets"))


def watch_fork(one: Forked) -> None:
    """Tell it in each child of a fork; see L{forks.watch}."""
    forks.watch(one)


def may_watch_termination() -> bool:
    """Whether SIGTERM is ours to watch: in the main thread, if nobody does yet."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def nothing() -> None:
    """Watch no more what was never watched."""


def reason(problem: OSError | UnicodeError) -> str:
    """Why a socket failed, in the words of the system."""
    if isinstance(problem, UnicodeError):
        return "no host has such a name"
    if isinstance(problem, ConnectionError) and problem.errno:
        return os.strerror(problem.errno)  # asyncio has words of its own
    return problem.strerror or str(problem) or "no answer in time"
