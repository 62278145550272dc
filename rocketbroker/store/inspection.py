# -*- test-case-name: tests.store.test_inspection -*-
"""What a store's directory holds: its files, queues and topics, and how it was left.

Rows are plain dictionaries, as the command line prints them: names of fields are the
columns of its tables and the keys of its JSON.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import FILLED_SIZE
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.checkpoint import Checkpoint
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.segments import segment_name

#: One line of an answer.
Row: TypeAlias = dict[str, object]

#: Is told that so many more entries of queues were looked at.
Passed: TypeAlias = Callable[[int], None]


def count(reader: StoreReader, topics: Iterable[str]) -> int:
    """How many messages topics have, for the time left."""
    return sum(
        between(reader, topic, queue_id, 0, None)
        for topic in topics
        for queue_id in reader.queues(topic)
    )


def between(
    reader: StoreReader, topic: str, queue_id: int, first: int, until: int | None
) -> int:
    """The same of a queue, or a part of it; see L{messages}."""
    end = reader.max_offset(topic, queue_id)
    start = max(first, reader.min_offset(topic, queue_id))
    return max(0, (end if until is None else min(end, until)) - start)


def state(files: IFiles, reader: StoreReader, root: str) -> Row:
    """How the directory was left, and up to when all is on the disk."""
    checkpoint = Checkpoint(files, root)
    checkpoint.load()
    abort = os.path.join(root, "abort")
    owner = files.read(abort).decode("ascii", "replace") if files.exists(abort) else ""
    return {
        "root": root,
        "stopped": "cleanly" if reader.is_clean else "not stopped, or by a crash",
        "abort": files.exists(abort),
        "owner": owner,
        "log_start": reader.segments[0].start if reader.segments else 0,
        "log_end": reader.log_end() if reader.is_live else None,
        "log_flushed_ms": checkpoint.physic_ms,
        "queues_flushed_ms": checkpoint.logics_ms,
        "index_flushed_ms": checkpoint.index_ms,
    }


def segments(reader: StoreReader) -> Iterator[Row]:
    """The files of the log."""
    for each in reader.segments:
        yield {
            "segment": segment_name(each.start),
            "bytes": each.end - each.start,
            "path": each.path,
        }


def sizes(
    reader: StoreReader, topic: str, queue_id: int, passed: Passed
) -> Iterator[int]:
    """The sizes of a queue's records."""
    at = reader.min_offset(topic, queue_id)
    end = reader.max_offset(topic, queue_id)
    while at < end:
        try:
            entries = reader.entries(topic, queue_id, at)[: end - at]
        except StoreError:
            after = reader.behind_removed(topic, queue_id, at)
            if after == at:
                raise
            at = after
            continue
        if not entries:
            break
        at += len(entries)
        for _, size, _ in entries:
            if size != FILLED_SIZE:
                yield size
        passed(len(entries))


def queues(reader: StoreReader, passed: Passed) -> Iterator[Row]:
    """All queues, with what they hold."""
    for topic in reader.topics():
        for queue_id in reader.queues(topic):
            first = reader.min_offset(topic, queue_id)
            end = reader.max_offset(topic, queue_id)
            yield {
                "topic": topic,
                "queue": queue_id,
                "first": first,
                "end": end,
                "messages": end - first,
                "bytes": sum(sizes(reader, topic, queue_id, passed)),
            }


def topic_figures(reader: StoreReader, topic: str, passed: Passed) -> Row:
    """How much a topic holds, and from when to when.

    Sizes are those of whole records, as they stand in the log. Times are those of the
    first and the last record that can be read.
    """
    messages = total = most = 0
    least = FILLED_SIZE
    times: list[int] = []
    for queue_id in reader.queues(topic):
        for size in sizes(reader, topic, queue_id, passed):
            messages += 1
            total += size
            least = min(least, size)
            most = max(most, size)
        first = reader.min_offset(topic, queue_id)
        end = reader.max_offset(topic, queue_id)
        for offset in {first, end - 1} if end > first else set():
            try:
                piece = reader.read(topic, queue_id, offset, offset + 1)
            except StoreError:
                continue
            times += [decode(record).store_ms for record in piece.records]
    return {
        "topic": topic,
        "queues": len(reader.queues(topic)),
        "messages": messages,
        "bytes": total,
        "least_size": least if messages else 0,
        "mean_size": total // messages if messages else 0,
        "most_size": most,
        "first_stored_ms": min(times, default=0),
        "last_stored_ms": max(times, default=0),
    }


def messages(
    reader: StoreReader, topic: str, queue_id: int, first: int, until: int | None
) -> Iterator[StoredMessage | StoreError]:
    """The messages of a queue; in the place of one that cannot be read, why.

    @param until: the offset behind the last; None: to the end of the queue.
    """
    at = max(first, reader.min_offset(topic, queue_id))
    end = reader.max_offset(topic, queue_id)
    if until is not None:
        end = min(end, until)
    while at < end:
        try:
            piece = reader.read(topic, queue_id, at, end)
        except StoreError as error:
            after = reader.behind_removed(topic, queue_id, at)
            if after == at:
                yield error
                after += 1
            at = after
            continue
        for record in piece.records:
            yield decode(record)
        at = piece.next_offset
