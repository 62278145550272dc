"""The processes of this machine."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.interfaces import IProcesses
from rocketbroker.files.processes import ProcessTable
from rocketbroker.testing.contracts.processes import ProcessesContract
from rocketbroker.testing.processes import GivenProcesses

#: What the kernel says of a process, up to the time of its start. The name may be
#: anything.
STAT = "7 (a) b) {state} 1 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n"


class GivenProcessesTests(ProcessesContract, SynchronousTestCase):
    """The double."""

    def make(self) -> IProcesses:
        """One that knows of this process."""
        processes = GivenProcesses()
        processes.running[os.getpid()] = "boot/1"
        return processes


class SystemTests(ProcessesContract, SynchronousTestCase):
    """The same of the system."""

    def make(self) -> IProcesses:
        """It knows all."""
        return ProcessTable()


class ProcessTableTests(SynchronousTestCase):
    """L{ProcessTable}, with a folder of the test in the place of the kernel's."""

    def setUp(self) -> None:
        """No process yet."""
        self.proc = Path(self.mktemp())
        boot = self.proc / "sys/kernel/random"
        boot.mkdir(parents=True)
        (boot / "boot_id").write_text("boot\n")
        self.processes = ProcessTable(str(self.proc))

    def put(self, start: int = 50, state: str = "S", process: int = 7) -> None:
        """There is a process."""
        (self.proc / str(process)).mkdir(exist_ok=True)
        content = STAT.format(state=state, start=start)
        (self.proc / str(process) / "stat").write_text(content)

    def test_identityIsIdWithStart(self) -> None:
        """A process is known by its start, and the machine's; one that has ended, or is
        none, by nothing."""
        self.put()
        self.assertEqual(self.processes.identity(7), "boot/50")
        self.put(start=51)
        self.assertEqual(self.processes.identity(7), "boot/51")
        self.put(state="Z")
        self.assertEqual(self.processes.identity(7), "")
        self.assertEqual(self.processes.identity(8), "")

    def test_stateOfDiskWait(self) -> None:
        """Only a process that nothing can interrupt waits for the disk."""
        for state, waits in (("D", True), ("S", False), ("T", False)):
            self.put(state=state)
            self.assertIs(self.processes.waits_for_disk(7), waits)
        self.assertFalse(self.processes.waits_for_disk(8))
