# -*- test-case-name: tests.broker.test_long_requests -*-
"""Requests with long bodies that are read and worked on in slices, and the memory that
they hold.

Without slices one such request is in memory at a time. In slices all that have come
are, with what was read of them so far: their bodies are counted here, over all
connections, and what does not fit is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, TypeVar, final

from twisted.internet.defer import Deferred

from rocketbroker.broker.json_bodies import (
    ENTRY_OBJECTS,
    body_in_steps,
    check_count,
    check_size,
    decoded,
    unreadable,
)
from rocketbroker.errors import RemoteProtocolError, SystemBusy
from rocketbroker.remoting.cooperative_tasks import result_of, soon
from rocketbroker.remoting.interfaces import ISlices
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import MAX_LENIENT_TURN_BODY
from rocketbroker.wire.fields import Fields

T = TypeVar("T")

#: How many bytes of bodies are worked on at once: 60 locks of ten thousand queues, of
#: half a megabyte each, or six of the longest lists of topics. As Python's values they
#: take up to ten times as much.
MAX_HELD: Final = 32 * 1024 * 1024

#: The members that a body may have beside its list: real ones have ten, and lenient
#: look-ups see all at once.
MAX_MEMBERS: Final = 100


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

    async def read(
        self,
        owner: object,
        request: Command,
        from_json: Callable[[object], T],
        entries: int,
        objects: int = ENTRY_OBJECTS,
    ) -> T:
        """The value in the body of a request with a list: a short body is read now, and
        a longer one in slices.

        @param from_json: leaves the entries as they are; it raises
            RemoteProtocolError for a value of another form.
        @param entries: how many the list may have: rocketbrokerMaxRequestEntries.
        @param objects: how many objects and arrays each may have.
        @raise SystemFailure: there is no such body, or it is too long.
        """

        def value_of(value: object) -> T:
            if isinstance(value, dict) and len(value) > MAX_MEMBERS:
                raise RemoteProtocolError(f"more than {MAX_MEMBERS} members")
            return from_json(value)

        max_values = check_size(request, entries, objects)
        if len(request.body) <= MAX_LENIENT_TURN_BODY:
            return decoded(request, value_of)
        steps = body_in_steps(request, max_values)
        value = await result_of(self._slices, owner, steps)
        try:
            return value_of(value)
        except RemoteProtocolError as error:
            raise unreadable(error) from error

    async def entries(
        self,
        owner: object,
        request: Command,
        name: str,
        what: str,
        most: int,
        objects: int = ENTRY_OBJECTS,
    ) -> list[object]:
        """The list in the body of a request, its entries as they were read.

        @param name: of the member that holds it.
        @param what: the entries are, for the error.
        @param most: rocketbrokerMaxRequestEntries.
        @param objects: how many objects and arrays each may have.
        @raise SystemFailure: there is no such list, or it is longer.
        """

        def items(value: object) -> list[object]:
            return Fields(value, f"a list of {what}").items(name)

        entries = await self.read(owner, request, items, most, objects)
        check_count(len(entries), what, most)
        return [entry for entry in entries if entry is not None]

    def go_on(self, owner: object, work: Iterator[None]) -> Deferred[None]:
        """Do what is left of a request that has had its effect, however long that
        waits: its answer is to say so."""
        return soon(self._slices, owner, work)

    def _ended(self, result: T, size: int) -> T:
        self.held -= size
        return result
