# -*- test-case-name: tests.broker.stats.test_watermarks -*-
"""The watermark log: counts of requests that wait for the disk, and of messages that
wait for the dispatch.

RocketMQ writes nine lines each second to a log of their own, whether anything waits or
not. Here an operator reads one log, so a line stands for trouble: requests of which the
first has waited for L{SLOW_MS}, looked at each second, and messages that are not
dispatched, looked at each minute. The words are RocketMQ's, as scripts look for them.

docs/facts/broker.md 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, final

from twisted.logger import Logger

from rocketbroker.store.interfaces import IStore
from rocketbroker.wire.codes import RequestCode

#: Less is what a busy disk takes. It is half of what RocketMQ lets a send wait before
#: it refuses it (waitTimeMillsInSendQueue).
SLOW_MS: Final = 100


class WaitingCount(NamedTuple):
    """Requests of one kind that wait.

    @ivar name: as RocketMQ names their queue: C{"Send"}.
    @ivar size: how many there are.
    @ivar head_ms: for how many ms the first of them has waited.
    """

    name: str
    size: Callable[[], int]
    head_ms: Callable[[], int]


#: The names of families of requests that wait for threads or slices, by one request
#: code of each. Pulls are counted where they wait for their read.
FAMILIES: Final = {28: "Admin", 36: "Send Back", 37: "Transaction"}


class Family(Protocol):
    """A part of L{rocketbroker.broker.waiting_requests.WaitingRequests}."""

    code: RequestCode

    def size(self) -> int:
        """How many wait."""

    def waiting_ms(self) -> int:
        """For how many ms the first has waited."""


def of_families(families: Iterable[Family]) -> Iterator[WaitingCount]:
    """The families of requests that have a name."""
    for family in families:
        name = FAMILIES.get(family.code)
        if name is not None:
            yield WaitingCount(name, family.size, family.waiting_ms)


@final
class Watermarks:
    """Writes the lines of one broker."""

    _log = Logger()

    def __init__(self, store: IStore, waiting: Sequence[WaitingCount]) -> None:
        self._store = store
        self._waiting = waiting

    def look(self) -> None:
        """Log the requests that have waited for long; each second."""
        for name, size, head_ms in self._waiting:
            waited = head_ms()
            if waited >= SLOW_MS:
                self._log.info(
                    "[WATERMARK] {name} Queue Size: {size} SlowTimeMills: {waited}",
                    name=name,
                    size=size(),
                    waited=waited,
                )

    def look_behind(self) -> None:
        """Log how much is not dispatched; each minute."""
        behind = self._store.published_position - self._store.dispatched_position
        if behind > 0:
            self._log.info(
                "Dispatch task fall behind commit log {behind}bytes", behind=behind
            )
