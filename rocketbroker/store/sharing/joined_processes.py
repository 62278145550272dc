# -*- test-case-name: tests.store.sharing.test_append_lock -*-
"""The processes that may have joined a store, in a file of it.

They end when their owner does, as their links do. One that was stopped, or waits for
the disk, does not: the next owner has to end it, or it would append to a store that is
not the one it has joined. So an owner notes each process that it starts, and what tells
it from another one that has got its id since. The file C{rocketbroker.joined} has a
line C{id identity} for each; one that is not terminated does not count. It need not be
on the disk: with the machine, its processes are gone.
"""

from __future__ import annotations

import contextlib
import os
from typing import Final, final

from rocketbroker.files.interfaces import IFiles, IProcesses

JOINED_NAME: Final = "rocketbroker.joined"


@final
class JoinedProcesses:
    """Those of this owner, and before L{end_all} those of the last one.

    @ivar ended: how many of the last owner's were still there.
    """

    def __init__(self, files: IFiles, root: str, processes: IProcesses | None) -> None:
        """
        @param processes: those of this machine; None: they are not known.
        """
        self.ended = 0
        self._files = files
        self._path = os.path.join(root, JOINED_NAME)
        self._processes = processes
        self._identities: dict[int, str] = {}

    def add(self, process: int) -> None:
        """Note a process that was started; while the disk is full it is not in the
        file."""
        if self._processes is not None:
            self._identities[process] = self._processes.identity(process)
            self._write()

    def remove(self, process: int) -> None:
        """Forget a process that has ended."""
        if self._identities.pop(process, None) is not None:
            self._write()

    def end_all(self) -> None:
        """I{Blocking.} Kill those of an owner that died.

        @raise OSError: the file cannot be read.
        """
        processes = self._processes
        if processes is None or not self._files.exists(self._path):
            return
        content = self._files.read(self._path).decode("utf-8", "replace")
        for line in content.split("\n")[:-1]:
            number, _, identity = line.partition(" ")
            if number.isdigit() and identity:
                self._identities[int(number)] = identity
        for process in self._identities:
            if self._is_there(process):
                processes.kill(process)
                self.ended += 1

    def end(self, process: int) -> bool:
        """Kill a process, if it is one of these and can end.

        @return: whether it was killed.
        """
        processes = self._processes
        if (
            processes is None
            or not self._is_there(process)
            or processes.waits_for_disk(process)
        ):
            return False
        processes.kill(process)
        return True

    def describe(self, process: int) -> str:
        """A process in words, as the subject of a sentence."""
        if not process:
            return "a process that is not known"
        processes = self._processes
        what = "a worker" if process in self._identities else "no worker of this broker"
        waits = processes is not None and processes.waits_for_disk(process)
        disk = ", which waits for the disk" if waits else ""
        return f"process {process}, {what}{disk},"

    def close(self) -> None:
        """Forget all, and remove the file."""
        self._identities.clear()
        if self._processes is not None:
            with contextlib.suppress(OSError):
                self._files.remove(self._path)

    def _is_there(self, process: int) -> bool:
        """Whether it is one of these, and not another one with its id."""
        identity = self._identities.get(process)
        processes = self._processes
        return (
            processes is not None
            and bool(identity)
            and processes.identity(process) == identity
        )

    def _write(self) -> None:
        lines = [f"{process} {what}\n" for process, what in self._identities.items()]
        with contextlib.suppress(OSError):
            file = self._files.open(self._path, create=True)
            try:
                file.truncate(0)
                file.pwrite("".join(lines).encode(), 0)
            finally:
                file.close()
