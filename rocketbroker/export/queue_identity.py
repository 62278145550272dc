# -*- test-case-name: tests.export.test_queue_identity -*-
"""Messages that tell whether a queue is still the same one.

Topics have no id, and offsets begin at 0 in each. So whoever remembers offsets
remembers messages, too. One that is damaged tells nothing; then a neighbour does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rocketbroker.arrow.layout import Layout
from rocketbroker.arrow.message_identity import fingerprint_of
from rocketbroker.arrow.reading import RangeReader
from rocketbroker.export.plans import Mark
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import Origin

#: How many messages are looked at, one step after the other, for one that is whole. A
#: bad block of a disk spoils a few; where a file of the log is gone, nobody looks on.
STEPS: Final = (1, 15, 240)

#: All messages as they are stored, around what cannot be read.
TOLERANT: Final = ReadOptions(fail_on_data_loss=False)


def readable(origin: Origin, wanted: Range) -> Iterator[Layout]:
    """The messages of a range that can be read."""
    return RangeReader(origin, wanted, TOLERANT).layouts()


def mark_of(layout: Layout, row: int, broker: str) -> Mark:
    """What tells a message of a layout from others.

    @param row: its number, from 0.
    @param broker: the name of its broker.
    """
    offset = int(layout.front["queue_offset"][row])
    return Mark(offset, *fingerprint_of(layout, row, broker))


def mark_at(origin: Origin, queue: Queue, offset: int) -> Mark | None:
    """The mark of the message at an offset; None if it cannot be read."""
    return first_mark(origin, Range(queue, offset, offset + 1))


def first_mark(origin: Origin, wanted: Range) -> Mark | None:
    """The mark of the first message of a range that can be read; None if it is far."""
    start = wanted.start
    for step in STEPS:
        until = min(wanted.until, start + step)
        if start < until:
            for layout in readable(origin, Range(wanted.queue, start, until)):
                return mark_of(layout, 0, wanted.queue.broker)
        start = until
    return None


def last_mark(origin: Origin, wanted: Range) -> Mark | None:
    """The same of the last message."""
    until = wanted.until
    for step in STEPS:
        start = max(wanted.start, until - step)
        if start < until:
            layouts = [*readable(origin, Range(wanted.queue, start, until))]
            if layouts:
                last = layouts[-1]
                return mark_of(last, last.size - 1, wanted.queue.broker)
        until = start
    return None


def other_message(origin: Origin, queue: Queue, marks: tuple[Mark, ...]) -> str:
    """What shows that a queue is another one than the marked one.

    @param marks: some of its messages. Those that were removed or are damaged tell
        nothing.
    @return: the end of a sentence that begins with the queue; empty if nothing does.
    """
    first, end = origin.bounds(queue)
    for mark in marks:
        if mark.offset >= end:
            return f"ends at {end}, but had a message {mark.offset}"
        if mark.offset < first:
            continue
        found = mark_at(origin, queue, mark.offset)
        # Version 1 of the ledger has marks without an id.
        known = mark if mark.message_id else any_id(mark, found)
        if found is not None and found != known:
            return f"has another message {mark.offset} than it had"
    return ""


def any_id(mark: Mark, found: Mark | None) -> Mark:
    """A mark that takes any id."""
    return mark if found is None else mark._replace(message_id=found.message_id)
