# -*- test-case-name: tests.broker.admin.test_queue_tables -*-
"""Answers with an entry for each queue of a topic, which may have thousands.

Handles of queues are made in the reactor's thread alone, or one queue might get two of
them: some at each step. What is read of the store and written as text is made in
threads, for as many queues at once as keep the reactor from its work for a millisecond
or two. The answer puts the texts together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, TypeVar, final

from rocketbroker.broker.background_work import InThread
from rocketbroker.remoting.cooperative_tasks import soon
from rocketbroker.remoting.interfaces import IConnection, ISlices
from rocketbroker.wire.fastjson import Written, dumps

P = TypeVar("P")
R = TypeVar("R")

#: A thread reads and writes about so many queues at once: one or two milliseconds, in
#: which it may keep the reactor from its work.
STEP_QUEUES: Final = 64


@final
class QueueTables:
    """Makes the parts of such answers."""

    def __init__(self, slices: ISlices, in_thread: InThread) -> None:
        self._slices = slices
        self._in_thread = in_thread

    async def places(
        self,
        connection: IConnection,
        topics: Iterable[tuple[str, int]],
        place: Callable[[str, int], P],
    ) -> list[P]:
        """What C{place} gives of each queue, some at each step.

        @param topics: names, each with how many queues it has.
        @param place: called with a topic and the number of a queue.
        """
        found: list[P] = []
        await soon(self._slices, connection, made_places(topics, place, found))
        return found

    async def read(self, places: Sequence[P], function: Callable[[P], R]) -> list[R]:
        """What C{function} gives of each place.

        @param function: I{blocking.} Reads the store, and writes JSON.
        """
        found: list[R] = []
        for at in range(0, len(places), STEP_QUEUES):
            step = partial(_mapped, function, places[at : at + STEP_QUEUES])
            found += await self._in_thread(step)
        return found


def made_places(
    topics: Iterable[tuple[str, int]], place: Callable[[str, int], P], found: list[P]
) -> Iterator[None]:
    """The steps of L{QueueTables.places}.

    @param found: gets the places.
    """
    for topic, count in topics:
        for number in range(count):
            found.append(place(topic, number))
            if len(found) % STEP_QUEUES == 0:
                yield


def _mapped(function: Callable[[P], R], places: Sequence[P]) -> list[R]:
    return [function(place) for place in places]


def entry_text(key: object, value: object) -> str:
    """A member of a JSON object, whose key may be an object, too."""
    return dumps({key: value}).decode()[1:-1]


def table_of(members: Sequence[str]) -> Written:
    """The JSON object with these members, in the order of their keys' texts."""
    return Written(["{", ",".join(sorted(members)), "}"])


def list_of(texts: Sequence[str]) -> Written:
    """The JSON array of these."""
    return Written(["[", ",".join(texts), "]"])
