# -*- test-case-name: tests.client.test_outages -*-
"""Outages: a server that is away is logged once, and once that it is back.

A session has several clients, each with connections of its own. What several of them
cannot reach is said once, and is back when all can reach it again.
"""

from __future__ import annotations

import logging
from typing import Final, final

#: What is away when no name server answers.
NAME_SERVER: Final = "the name server"

_log: Final = logging.getLogger("rocketbroker.client")


@final
class OutageBoard:
    """What the clients of one session cannot reach."""

    def __init__(self) -> None:
        self._away: dict[str, set[Outages]] = {}

    def add(self, what: str, client: Outages) -> bool:
        """A client cannot reach something; whether it is the first."""
        clients = self._away.setdefault(what, set())
        clients.add(client)
        return len(clients) == 1

    def remove(self, what: str, client: Outages) -> bool:
        """A client can reach it again; whether it was the last."""
        clients = self._away[what]
        clients.discard(client)
        if not clients:
            del self._away[what]
        return not clients


@final
class Outages:
    """What one client cannot reach.

    @ivar away: the names of all that.
    """

    def __init__(self, board: OutageBoard | None = None) -> None:
        self._board = board or OutageBoard()
        self._closed = False
        self.away: set[str] = set()

    def failed(
        self, what: str, why: object, words: str = "%s is away, and is tried again: %s"
    ) -> None:
        """It did not work; said the first time.

        @param words: how: a text with a place for each of the two.
        """
        if what not in self.away and not self._closed:
            self.away.add(what)
            if self._board.add(what, self):
                _log.warning(words, what, why)

    def worked(self, what: str) -> None:
        """It works; said if it did not before."""
        if what in self.away:
            self.away.discard(what)
            if self._board.remove(what, self):
                _log.info("%s is back", what)

    def close(self) -> None:
        """This client asks nobody any more; what fails then is not said."""
        self._closed = True
        away, self.away = self.away, set()
        for what in away:
            self._board.remove(what, self)
