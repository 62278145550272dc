# -*- test-case-name: tests.testing.simulation.test_model -*-
"""The model of a broker: what an answer may say after all that has happened.

It is told when each operation begins and ends; time is the number of such an event. An
operation takes effect at some moment between the two, so two that overlap may do so in
any order, and two that do not, in theirs.

A pull is answered from one generation of its topic (L{generations}), one that it can
have met. Of that generation the answer has each message that is settled, at its offset,
none twice, and no message that cannot be in it. Only the beginning of a queue may be
missing, where the log has lost its first segments, and whole segments at a time. The
deletion's answer is the border: what is sent behind it has to be seen, and what was
acknowledged before the request has not. A segment may also go while a pull with a
filter passes over its entries: what is missing then may not come back.

Messages are entered into their queues a little later than they are acknowledged, in the
order of the log. So a pull that is told that it has come to the end may lack the last
messages, but none that stands before one that was pulled already (L{Model.visible}).

A send that is refused as the broker is busy is stored nowhere.

RocketMQ: C{docs/facts/broker.md} 12.4, C{docs/facts/store.md} 7, 13 and 16.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, NamedTuple, final

from rocketbroker.testing.simulation.generations import (
    Generations,
    Known,
    QueueView,
)
from rocketbroker.testing.simulation.operations import (
    ASK_AGAIN,
    BUSY,
    DONE,
    INVALID_PARAMETER,
    MOVED,
    NOT_FOUND,
    TOPIC_NOT_EXIST,
    Answer,
    Create,
    Delete,
    Done,
    Found,
    Operation,
    Pull,
    Pulled,
    Send,
    Sent,
)

#: The codes of pulls of a queue that is there, and of one that is not.
_OF_PULLS: Final = frozenset((DONE, NOT_FOUND, ASK_AGAIN, MOVED, INVALID_PARAMETER))


class Begun(NamedTuple):
    """An operation that is under way.

    @ivar visible: what stands before it can be pulled.
    @ivar messages: those that it sends.
    """

    operation: Operation
    time: int
    visible: int
    messages: tuple[Known, ...] = ()


class Count(NamedTuple):
    """How many queues a topic got, in a request that began and ended then.

    @ivar is_certain: whether it did for certain.
    """

    begin: int
    end: int
    queues: int
    is_certain: bool


@final
class Topic:
    """What is known of one topic.

    @ivar generations: its deletions and messages.
    @ivar under_way: the operations on it, by ticket.
    """

    def __init__(self, auto_queues: int) -> None:
        """
        @param auto_queues: how many queues it has if a send makes it.
        """
        self._auto_queues = auto_queues
        self.generations = Generations()
        self.under_way: dict[int, Begun] = {}
        self.counts: list[Count] = []

    def oldest(self, now: int) -> int:
        """When the oldest operation on it began that is under way; without any, the
        next one begins behind C{now}."""
        return min((each.time for each in self.under_way.values()), default=now + 1)

    def has(self, *kinds: type[Operation]) -> bool:
        """Whether any operation of such kinds is under way on it."""
        return any(
            isinstance(each.operation, kinds) for each in self.under_way.values()
        )

    def may_be_absent(self, begin: int) -> bool:
        """Whether a request that began at a time, and is answered now, may have found
        no topic."""
        return self.generations.cuts[-1].present_since >= begin

    def is_absent(self, begin: int) -> bool:
        """Whether it can have found none."""
        cut = self.generations.cuts[-1]
        return cut.end < begin and not cut.may_be_present

    def queue_counts(self, begin: int) -> set[int]:
        """How many queues such a request may have found."""
        found = set()
        for begun in self.under_way.values():
            if isinstance(begun.operation, Create):
                found.add(begun.operation.queues)
            elif isinstance(begun.operation, Send) and self.may_be_absent(begun.time):
                found.add(self._auto_queues)
        for each in reversed(self.counts):
            found.add(each.queues)
            if each.is_certain and each.end < begin:
                break
        return found

    def counted(self, count: Count, oldest: int) -> None:
        """It got a number of queues."""
        self.counts.append(count)
        certain = [
            number
            for number, each in enumerate(self.counts)
            if each.is_certain and each.end < oldest
        ]
        if certain:
            del self.counts[: certain[-1]]


@final
class Model:
    """All that is known.

    @ivar topics: by name.
    @ivar now: how many events there were.
    @ivar log_end: the log does not end before.
    @ivar visible: what stands before this position is in its queue for certain. Who
        drives sets it to what L{log_end} was some time ago.
    """

    def __init__(self, segment_bytes: int, auto_queues: int) -> None:
        """
        @param segment_bytes: the size of a segment of the log.
        @param auto_queues: how many queues a topic has that a send makes.
        """
        self.topics: dict[str, Topic] = {}
        self.now = 0
        self._segment_bytes = segment_bytes
        self._auto_queues = auto_queues
        self.log_end = 0
        self.visible = 0
        self._sends = 0
        #: A segment was missing at that time; the log has no longer what is before.
        self._lost_at, self._lost_before = 0, 0
        self._tickets: dict[int, Begun] = {}

    def topic(self, name: str) -> Topic:
        """What is known of a topic."""
        return self.topics.setdefault(name, Topic(self._auto_queues))

    @property
    def under_way(self) -> int:
        """How many operations are under way."""
        return len(self._tickets)

    # Beginnings.

    def begin(self, operation: Operation) -> int:
        """An operation begins.

        @return: the ticket for L{end}.
        """
        self.now += 1
        begun = Begun(operation, self.now, self.visible)
        if isinstance(operation, Send):
            topic = self.topic(operation.topic)
            known = [
                Known(message, operation.queue_id, self.now)
                for message in operation.messages
            ]
            for each in known:
                topic.generations.sent(each)
            begun = begun._replace(messages=tuple(known))
            self._sends += 1
        elif isinstance(operation, Delete):
            topic = self.topic(operation.topic)
            may_be = topic.has(Send, Create)
            topic.generations.cut(self.now, self.log_end, may_be)
        elif isinstance(operation, Create):
            generations = self.topic(operation.topic).generations
            generations.cuts[-1].may_be_present = True
            if operation.is_batch:
                generations.batch.add(generations.now)
        self._tickets[self.now] = begun
        if isinstance(operation, Send | Pull | Delete | Create):
            self.topic(operation.topic).under_way[self.now] = begun
        return self.now

    # Ends.

    def end(self, ticket: int, answer: Answer) -> list[str]:
        """An operation is answered.

        @return: what is wrong with the answer, a sentence each.
        """
        self.now += 1
        begun = self._tickets[ticket]
        operation = begun.operation
        if isinstance(operation, Send):
            assert isinstance(answer, Sent)
            problems = self._sent(operation, begun, answer)
            self._sends -= 1
        elif isinstance(operation, Pull):
            assert isinstance(answer, Pulled)
            problems = self._pulled(operation, begun, answer)
        else:
            assert isinstance(answer, Done)
            problems = self._done(operation, begun, answer)
        del self._tickets[ticket]
        if isinstance(operation, Send | Pull | Delete | Create):
            topic = self.topic(operation.topic)
            del topic.under_way[ticket]
            if isinstance(operation, Delete):
                topic.generations.forget(topic.oldest(self.now))
        said = f"{answer._replace(found=())!r}" if isinstance(answer, Pulled) else ""
        return [f"{operation!r:.200}: {problem}; {said}" for problem in problems]

    def _done(self, operation: Operation, begun: Begun, answer: Done) -> list[str]:
        if answer.code != DONE:
            return [f"code {answer.code}"]
        if isinstance(operation, Delete):
            self.topic(operation.topic).generations.cuts[-1].end = self.now
        elif isinstance(operation, Create):
            topic = self.topic(operation.topic)
            self._is_present(topic, begun.time)
            count = Count(begun.time, self.now, operation.queues, True)
            topic.counted(count, topic.oldest(self.now))
        return []

    def _is_present(self, topic: Topic, begin: int) -> None:
        """A request that began at a time has made a topic, or has found it."""
        cut = topic.generations.cuts[-1]
        if cut.end < begin:
            cut.present_since = min(cut.present_since, self.now)

    def _sent(self, operation: Send, begun: Begun, answer: Sent) -> list[str]:
        topic = self.topic(operation.topic)
        for known in begun.messages:
            known.is_refused = answer.code != DONE
        if answer.code == BUSY:
            return []
        if answer.code != DONE:
            return [f"code {answer.code}"]
        if topic.may_be_absent(begun.time):
            # It has made the topic, if no other request has.
            is_certain = topic.generations.cuts[-1].end < begun.time
            count = Count(begun.time, self.now, self._auto_queues, is_certain)
            topic.counted(count, topic.oldest(self.now))
        self._is_present(topic, begun.time)
        problems = []
        positions = answer.positions
        if len(positions) == 1:
            positions *= len(begun.messages)
        places = zip(begun.messages, positions, strict=True)
        for number, (known, position) in enumerate(places):
            offset = answer.offset + number
            if known.offset >= 0 and (known.offset, known.position) != (
                offset,
                position,
            ):
                problems.append(
                    f"acknowledged at offset {offset}, position {position}, but pulled "
                    f"at {known.offset}, {known.position}"
                )
            known.offset, known.position, known.end = offset, position, self.now
            self.log_end = max(self.log_end, position + 1)
        for each in self.topics.values():
            is_news = each.generations.appended(begun.time, min(positions))
            if is_news or each is topic:
                problems += each.generations.settle()
        return problems

    # Pulls.

    def _pulled(self, operation: Pull, begun: Begun, answer: Pulled) -> list[str]:
        topic = self.topic(operation.topic)
        if answer.code == TOPIC_NOT_EXIST:
            if topic.may_be_absent(begun.time):
                return []
            return ["no topic, though it is there"]
        if answer.code not in _OF_PULLS:
            return [f"code {answer.code}"]
        if topic.is_absent(begun.time):
            return [f"code {answer.code}, though there is no topic"]
        counts = topic.queue_counts(begun.time)
        if answer.code == INVALID_PARAMETER:
            if min(counts, default=0) <= operation.queue_id:
                return []
            return ["no queue, though it is there"]
        if max(counts, default=self._auto_queues) <= operation.queue_id:
            return [f"code {answer.code}, though there is no such queue"]
        possible = topic.generations.possible(begun.time)
        problems = [
            self._problem(topic, generation, operation, begun, answer)
            for generation in possible
        ]
        if "" not in problems:
            return [", or ".join(problems)]
        if len(possible) == 1:
            view = topic.generations.queue(possible[0], operation.queue_id)
            view.told(self.now, answer.first, answer.end)
            self._note_lost(view, operation, answer)
        for found in answer.found:
            known = topic.generations.by_body[found.message.body]
            known.offset, known.position = found.offset, found.position
            self.log_end = max(self.log_end, found.position + 1)
            self.visible = max(self.visible, found.position + 1)
        return []

    def _note_lost(self, view: QueueView, operation: Pull, answer: Pulled) -> None:
        """Keep which segments an answer shows to be gone."""
        missing = _missing(view, operation, answer)
        last = max((self._segment(known) for known in missing), default=-1)
        before = (last + 1) * self._segment_bytes
        if before > self._lost_before:
            self._lost_at, self._lost_before = self.now, before

    def _problem(
        self,
        topic: Topic,
        generation: int,
        operation: Pull,
        begun: Begun,
        answer: Pulled,
    ) -> str:
        """Why an answer cannot be one from a generation; empty if it can."""
        stays = answer.next_offset == operation.offset
        if answer.code == ASK_AGAIN and operation.wait_ms and stays:
            # What it waited for is gone, or has changed.
            return "messages" if answer.found else ""
        view = topic.generations.queue(generation, operation.queue_id)
        limit = topic.generations.limit(generation, operation.queue_id)
        is_batch = generation in topic.generations.batch
        problem = self._range_problem(view, limit, is_batch, begun.time, answer)
        if problem:
            return problem
        offset, end, following = operation.offset, answer.end, answer.next_offset
        if answer.code == DONE:
            if begun.time > self._lost_at and any(
                found.position < self._lost_before for found in answer.found
            ):
                return f"messages before {self._lost_before}, where some are lost"
            return self._found_problem(topic, generation, operation, answer)
        if answer.found:
            return f"messages with code {answer.code}"
        due = view.due(begun.visible)
        is_at_end = answer.code == NOT_FOUND
        if answer.code == MOVED:
            wanted = answer.first if 0 <= offset < answer.first else end
            is_at_end = offset >= end
            if answer.first <= offset <= end and end:
                return f"moved from {offset}, which is in {answer.first} to {end}"
            if following != wanted:
                return f"moved to {following}, not to {wanted}"
        elif answer.code == NOT_FOUND:
            if offset != end and (end or offset):
                return f"nothing found at {offset}, and the queue ends at {end}"
        elif answer.code == ASK_AGAIN:
            if not offset <= following <= max(end, offset):
                return f"asked again at {following}, behind {offset} to {end}"
            return self._hidden(view, operation, answer)
        if is_at_end and due > end:
            return f"the end is {end}, but offset {due - 1} is visible"
        return ""

    def _range_problem(
        self, view: QueueView, limit: int, is_batch: bool, begin: int, answer: Pulled
    ) -> str:
        """Why a queue cannot have this range."""
        first, end = answer.first, answer.end
        if is_batch and (first, end) == (-1, 0):
            first = 0
        if not 0 <= first <= end:
            return f"a range from {first} to {end}"
        if end > limit:
            return f"the end is {end}, but no more than {limit} were sent"
        told = view.told_before(begin)
        if first < told[0] or end < told[1]:
            return f"{first} to {end} is told, but {told[0]} to {told[1]} was before"
        before, behind = view.settled.get(first - 1), view.settled.get(first)
        if before is not None:
            if not self._may_have_expired(before.position):
                return f"offset {first - 1} has expired, but it is in the last segment"
            if behind is not None and self._segment(before) == self._segment(behind):
                return f"offset {first - 1} has expired, but not all of its segment"
        return ""

    def _segment(self, known: Known) -> int:
        return known.position // self._segment_bytes

    def _may_have_expired(self, position: int) -> bool:
        """Whether the segment of a position may be gone: never the last one."""
        last = (self.log_end - 1) // self._segment_bytes
        number = position // self._segment_bytes
        # A send under way may have begun a segment.
        return number < last or (number == last and self._sends > 0)

    def _found_problem(
        self, topic: Topic, generation: int, operation: Pull, answer: Pulled
    ) -> str:
        """Why messages cannot be those from an offset on."""
        if not answer.found:
            return "found, but without a message"
        generations, offset = topic.generations, operation.offset
        is_batch = generation in generations.batch
        offsets = [each.offset for each in answer.found]
        for found in answer.found:
            problem = self._message_problem(generations, generation, operation, found)
            if problem:
                return problem
        first, last = offsets[0], offsets[-1]
        if operation.tags:
            if any(a >= b for a, b in pairwise(offsets)):
                return f"offsets {offsets}"
        elif offsets != [*range(first, last + 1)]:
            return f"offsets {offsets}"
        if (last if is_batch else first) < offset:
            return f"offsets from {first} on, before {offset}"
        following = answer.next_offset
        if following <= last or (not operation.tags and following != last + 1):
            return f"goes on at {following} behind {last}"
        if not answer.first <= first <= following <= answer.end:
            return (
                f"offsets {first} to {following}, in a queue from {answer.first} to "
                f"{answer.end}"
            )
        view = generations.queue(generation, operation.queue_id)
        return self._hidden(view, operation, answer)

    @staticmethod
    def _message_problem(
        generations: Generations, generation: int, operation: Pull, found: Found
    ) -> str:
        """Why a message cannot have been found."""
        body = found.message.body[:40]
        known = generations.by_body.get(found.message.body)
        if known is None:
            return f"{body!r} is deleted, or was never sent to this topic"
        if known.queue_id != operation.queue_id or known.message != found.message:
            return f"{body!r} was sent otherwise: to queue {known.queue_id}"
        if known.is_refused:
            return f"{body!r} was refused"
        place = known.offset, known.position
        if known.offset >= 0 and place != (found.offset, found.position):
            return f"{body!r} stands at {place}, not {found.offset, found.position}"
        if generation not in generations.of(known):
            return f"{body!r} is of generation {[*generations.of(known)]}"
        tag, is_batch = found.message.tag, generation in generations.batch
        if operation.tags and tag not in operation.tags and (tag or not is_batch):
            # A batch without a tag is given to all: its messages may have their own.
            return f"{body!r} with tag {tag!r} is not wanted"
        return ""

    def _hidden(self, view: QueueView, operation: Pull, answer: Pulled) -> str:
        """Which settled message is missing that cannot have expired."""
        for known in _missing(view, operation, answer):
            if not self._may_have_expired(known.position):
                body = known.message.body[:40]
                return f"{body!r}, acknowledged at offset {known.offset}, is hidden"
        return ""


def _missing(view: QueueView, operation: Pull, answer: Pulled) -> list[Known]:
    """The settled messages that a pull wanted, and passed over."""
    if answer.code not in (DONE, ASK_AGAIN):
        return []
    found = {each.offset for each in answer.found}
    passed = map(view.settled.get, range(operation.offset, answer.next_offset))
    return [
        known
        for known in passed
        if known is not None
        and known.offset not in found
        and (not operation.tags or known.message.tag in operation.tags)
    ]
