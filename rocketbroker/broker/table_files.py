# -*- test-case-name: tests.broker.test_table_files -*-
"""The files of all tables of a broker: the directory C{config} of its store."""

from __future__ import annotations

from typing import final

from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.interfaces import IReactorTime

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.json_table import JsonTable
from rocketbroker.files.interfaces import IFiles


@final
class TableFiles:
    """The files, in the order in which they were asked for.

    @ivar all: each has one table.
    """

    def __init__(
        self, files: IFiles, root: str, in_thread: InThread, clock: IReactorTime
    ) -> None:
        """
        @param root: the directory of the store.
        """
        self.all: list[JsonTable] = []
        self._files = files
        self._root = root
        self._in_thread = in_thread
        self._clock = clock

    def file(self, name: str, is_secret: bool = False) -> JsonTable:
        """The file of a table that has none yet.

        @param is_secret: nobody else may read it.
        """
        path = f"{self._root}/config/{name}"
        table = JsonTable(self._files, path, self._in_thread, self._clock, is_secret)
        self.all.append(table)
        return table

    def is_there(self, name: str) -> bool:
        """I{Blocking.} Whether a table has been written, by this broker or before."""
        path = f"{self._root}/config/{name}"
        return self._files.exists(path) or self._files.exists(f"{path}.bak")

    def problems(self) -> list[str]:
        """Sentences about files that could not be read."""
        return [file.problem for file in self.all if file.problem]

    def hurry(self) -> None:
        """Write what waits for the end of a pause now."""
        for file in self.all:
            file.hurry()

    def idle(self) -> Deferred[None]:
        """Fires when no file is being written."""
        idle = gatherResults([file.idle() for file in self.all])
        return idle.addCallback(lambda _: None)
