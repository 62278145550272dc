# -*- test-case-name: tests.cli.store.test_pops -*-
"""The open check points of POP in a store's directory.

They are messages of the revive topic, behind those that are worked off, and of the
timer topic, as long as they wait there. A check point is open until all its messages
are acknowledged or given out again.

C{docs/facts/transaction-timer-pop.md} C5, C8, C12.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, final

from rocketbroker.records.check_points import Ack, CheckPoint
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import REVIVE_PREFIX, TIMER_TOPIC
from rocketbroker.records.open_check_points import (
    OpenCheckPoint,
    OpenCheckPoints,
    read,
)
from rocketbroker.records.properties import REAL_QUEUE_ID, REAL_TOPIC
from rocketbroker.records.receipt_handle import ReceiptHandle, kind_of
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.pending_timers import PendingTimers
from rocketbroker.storetools.verify.report import Fault, Remark

#: So many faults are named.
_MAX_FAULTS: Final = 100

#: What is said of a message that is no check point: rows of one kind have the same
#: columns.
_BLANK: Final[inspect.Row] = dict.fromkeys(
    ("check_point", "group", "popped_topic", "popped_queue", "offsets", "handle")
    + ("revive_ms", "in_flight")
)


def revive_place(message: StoredMessage) -> tuple[str, int] | None:
    """The revive topic that a message is in or waits for, and the queue; None if it is
    another one's."""
    own = message.properties
    if message.topic.startswith(REVIVE_PREFIX):
        return message.topic, message.queue_id
    topic, queue = own.get(REAL_TOPIC, ""), own.get(REAL_QUEUE_ID, "")
    if message.topic != TIMER_TOPIC or not topic.startswith(REVIVE_PREFIX):
        return None
    return topic, int(queue) if queue.isdecimal() else 0


def handle_of(point: CheckPoint, queue: int) -> str:
    """The receipt handle of a check point, without the offset of a message.

    @param queue: the revive queue.
    """
    return ReceiptHandle(
        point.start_offset,
        point.pop_ms,
        point.invisible_ms,
        queue,
        kind_of(point.topic),
        point.broker_name,
        point.queue_id,
    ).text()


@final
class StoredCheckPoints:
    """The open check points of a directory."""

    def __init__(
        self,
        reader: StoreReader,
        timers: PendingTimers,
        committed: Mapping[tuple[str, int], int],
    ) -> None:
        """
        @param committed: the offset of the last message that is worked off, of each
            queue of a revive topic, as C{consumerOffset.json} has it.
        """
        self._reader = reader
        self._timers = timers
        self._committed = committed
        self._found: OpenCheckPoints | None = None
        self._malformed: list[tuple[int, str]] = []

    def _open(self) -> OpenCheckPoints:
        """The open check points, which are read when they are first asked for."""
        if self._found is not None:
            return self._found
        self._found = points = OpenCheckPoints()
        acks: list[Ack] = []
        for message in self._messages():
            try:
                each = read(message)
            except Malformed as error:
                self._malformed.append((message.position, str(error)))
                continue
            if isinstance(each, CheckPoint):
                points.add(each, message.queue_offset)
            elif each is not None:
                acks.append(each)
        names = {point.point.broker_name for point in points}
        for ack in acks:
            # One that names no broker means that which has written it.
            any(points.end(ack, name) for name in names)
        for point in [point for point in points if not point.left()]:
            points.close(point)
        return points

    def _messages(self) -> Iterator[StoredMessage]:
        """Check points and acknowledgements that are not worked off."""
        for topic in inspect.topics(self._reader):
            if not topic.startswith(REVIVE_PREFIX):
                continue
            for queue in inspect.queue_ids(self._reader, topic):
                first = self._committed.get((topic, queue), -1) + 1
                for each in inspect.messages(self._reader, topic, queue, first, None):
                    if isinstance(each, StoredMessage):
                        yield each
        yield from self._timers.waiting(REVIVE_PREFIX)

    def rows(self) -> Iterator[inspect.Row]:
        """A row for each group and topic with messages in flight."""
        table: dict[tuple[str, str], list[OpenCheckPoint]] = {}
        for each in self._open():
            table.setdefault((each.point.group, each.point.topic), []).append(each)
        for (group, topic), points in sorted(table.items()):
            due = [each.point.revive_ms for each in points]
            yield {
                "group": group,
                "popped_topic": topic,
                "check_points": len(points),
                "in_flight": sum(len(each.left()) for each in points),
                "next_due_ms": min(due),
                "last_due_ms": max(due),
            }

    def more(self, message: StoredMessage) -> inspect.Row:
        """What is known of a message of the revive topic or the topic of timers: if it
        is a check point or an acknowledgement, whose, the queue offsets that it names,
        of a check point its handle, when it is due, and what is still in flight."""
        topic = message.topic
        if topic != TIMER_TOPIC and not topic.startswith(REVIVE_PREFIX):
            return {}
        place = revive_place(message)
        try:
            found = None if place is None else read(message)
        except Malformed:
            return {**_BLANK, "check_point": "malformed"}
        if place is None or found is None:
            return dict(_BLANK)
        row: inspect.Row = {
            **_BLANK,
            "check_point": message.tags,
            "group": found.group,
            "popped_topic": found.topic,
            "popped_queue": found.queue_id,
        }
        if isinstance(found, Ack):
            return {**row, "offsets": list(found.offsets)}
        point = self._open().get(found.key)
        return {
            **row,
            "offsets": found.offsets(),
            "handle": handle_of(found, place[1]),
            "revive_ms": found.revive_ms,
            "in_flight": [] if point is None else point.left(),
        }

    def findings(self) -> Iterator[Fault | Remark]:
        """Check points that make no sense; and messages in flight that are not in their
        queue any more: they do not come again."""
        points = self._open()
        for position, text in self._malformed[:_MAX_FAULTS]:
            yield Fault("check_point", self._reader.root, position, f"it is {text}")
        gone: Counter[tuple[str, str, int]] = Counter()
        for each in points:
            group, topic, queue = (
                each.point.group,
                each.point.topic,
                each.point.queue_id,
            )
            first, end = inspect.span(self._reader, topic, queue)
            left = [offset for offset in each.left() if not first <= offset < end]
            gone[group, topic, queue] += len(left)
        for (group, topic, queue), count in sorted((+gone).items()):
            what = "a message" if count == 1 else f"{count} messages"
            text = (
                f"{group} has {what} of {topic}/{queue} in flight, of which nothing is "
                "left: it gets none of them again"
            )
            yield Remark(self._reader.queue_path(topic, queue, 0), 0, text)
