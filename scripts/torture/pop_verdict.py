"""What became of the messages of pop_kills.py.

A I{copy} of a message is a record of it in the topic or in the group's retry topic; its
level is how often it was revived. A I{part} is a message of a check point: what one
pop, or a change of an invisible time, has given out. The store has all copies and all
check points, also those whose answers were lost with a broker; the members know what
they have acknowledged in time.

What must not be: a message that never came, or was not acknowledged in the end; a copy
that was made before the time of a part that it comes from, or though all such parts had
been acknowledged in time; a timer before its time.

What the design of RocketMQ allows is counted: an acknowledged message comes back by
a part that nobody has acknowledged, as its answer was lost; by a group's offset that
was not written down before the kill, so that messages are I{popped again}; by the
revive offset, likewise, so that they are I{revived again}; and by a timer's checkpoint
(I{delivered again}), which ours makes good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from rocketbroker.records.check_points import (
    ACK_TAG,
    BATCH_ACK_TAG,
    CHECK_POINT_TAG,
    Ack,
    CheckPoint,
)
from rocketbroker.records.names import TIMER_TOPIC, pop_retry_topic, revive_topic
from rocketbroker.records.properties import TAGS
from rocketbroker.records.receipt_handle import NORMAL, ReceiptHandle
from rocketbroker.records.record import StoredMessage
from scripts.torture.harness import Life, stored

TOPIC: Final = "Killed"
QUEUES: Final = 4
GROUP: Final = "survivors"
RETRY_TOPIC: Final = pop_retry_topic(GROUP, TOPIC, False)
REVIVE_TOPIC: Final = revive_topic("DefaultCluster")
REVIVE_QUEUES: Final = 8

#: A recall that is answered so long before the message is due is in time.
RECALL_MS: Final = 1000


#: So long after their time brokers wait for acknowledgements.
GRACE_MS: Final = 2000

#: Later than anything.
NEVER_MS: Final = 1 << 63

#: A broker that was up for so long gives out again what was due before.
MAX_VISIBLE_MS: Final = 10_000

#: Figures of which the most counts.
VISIBLE_AGAIN: Final = "longest time until one was visible again"
LATE_TIMER: Final = "longest delay of a timer"


class Part(NamedTuple):
    """A message of a check point."""

    topic: str
    queue: int
    offset: int
    start: int
    pop_ms: int

    @classmethod
    def of(cls, handle: ReceiptHandle) -> Part:
        """The part that a handle names."""
        assert handle.offset is not None
        return cls(
            TOPIC if handle.kind == NORMAL else RETRY_TOPIC,
            handle.queue_id,
            handle.offset,
            handle.start_offset,
            handle.pop_ms,
        )


class Got(NamedTuple):
    """A message that a member got, and when."""

    body: bytes
    part: Part
    at_ms: int


class Notes:
    """What members have done and seen.

    @ivar sent: what was acknowledged: body to when it is due, 0 at once.
    @ivar recalled: timers that were taken back, and when that was answered.
    @ivar maybe_recalled: those, and others where the answer is not known.
    @ivar got: what came.
    @ivar acked: what was acknowledged, or whose time was changed, and when that was
        answered.
    @ivar changed: how often a time was changed.
    @ivar refused: how many sends were.
    """

    def __init__(self) -> None:
        self.sent: dict[bytes, int] = {}
        self.recalled: dict[bytes, int] = {}
        self.maybe_recalled: set[bytes] = set()
        self.got: list[Got] = []
        self.acked: dict[Part, int] = {}
        self.changed = 0
        self.refused = 0

    def add(self, other: Notes) -> None:
        """What another one has noted."""
        self.sent |= other.sent
        self.recalled |= other.recalled
        self.maybe_recalled |= other.maybe_recalled
        self.got += other.got
        self.acked |= other.acked
        self.changed += other.changed
        self.refused += other.refused


class Verdict:
    """What was found.

    @ivar faults: what must not be, in sentences.
    @ivar counts: figures by their names; of those that begin with I{longest}, the most
        counts.
    """

    def __init__(self, store: Path, notes: Notes, lives: list[Life]) -> None:
        """
        @param store: of the stopped broker.
        """
        self.faults: list[str] = []
        self.counts: dict[str, int] = defaultdict(int)
        self._notes = notes
        self._lives = lives
        self._copies: dict[bytes, list[StoredMessage]] = defaultdict(list)
        self._got: dict[bytes, list[Got]] = defaultdict(list)
        for got in notes.got:
            self._got[got.body].append(got)
        self._parts: dict[tuple[str, int, int], dict[Part, int]] = defaultdict(dict)
        for topic, queues in ((TOPIC, QUEUES), (RETRY_TOPIC, 1)):
            for queue in range(queues):
                for message in stored(store, topic, queue):
                    self._copies[message.body].append(message)
        self._stored: set[Part] = set()
        self._read_check_points(store)
        self._count()
        for body in notes.sent.keys() | self._copies.keys():
            self._look_at(body)

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in self.counts.items())

    def _read_check_points(self, store: Path) -> None:
        # Those of the end wait for their time, in the topic of timers.
        places = [(REVIVE_TOPIC, queue) for queue in range(REVIVE_QUEUES)]
        for topic, queue in (*places, (TIMER_TOPIC, 0)):
            for message in stored(store, topic, queue):
                if message.properties.get(TAGS) == CHECK_POINT_TAG:
                    self._add_check_point(CheckPoint.decode(message.body))
                elif message.properties.get(TAGS) in (ACK_TAG, BATCH_ACK_TAG):
                    self._add_ack(Ack.decode(message.body))

    def _add_check_point(self, point: CheckPoint) -> None:
        for offset in point.offsets():
            place = point.topic, point.queue_id, offset
            part = Part(*place, point.start_offset, point.pop_ms)
            self._parts[place][part] = point.revive_ms

    def _add_ack(self, ack: Ack) -> None:
        for offset in ack.offsets:
            place = ack.topic, ack.queue_id, offset
            part = Part(*place, ack.start_offset, ack.pop_ms)
            self._stored.add(part)

    def _count(self) -> None:
        notes, counts = self._notes, self.counts
        timers = sum(1 for due_ms in notes.sent.values() if due_ms)
        counts["messages"] = len(notes.sent) - timers
        counts["timers"] = timers
        counts["recalled"] = len(notes.recalled)
        counts["popped"] = len(notes.got)
        counts["acknowledged"] = len(notes.acked)
        counts["changed invisible times"] = notes.changed
        for name in (
            "popped again, as an offset was not written down",
            "revived again, likewise",
            "timers delivered again",
            "acknowledged in time, and came back",
            "acknowledged late, and taken",
            VISIBLE_AGAIN,
            LATE_TIMER,
            "timers recalled in time that came",
        ):
            counts[name] = 0

    def _late(self, name: str, due_ms: int, done_ms: int, least_ms: int) -> None:
        """Note how late something was.

        @param least_ms: a broker that did not live so long after it was due, or after
            its start, did not have the time for it.
        """
        begin_ms = next(
            max(due_ms, life.up_ms)
            for life in self._lives
            if life.killed_ms - max(due_ms, life.up_ms) > least_ms
        )
        self.counts[name] = max(self.counts[name], done_ms - begin_ms)

    def _parts_of(self, copy: StoredMessage) -> dict[Part, int]:
        return self._parts[copy.topic, copy.queue_id, copy.queue_offset]

    def _look_at(self, body: bytes) -> None:
        """Judge one message."""
        levels: dict[int, list[StoredMessage]] = defaultdict(list)
        for copy in self._copies[body]:
            levels[copy.reconsume_times].append(copy)
        self.faults += [f"{body!r}: {words}" for words in self._wrong(body, levels)]

    def _wrong(
        self, body: bytes, levels: dict[int, list[StoredMessage]]
    ) -> Iterator[str]:
        notes, counts = self._notes, self.counts
        first = levels[0]
        if body in notes.recalled and first:
            due_ms = notes.sent[body]
            if notes.recalled[body] < due_ms - RECALL_MS:
                counts["timers recalled in time that came"] += 1
                yield f"came, though it was recalled {due_ms - notes.recalled[body]} ms"
        elif body in notes.sent and body not in notes.maybe_recalled and not first:
            yield "is lost"
        yield from self._wrong_timer(notes.sent.get(body, 0), first)
        for level in sorted(levels):
            yield from self._wrong_level(levels[level], levels.get(level + 1, []))
        in_time = [
            notes.acked[part]
            for _, part, _ in self._got[body]
            if part in notes.acked and notes.acked[part] < self._due_ms(part)
        ]
        # One that a broker took when it still waited: it did not give it out again.
        late = any(
            notes.acked.get(part, NEVER_MS) < self._due_ms(part) + GRACE_MS
            for _, part, _ in self._got[body]
        )
        if first and not in_time and late:
            counts["acknowledged late, and taken"] += 1
        elif first and not in_time:
            life = "; ".join(self._life(body, levels))
            yield f"was never acknowledged in time: {life}"
        elif first:
            acked_ms = min(in_time)
            back = [got for got in self._got[body] if got.part.pop_ms > acked_ms]
            counts["acknowledged in time, and came back"] += bool(back)

    def _life(
        self, body: bytes, levels: dict[int, list[StoredMessage]]
    ) -> Iterator[str]:
        """All that is known of a message, its copies and their parts."""
        for level, copies in sorted(levels.items()):
            for copy in copies:
                place = f"{copy.topic}:{copy.queue_id}:{copy.queue_offset}"
                yield f"level {level} at {place} stored {copy.store_ms}"
                yield from (
                    f"{part} due {due_ms}, acknowledged {self._notes.acked.get(part)}"
                    for part, due_ms in self._parts_of(copy).items()
                )
        yield f"got {self._got[body]}; lives {self._lives[-3:]}"

    def _due_ms(self, part: Part) -> int:
        """When a part comes again; of one that was acknowledged in memory it is not
        known."""
        return self._parts[part.topic, part.queue, part.offset].get(part, 1 << 62)

    def _acked(self, copies: list[StoredMessage]) -> Iterator[tuple[int, Part]]:
        """The parts of copies that were acknowledged in time, and when."""
        acked = self._notes.acked
        for copy in copies:
            for part, due_ms in self._parts_of(copy).items():
                if part in acked and acked[part] < due_ms:
                    yield acked[part], part

    def _wrong_timer(self, due_ms: int, first: list[StoredMessage]) -> Iterator[str]:
        if not first:
            return
        times = sorted(copy.store_ms for copy in first)
        if due_ms and times[0] < due_ms:
            yield f"a timer came {due_ms - times[0]} ms before its time"
        elif due_ms:
            self._late(LATE_TIMER, due_ms, times[0], 2000)
        if len(times) > 1:
            self.counts["timers delivered again"] += 1
            yield f"stands in its topic {len(times)} times, at {times}"

    def _wrong_level(
        self, copies: list[StoredMessage], revived: list[StoredMessage]
    ) -> Iterator[str]:
        """Judge the copies of a level, by those that were made of them."""
        acked = {part for _, part in self._acked(copies)}
        open_ms: list[int] = []
        # Without those whose acknowledgement is there, but was not answered, or may
        # have come a little too late.
        due_ms: list[int] = []
        for copy in copies:
            parts = self._parts_of(copy)
            # A change of the invisible time makes a part of the same message.
            popped = [part for part in parts if not self._is_change(part, parts)]
            self.counts["popped again, as an offset was not written down"] += max(
                0, len(popped) - 1
            )
            open_ms += [ms for part, ms in parts.items() if part not in acked]
            due_ms += [ms for part, ms in parts.items() if part not in self._stored]
        if len(revived) > len(open_ms):
            if not open_ms:
                yield f"was revived, though acknowledged in time by {sorted(acked)}"
            self.counts["revived again, likewise"] += len(revived) - len(open_ms)
        done_ms = min((copy.store_ms for copy in revived), default=1 << 62)
        if open_ms and done_ms < min(open_ms):
            yield f"was revived {min(open_ms) - done_ms} ms before its time"
        if due_ms and revived:
            self._late(VISIBLE_AGAIN, min(due_ms), done_ms, 6000)
        elif due_ms and min(due_ms) < self._lives[-1].killed_ms - MAX_VISIBLE_MS:
            yield "was not given out again"

    def _is_change(self, part: Part, parts: dict[Part, int]) -> bool:
        """Whether a check point was made by a change of an earlier one's time."""
        return part.start == part.offset and any(
            part.pop_ms > other.pop_ms
            and self._notes.acked.get(other, 0) >= part.pop_ms - 1
            for other in parts
        )
