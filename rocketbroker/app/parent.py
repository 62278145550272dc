# -*- test-case-name: tests.app.test_parent -*-
"""The parent of a server's process, which a server can end with.

The kernel could send a signal when the parent dies (C{PR_SET_PDEATHSIG}); it sends that
already when only the parent's I{thread} ends that started the server, as threads of
test runners do. So the number of the parent is looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

from twisted.internet.error import ReactorNotRunning
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

#: How often it is looked at.
LOOK_SECONDS: Final = 0.25


@final
class ParentWatch:
    """Looks whether the parent is still there."""

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        parent_id: Callable[[], int],
        stop: Callable[[], object],
    ) -> None:
        """
        @param parent_id: the parent's process number now; another one when the first
            is gone.
        @param stop: stops the server; called once.
        """
        self._clock = clock
        self._parent_id = parent_id
        self._stop = stop
        self._parent = parent_id()

    def look(self) -> None:
        """Look now, and again and again."""
        if self._parent_id() == self._parent:
            self._clock.callLater(LOOK_SECONDS, self.look)
            return
        self._log.info(
            "The parent, process {parent}, is gone: this server stops "
            "(--exit-with-parent).",
            parent=self._parent,
        )
        # Not if it stops already: a parent may end its server, and then itself.
        with suppress(ReactorNotRunning):
            self._stop()
