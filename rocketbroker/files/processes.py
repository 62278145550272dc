# -*- test-case-name: tests.files.test_processes -*-
"""The processes of this machine, as the Linux kernel tells of them.

The id of a process that has ended is given to another one some time later. So a process
is known by its id, the time of its start, and the start of the machine that this time
counts from. Where there is no C{/proc} none is known.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import Final, final

from zope.interface import implementer

from rocketbroker.files.interfaces import IProcesses

#: Fields of C{/proc/PID/stat} behind the name, see proc_pid_stat(5): 3 and 22 there.
_STATE: Final = 0
_START: Final = 19

#: The state of a process that waits for a device, whatever it is sent; and of one that
#: has ended.
_UNINTERRUPTIBLE: Final = "D"
_ENDED: Final = ("Z", "X")


@final
@implementer(IProcesses)
class ProcessTable:
    """All processes."""

    def __init__(self, proc: str = "/proc") -> None:
        """
        @param proc: where the kernel tells of them.
        """
        self._proc = proc

    def identity(self, process: int) -> str:
        """See L{IProcesses.identity}: the start of the machine, and of the process."""
        fields = self._fields(process)
        if fields[_STATE] in _ENDED:
            return ""
        boot = self._read("sys/kernel/random/boot_id").strip()
        return f"{boot}/{fields[_START]}" if fields[_START] else ""

    def waits_for_disk(self, process: int) -> bool:
        """See L{IProcesses.waits_for_disk}."""
        return self._fields(process)[_STATE] == _UNINTERRUPTIBLE

    def kill(self, process: int) -> None:
        """See L{IProcesses.kill}."""
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGKILL)

    def _fields(self, process: int) -> list[str]:
        """What the kernel says of a process, without its name, which may be anything;
        empty words if there is none."""
        found = self._read(f"{process}/stat").rpartition(")")[2].split()
        return found if len(found) > _START else [""] * (_START + 1)

    def _read(self, name: str) -> str:
        with suppress(OSError), open(os.path.join(self._proc, name), "rb") as file:
            return file.read().decode("utf-8", "replace")
        return ""
