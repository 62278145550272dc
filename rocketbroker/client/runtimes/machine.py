# -*- test-case-name: tests.client.test_runtimes -*-
"""The machine we run on: clocks, and who we are."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time

from rocketbroker.client.local_offsets import OffsetFolder
from rocketbroker.client.runtime import Identity


def wall_ms() -> int:
    """The wall clock, in milliseconds."""
    return time.time_ns() // 1_000_000


def identity() -> Identity:
    """The address of the way out, the process, and a number by chance.

    Finding the way out sends nothing. Without one it is the loopback address; the
    number keeps such clients apart.
    """
    address = "127.0.0.1"
    with contextlib.suppress(OSError):
        probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with probe:
            probe.connect(("192.0.2.1", 9))
            address = probe.getsockname()[0]
    token = int.from_bytes(os.urandom(4), "big")
    return Identity(socket.inet_aton(address), os.getpid(), token)


def offset_folder() -> OffsetFolder:
    """Where Java's clients keep the offsets of consumers that broadcast."""
    from rocketbroker.files.disk import Disk  # few programs need it

    return OffsetFolder(Disk(), os.path.expanduser("~/.rocketmq_offsets"))


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
