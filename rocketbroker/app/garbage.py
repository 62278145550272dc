# -*- test-case-name: tests.app.test_garbage -*-
"""The garbage collector's schedule: at which times Python frees reference cycles.

A full collection looks at every container in the process. With the modules alone that
is 45,000 objects and 20 ms in which nobody is answered; with ten thousand topics it is
a quarter of a second. By default one runs whenever the survivors of the small
collections exceed a quarter of all objects, and what waits for a moment (a held pull, a
send on its way to the disk) survives those: so they come under load, and find nothing,
because what serves requests makes no cycles that live long.

Here:

  - none runs during the start, which makes everything that stays; programs disable them
    before they import the server: the classes of its modules would be looked at again
    and again, for 50 ms;
  - what is there after the start is frozen: no later collection looks at it;
  - small collections run after C{YOUNG} more containers are there than before, and
    every tenth of them looks at those of the last ten: some twenty thousand;
  - a full one runs when the process has grown: to half as much again, and by
    C{GROWTH_BLOCKS}, since the last. So topics that are created ten thousand at a time
    cost one, steady traffic none, and cycles that are missed do not fill the memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from rocketbroker.remoting.periodic import PeriodicCall

#: Containers made and not freed that begin a small collection. Python's own 700 would
#: call most messages of one large turn survivors.
YOUNG: Final = 2000

#: A full collection never begins by itself: not before so many of the middle ones.
NEVER: Final = 1 << 30

#: Growth below which no full collection is worth its time, in blocks of memory: an
#: object has one to three, of some sixty bytes each.
GROWTH_BLOCKS: Final = 1_000_000

#: How often the size of the process is looked at.
LOOK_SECONDS: Final = 60.0


class Collector(Protocol):
    """The part of the module C{gc} that is used here."""

    def disable(self) -> None:
        """Collect nothing by itself."""

    def enable(self) -> None:
        """Collect by itself."""

    def freeze(self) -> None:
        """Look at nothing any more that is there now."""

    def collect(self) -> int:
        """A full collection."""

    def set_threshold(self, young: int, middle: int, full: int, /) -> None:
        """When collections begin by themselves."""


@final
class Garbage:
    """The collections of a process.

    @ivar looking: looks at the size of the process, again and again.
    """

    _log = Logger()

    def __init__(
        self, clock: IReactorTime, collector: Collector, blocks: Callable[[], int]
    ) -> None:
        """
        @param blocks: how many blocks of memory are in use.
        """
        self._clock = clock
        self._collector = collector
        self._blocks = blocks
        self._limit = 0
        self.looking = PeriodicCall(clock, "look for garbage", self.look)

    def starting(self) -> None:
        """The start begins."""
        self._collector.disable()

    def started(self) -> None:
        """All that stays is there."""
        self._collector.freeze()
        self._collector.set_threshold(YOUNG, 10, NEVER)
        self._collector.enable()
        self._set_limit()
        self.looking.start(LOOK_SECONDS)

    def _set_limit(self) -> None:
        blocks = self._blocks()
        self._limit = blocks + max(blocks // 2, GROWTH_BLOCKS)

    def look(self) -> None:
        """Collect if the process has grown."""
        if self._blocks() < self._limit:
            return
        begin = self._clock.seconds()
        found = self._collector.collect()
        self._set_limit()
        self._log.info(
            "Memory has grown; a full collection freed {found} objects in {ms} ms.",
            found=found,
            ms=round((self._clock.seconds() - begin) * 1000),
        )
