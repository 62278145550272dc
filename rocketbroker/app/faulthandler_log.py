# -*- test-case-name: tests.app.test_faulthandler_log -*-
"""The last words of a process that the system kills: where each thread was.

A SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ends Python without a traceback. The module
C{faulthandler} writes one to a descriptor that was named before. That is the log
file's, and a new one's after the file was rotated: the old number may be a client's
socket by then.
"""

from __future__ import annotations

from typing import Any, Protocol, TextIO

from rocketbroker.app.logs import LogOutput


class FaultTraces(Protocol):
    """The part of the module C{faulthandler} that is used here."""

    def enable(self, file: Any) -> None:
        """Write to the descriptor of C{file} from now on, and keep it alive."""


def trace_crashes(
    faults: FaultTraces, output: LogOutput | None, stream: TextIO
) -> None:
    """Write tracebacks of all threads into the log if the process is killed.

    @param output: the log file, or None.
    @param stream: where they go without one: standard error.
    """
    if output is None:
        faults.enable(stream)
    else:
        output.when_opened(faults.enable)
