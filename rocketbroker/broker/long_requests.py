# -*- test-case-name: tests.broker.test_long_requests -*-
"""Requests with long bodies that are worked on in slices, and the memory they hold.

Without slices one such request is in memory at a time. In slices all that have come
are, with what was read of them so far: their bodies are counted here, over all
connections, and what does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from typing import Any, Final, TypeVar, final

from twisted.internet.defer import Deferred

from rocketbroker.errors import SystemBusy
from rocketbroker.remoting.interfaces import ISlices
from rocketbroker.remoting.slices import soon
from rocketbroker.wire.command import Command

T = TypeVar("T")

#: How many bytes of bodies are worked on at once: 60 locks of ten thousand queues, of
#: half a megabyte each, or six of the longest lists of topics. As Python's values they
#: take up to ten times as much.
MAX_HELD: Final = 32 * 1024 * 1024


@final
class LongRequests:
    """All that are worked on.

    @ivar held: the bytes of their bodies.
    @ivar refused: how many were refused.
    """

    def __init__(self, slices: ISlices) -> None:
        self.held = 0
        self.refused = 0
        self._slices = slices

    def begin(
        self, request: Command, work: Coroutine[Deferred[Any], Any, T]
    ) -> Deferred[T]:
        """Work on a request.

        @param work: reads its body.
        @return: fires with what C{work} returns.
        @raise SystemBusy: those that are worked on are too large.
        """
        size = len(request.body)
        if self.held and self.held + size > MAX_HELD:
            work.close()
            self.refused += 1
            raise SystemBusy(
                f"requests of {self.held} bytes are worked on, at most {MAX_HELD}: "
                "ask again later"
            )
        self.held += size
        return Deferred.fromCoroutine(work).addBoth(self._ended, size)

    def go_on(self, owner: object, work: Iterator[None]) -> Deferred[None]:
        """Do what is left of a request that has had its effect, however long that
        waits: its answer is to say so."""
        return soon(self._slices, owner, work)

    def _ended(self, result: T, size: int) -> T:
        self.held -= size
        return result
