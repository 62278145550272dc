# -*- test-case-name: tests.app.test_process -*-
"""The set-up of a process that every server needs."""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import sys
import time
from typing import Any, Final, final

from twisted.internet.defer import Deferred

from rocketbroker.app.descriptors import raise_descriptor_limit
from rocketbroker.app.faulthandler_log import trace_crashes
from rocketbroker.app.garbage import Garbage
from rocketbroker.app.logs import Log
from rocketbroker.app.parent import ParentWatch
from rocketbroker.app.reactor import switch_soon
from rocketbroker.app.signals import handle_signals
from rocketbroker.app.startflags import NO_FLAGS, StartFlags
from rocketbroker.app.systemd import Notifier

#: A turn with batches of messages frees some hundred kilobytes, that the next one needs
#: again. The allocator of glibc gives them back to the system at once (beyond 128 KiB),
#: and a tenth of the time of batches went into new pages. It stops that when a process
#: has freed a larger piece once, and then keeps up to twice its size.
FREED_BYTES: Final = 2 << 20


def keep_freed_memory() -> None:
    """Let the allocator keep what a turn frees for the next one."""
    bytearray(FREED_BYTES)


def wall_ms() -> int:
    """The time of day in milliseconds."""
    return time.time_ns() // 1_000_000


@final
class ServerProcess:
    """Time, memory, limits, signals, systemd and traces of crashes of this process."""

    def __init__(
        self, reactor: Any, log: Log | None, flags: StartFlags = NO_FLAGS
    ) -> None:
        """
        Before the server opens anything.

        @param reactor: the reactor, not running yet.
        @param log: the server's log, if it is ours.
        @param flags: whether to end with the parent.
        """
        if flags.exit_with_parent:
            watch = ParentWatch(reactor, os.getppid, reactor.stop)
            reactor.callWhenRunning(watch.look)
        self._reactor = reactor
        self._output = log.output if log is not None else None
        if sys.__stderr__ is not None:
            trace_crashes(faulthandler, self._output, sys.__stderr__)
        switch_soon(sys)
        keep_freed_memory()
        raise_descriptor_limit(resource)
        self._garbage = Garbage(reactor, gc, sys.getallocatedblocks)
        self._garbage.starting()

    def opened(self, ready: Deferred[None]) -> None:
        """Everything is open; the reactor is about to run.

        @param ready: fires when clients find the server.
        """
        Notifier(os.environ, os.getpid()).follow(self._reactor, ready)
        self._reactor.callWhenRunning(self._garbage.started)
        self._reactor.callWhenRunning(handle_signals, self._reactor, self._output)
