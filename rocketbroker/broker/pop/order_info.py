# -*- test-case-name: tests.broker.pop.test_order_info -*-
"""Order info: the messages that each group in order has been given, and which of them
it has consumed.

A group that consumes in order gets no further message of a queue before those that it
was given are acknowledged, or their time is over; then it is given the same again. So
there are no check points: one record for each queue of a group says what is out, and
the committed offset stays at the first message that is not acknowledged.

Records are kept in C{consumerOrderInfo.json}, which
L{rocketbroker.wire.bodies.consumer_order_info} describes.

C{docs/facts/transaction-timer-pop.md} C10; C{docs/facts/broker.md} 20.6, 26.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, final

from twisted.internet.defer import Deferred, succeed

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.pop.progress import Place
from rocketbroker.wire.bodies.consumer_order_info import MAX_OFFSETS, Given, read_table

#: A record that was not used for so long goes.
MAX_UNUSED_MS: Final = 24 * 3_600_000

#: Answers of L{OrderInfo.commit}: nothing that was given out is meant; it was given out
#: by another pop.
NOT_GIVEN: Final = -1
OUTDATED: Final = -2


@final
class OrderInfo:
    """The table of order records by queue and group.

    @ivar is_changed: whether the file is behind.
    """

    def __init__(self, file: JsonTable, wall_ms: Callable[[], int]) -> None:
        self.is_changed = False
        self._file = file
        self._wall_ms = wall_ms
        self._given: dict[Place, Given] = {}

    def load(self) -> None:
        """I{Blocking.} Read the file; what makes no sense in it is left out."""
        self._given.update(read_table(self._file.load() or {})[0])

    def free_ms(self, place: Place, attempt_id: str | None, invisible_ms: int) -> int:
        """When a group may be given more of a queue: not after now if it may.

        @param attempt_id: of the request: one that is repeated gets the same again.
        @param invisible_ms: stands for one that a record of an old broker lacks.
        """
        given = self._given.get(place)
        if given is None or (attempt_id and attempt_id == given.attempt_id):
            return 0
        if given.invisible_ms <= 0:
            given.invisible_ms = invisible_ms
        return given.free_ms()

    def give(
        self,
        place: Place,
        attempt_id: str | None,
        pop_ms: int,
        invisible_ms: int,
        offsets: Sequence[int],
    ) -> dict[int, int]:
        """Messages are given out.

        @return: how often each was given out before.
        """
        before = self._given.get(place)
        given = Given(attempt_id, pop_ms, invisible_ms, offsets[:MAX_OFFSETS])
        if before is not None and attempt_id and attempt_id == before.attempt_id:
            given.counts = dict(before.counts)
        elif before is not None:
            old = set(before.offsets)
            given.counts = {
                offset: before.counts.get(offset, 0) + 1
                for offset in given.offsets
                if offset in old
            }
        self._given[place] = given
        self.is_changed = True
        return {offset: given.counts.get(offset, 0) for offset in given.offsets}

    def commit(self, place: Place, offset: int, pop_ms: int) -> int:
        """A message is acknowledged.

        @return: the offset to commit; L{NOT_GIVEN} or L{OUTDATED}.
        """
        given = self._given.get(place)
        if given is None:
            return offset + 1
        if given.pop_ms != pop_ms:
            return OUTDATED
        if offset not in given.offsets:
            return NOT_GIVEN
        given.acked |= 1 << given.offsets.index(offset)
        given.used_ms = self._wall_ms()
        self.is_changed = True
        return given.next_offset()

    def delay(self, place: Place, offset: int, pop_ms: int, visible_ms: int) -> None:
        """A message is given out again at another time."""
        given = self._given.get(place)
        if given is not None and given.pop_ms == pop_ms and offset in given.offsets:
            given.visible_ms[offset] = visible_ms
            given.used_ms = self._wall_ms()
            self.is_changed = True

    def forget(self, place: Place) -> None:
        """A group goes on elsewhere: nothing is out any more."""
        if self._given.pop(place, None) is not None:
            self.is_changed = True

    def forget_all(self, is_gone: Callable[[str, str], bool]) -> None:
        """Forget groups and topics that are gone."""
        for place in [place for place in self._given if is_gone(*place[:2])]:
            self.forget(place)

    def clean(self, is_there: Callable[[str, str, int], bool]) -> None:
        """Forget what was not used for a day, and what is gone.

        @param is_there: whether a group, a topic and its queue still are.
        """
        oldest = self._wall_ms() - MAX_UNUSED_MS
        for place, given in list(self._given.items()):
            if given.used_ms < oldest or not is_there(*place):
                del self._given[place]
                self.is_changed = True

    def to_json(self) -> dict[str, object]:
        """The file."""
        table: dict[str, dict[int, dict[str, object]]] = {}
        for (group, topic, queue_id), given in self._given.items():
            table.setdefault(f"{topic}@{group}", {})[queue_id] = given.to_json()
        return {"table": table}

    def save(self) -> Deferred[None]:
        """Write the file in a thread, if it is behind."""
        if not self.is_changed and not self._file.failed:
            return succeed(None)
        self.is_changed = False
        return self._file.save_soon(self.to_json)

    def saved(self) -> Deferred[None]:
        """Fires when no write of the file is under way."""
        return self._file.idle()
