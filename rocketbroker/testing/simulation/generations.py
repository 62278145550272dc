# -*- test-case-name: tests.testing.simulation.test_generations -*-
"""The generations of one topic, and the messages that each has.

A deletion is a I{cut} of the log at one position, somewhere between its request and its
answer: what stands before the cut is gone, what stands behind it is in the topic that
is made next. When requests overlap nobody can say at once on which side of a cut a
message is. These facts narrow it:

  - what was answered before the deletion began stands before the cut, and so does all
    that has a lower position than the end of the log that was known then
  - what was sent after the deletion was answered stands behind it, and so does all that
    has a higher position

So each message has a lowest and a highest generation. When both are one, and it was
acknowledged, it is I{settled}: it has to be pulled. Until then it may be.

Generation 0 is what was before the topic was first made, and has no messages.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, final

from rocketbroker.testing.simulation.operations import Message

#: Later than all events, and behind all positions.
NEVER: Final = 1 << 62


@final
class Known:
    """A message that was sent.

    @ivar begin: when.
    @ivar end: when that was answered.
    @ivar offset: where it stands, once an answer has said so; -1 before.
    @ivar position: the same, in the log.
    @ivar is_refused: whether the answer was that it is not stored.
    """

    __slots__ = (
        "begin",
        "end",
        "is_refused",
        "message",
        "offset",
        "position",
        "queue_id",
    )

    def __init__(self, message: Message, queue_id: int, begin: int) -> None:
        self.message = message
        self.queue_id = queue_id
        self.begin = begin
        self.end = NEVER
        self.offset = self.position = -1
        self.is_refused = False


@final
class Cut:
    """A deletion.

    @ivar low: what has a lower position stands before it.
    @ivar high: what has this position, or a higher one, stands behind it.
    @ivar present_since: when it was first certain that the topic is there again.
    @ivar may_be_present: whether anything may have made it again.
    """

    __slots__ = ("begin", "end", "high", "low", "may_be_present", "present_since")

    def __init__(self, begin: int, low: int) -> None:
        self.begin = begin
        self.end = NEVER
        self.low = low
        self.high = NEVER
        self.present_since = NEVER
        self.may_be_present = False


@final
class QueueView:
    """What is certain of one queue in one generation.

    @ivar settled: the messages that it has, by offset.
    """

    __slots__ = ("_offsets", "_positions", "_ranges", "settled")

    def __init__(self) -> None:
        self.settled: dict[int, Known] = {}
        #: Where they stand, in order.
        self._offsets: list[int] = []
        self._positions: list[int] = []
        #: The range that answers have told last: when, lowest offset, end.
        self._ranges: list[tuple[int, int, int]] = []

    def settle(self, known: Known) -> bool:
        """A message is certainly here; whether there is no other in its place."""
        other = self.settled.setdefault(known.offset, known)
        if other is known:
            at = bisect_left(self._offsets, known.offset)
            self._offsets.insert(at, known.offset)
            self._positions.insert(at, known.position)
        return other is known

    def due(self, position: int) -> int:
        """The offset behind the last message that stands before a position."""
        at = bisect_left(self._positions, position)
        return self._offsets[at - 1] + 1 if at else 0

    @property
    def end(self) -> int:
        """The offset behind the last one that is certain."""
        return self._offsets[-1] + 1 if self._offsets else 0

    def told(self, time: int, first: int, end: int) -> None:
        """An answer has told the range at a time."""
        if self._ranges:
            first = max(first, self._ranges[-1][1])
            end = max(end, self._ranges[-1][2])
        self._ranges.append((time, first, end))
        if len(self._ranges) > 1000:
            del self._ranges[:-100]

    def told_before(self, time: int) -> tuple[int, int]:
        """The highest first offset and end that were told before a time."""
        at = bisect_left(self._ranges, (time,))
        return self._ranges[at - 1][1:] if at else (-1, 0)


@final
class Generations:
    """All of one topic.

    @ivar cuts: its deletions; the first is the beginning of all.
    @ivar by_body: the messages that may still be in it, by their bodies.
    @ivar batch: the generations with batch queues.
    """

    def __init__(self) -> None:
        start = Cut(0, 0)
        start.end = start.high = 0
        self.cuts = [start]
        self.by_body: dict[bytes, Known] = {}
        self.batch: set[int] = set()
        self._queues: dict[tuple[int, int], QueueView] = {}
        self._loose: list[Known] = []

    @property
    def now(self) -> int:
        """The latest generation."""
        return len(self.cuts)

    def queue(self, generation: int, queue_id: int) -> QueueView:
        """One queue of one generation."""
        key = generation, queue_id
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = QueueView()
        return found

    def possible(self, begin: int) -> range:
        """The generations that a request may have found that began at a time, and is
        answered now."""
        lowest = self.now
        while lowest > 1 and self.cuts[lowest - 1].end >= begin:
            lowest -= 1
        return range(lowest, self.now + 1)

    def of(self, known: Known) -> range:
        """The generations in which a message may be."""
        lowest, highest, position = 1, self.now, known.position
        for number in range(self.now - 1, -1, -1):
            cut = self.cuts[number]
            is_behind = cut.end < known.begin
            if is_behind or (position >= 0 and position >= cut.high):
                lowest = number + 1
                break
            if known.end < cut.begin or 0 <= position < cut.low:
                highest = number
        return range(lowest, highest + 1)

    def sent(self, known: Known) -> None:
        """A message is sent."""
        self.by_body[known.message.body] = known
        self._loose.append(known)
        self.cuts[-1].may_be_present = True

    def cut(self, begin: int, low: int, may_be_present: bool) -> None:
        """A deletion begins.

        @param low: the end of the log that is known.
        @param may_be_present: whether requests are under way that may make it again.
        """
        cut = Cut(begin, low)
        cut.may_be_present = may_be_present
        self.cuts.append(cut)

    def appended(self, begin: int, position: int) -> bool:
        """A message of any topic, sent at a time, stands at a position; whether that
        tells anything of the cuts here."""
        is_news = False
        for cut in self.cuts[-3:]:
            if cut.end < begin and position < cut.high:
                cut.high = position
                is_news = True
        return is_news

    def settle(self) -> Iterator[str]:
        """Settle all messages that can be; tells of two in one place."""
        loose = []
        for known in self._loose:
            if known.is_refused:
                continue
            found = self.of(known)
            if not found:
                yield f"{known.message.body[:40]!r} stands at {known.position}, in none"
            elif known.end == NEVER or len(found) > 1:
                loose.append(known)
            else:
                view = self.queue(found[0], known.queue_id)
                if not view.settle(known):
                    other = view.settled[known.offset].message.body[:40]
                    yield (
                        f"{known.message.body[:40]!r} and {other!r} were acknowledged "
                        f"at the same offset {known.offset}"
                    )
        self._loose = loose

    def limit(self, generation: int, queue_id: int) -> int:
        """The queue cannot end behind this offset."""
        end = self.queue(generation, queue_id).end
        unknown = 0
        for known in self._loose:
            if known.queue_id != queue_id or generation not in self.of(known):
                continue
            if known.offset < 0:
                unknown += 1
            else:
                end = max(end, known.offset + 1)
        return end + unknown

    def forget(self, oldest: int) -> None:
        """Forget the generations that no request can find that began at a time or
        later."""
        keep = self.possible(oldest)[0]
        for generation, queue_id in [*self._queues]:
            if generation < keep:
                view = self._queues.pop((generation, queue_id))
                for known in view.settled.values():
                    self.by_body.pop(known.message.body, None)
        for known in self._loose:
            found = self.of(known)
            if known.end != NEVER and found and found[-1] < keep:
                self.by_body.pop(known.message.body, None)
        self._loose = [k for k in self._loose if k.message.body in self.by_body]
