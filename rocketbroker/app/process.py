# -*- test-case-name: tests.app.test_process -*-
"""What the process of every server is set up with."""

from __future__ import annotations

import faulthandler
import gc
import os
import resource
import sys
from typing import Any, final

from twisted.internet.defer import Deferred

from rocketbroker.app.crashes import trace_crashes
from rocketbroker.app.descriptors import raise_descriptor_limit
from rocketbroker.app.garbage import Garbage
from rocketbroker.app.logs import Log
from rocketbroker.app.signals import handle_signals
from rocketbroker.app.steadiness import make_steady, switch_soon
from rocketbroker.app.systemd import Notifier


@final
class ServerProcess:
    """Time, limits, signals, systemd, traces of crashes and garbage of this process."""

    def __init__(self, reactor: Any, log: Log | None) -> None:
        """
        Before the server opens anything.

        @param reactor: the reactor, not running yet.
        @param log: the server's log, if it is ours.
        """
        self._reactor = reactor
        self._output = log.output if log is not None else None
        if sys.__stderr__ is not None:
            trace_crashes(faulthandler, self._output, sys.__stderr__)
        make_steady(reactor)
        switch_soon(sys)
        raise_descriptor_limit(resource)
        self._garbage = Garbage(reactor, gc, sys.getallocatedblocks)
        self._garbage.starting()

    def opened(self, ready: Deferred[None]) -> None:
        """Everything is open; the reactor is about to run.

        @param ready: fires when clients find the server.
        """
        Notifier(os.environ).follow(self._reactor, ready)
        self._reactor.callWhenRunning(self._garbage.started)
        self._reactor.callWhenRunning(handle_signals, self._reactor, self._output)
