# -*- test-case-name: tests.client.test_producer -*-
"""Outages: a server that is away is logged once, and once that it is back."""

from __future__ import annotations

import logging
from typing import Final, final

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Outages:
    """What one client cannot reach."""

    def __init__(self) -> None:
        self._away: set[str] = set()

    def failed(self, what: str, why: object) -> None:
        """It did not work; said the first time."""
        if what not in self._away:
            self._away.add(what)
            _log.warning("%s is away, and is tried again: %s", what, why)

    def worked(self, what: str) -> None:
        """It works; said if it did not before."""
        if what in self._away:
            self._away.discard(what)
            _log.info("%s is back", what)
