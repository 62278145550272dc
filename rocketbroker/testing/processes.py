# -*- test-case-name: tests.files.test_processes -*-
"""The processes of a machine, as a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from zope.interface import implementer

from rocketbroker.files.interfaces import IProcesses


@final
@implementer(IProcesses)
class GivenProcesses:
    """Those that a test has started.

    @ivar running: the identity of each, by its id.
    @ivar waiting: the ids of those that wait for a device, so that they do not end.
    @ivar killed: the ids of those that were killed, in order.
    @ivar watch: told of each that has been killed and ends.
    """

    def __init__(self) -> None:
        self.running: dict[int, str] = {}
        self.waiting: set[int] = set()
        self.killed: list[int] = []
        self.watch: Callable[[int], object] = lambda process: None

    def identity(self, process: int) -> str:
        """See L{IProcesses.identity}."""
        return self.running.get(process, "")

    def waits_for_disk(self, process: int) -> bool:
        """See L{IProcesses.waits_for_disk}."""
        return process in self.waiting

    def kill(self, process: int) -> None:
        """See L{IProcesses.kill}."""
        self.killed.append(process)
        if process not in self.waiting and self.running.pop(process, ""):
            self.watch(process)
