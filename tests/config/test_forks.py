"""Children of forks."""

from __future__ import annotations

import gc

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config import forks


class Watcher:
    """Counts."""

    def __init__(self, told: list[str]) -> None:
        self._told = told

    def forked(self) -> None:
        """One more."""
        self._told.append("forked")


class ForkTests(SynchronousTestCase):
    """Who watches is told, as long as it is needed."""

    def test_watchersAreToldAndNotKept(self) -> None:
        """Each time; one that nobody else has is gone."""
        told: list[str] = []
        watcher = Watcher(told)
        forks.watch(watcher)
        forks.watch(Watcher(told))
        gc.collect()
        forks.tell()
        forks.tell()
        self.assertEqual(told, ["forked"] * 2)
        del watcher
        gc.collect()
        forks.tell()
        self.assertEqual(told, ["forked"] * 2)
