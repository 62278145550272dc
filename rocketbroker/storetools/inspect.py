# -*- test-case-name: tests.storetools.test_inspect -*-
"""The contents of a store's directory: files, queues and topics, and its last stop.

Rows are plain dictionaries, as the command line prints them: names of fields are the
columns of its tables and the keys of its JSON.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from rocketbroker.errors import StoreError
from rocketbroker.records.batches import unwrap
from rocketbroker.records.entries import FILLED_SIZE, SIZE
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.records.record import StoredMessage, decode
from rocketbroker.store.commitlog.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.scanner import MAX_OFFSET
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.table import FOLDER as QUEUES
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader

#: One line of an answer.
Row: TypeAlias = dict[str, object]

#: Is given the number of queue entries that were looked at since the last call.
Passed: TypeAlias = Callable[[int], None]


def topics(reader: StoreReader) -> list[str]:
    """All topics, with ordinary queues and with batch queues."""
    return sorted({*reader.topics(), *reader.topics(BATCHES)})


def queue_ids(reader: StoreReader, topic: str) -> list[int]:
    """The numbers of a topic's queues, in order."""
    if "/" in topic or topic in ("", ".", ".."):
        return []
    return sorted({*reader.queues(topic), *reader.queues(topic, BATCHES)})


def batches(reader: StoreReader, topic: str, queue_id: int) -> BatchQueueReader | None:
    """A queue if it is a batch queue."""
    if queue_id in reader.queues(topic):
        return None
    return BatchQueueReader(reader, topic, queue_id)


def span(reader: StoreReader, topic: str, queue_id: int) -> tuple[int, int]:
    """The offsets of the first message of a queue, and behind the last one."""
    found = batches(reader, topic, queue_id)
    if found is not None:
        return found.span()
    return reader.min_offset(topic, queue_id), reader.max_offset(topic, queue_id)


def gaps(reader: StoreReader, some: Iterable[str]) -> Iterator[str]:
    """Sentences about files that are missing between others: of the log, and of the
    queues of some topics."""
    if reader.log.gaps() and not reader.is_clean:
        # A broker may have removed them one after the other, while they were listed.
        reader.log = reader.log.again()
    for start, end, path in reader.log.gaps():
        yield f"{path} is missing: the log has nothing from position {start} to {end}."
    for topic in some:
        for queue_id in queue_ids(reader, topic):
            yield from _missing_files(reader, topic, queue_id)


def _missing_files(reader: StoreReader, topic: str, queue_id: int) -> Iterator[str]:
    """Sentences about files of a queue that are missing between others."""
    is_batch = batches(reader, topic, queue_id) is not None
    kind, unit = (BATCHES, BATCH_SIZE) if is_batch else (QUEUES, SIZE)
    for path in reader.row(kind, topic, queue_id, unit).missing():
        yield f"{path} is missing: messages with entries in it are not found."


def count(reader: StoreReader, some: Iterable[str]) -> int:
    """The number of messages of some topics, for the time left."""
    return sum(
        between(reader, topic, queue_id, 0, None)
        for topic in some
        for queue_id in queue_ids(reader, topic)
    )


def between(
    reader: StoreReader, topic: str, queue_id: int, first: int, until: int | None
) -> int:
    """The number of messages of a queue, or a part of it; see L{messages}."""
    start, end = span(reader, topic, queue_id)
    return max(0, (end if until is None else min(end, until)) - max(first, start))


def state(reader: StoreReader) -> Row:
    """The last stop of the store, and the times up to which all is on the disk."""
    files, root = reader.files, reader.root
    checkpoint = Checkpoint(files, root)
    path = os.path.join(root, CHECKPOINT)
    with contextlib.suppress(StoreError), reader.unread.naming(path):
        checkpoint.load()
    abort = os.path.join(root, "abort")
    owner = files.read(abort).decode("ascii", "replace") if files.exists(abort) else ""
    return {
        "root": root,
        "stopped": "cleanly" if reader.is_clean else "not stopped, or by a crash",
        "abort": files.exists(abort),
        "owner": owner,
        "log_start": reader.lowest,
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
) -> Iterator[tuple[int, int]]:
    """The sizes of a queue's records, and how many messages each has."""
    found = batches(reader, topic, queue_id)
    if found is not None:
        for unit in found.units():
            yield unit.size, unit.messages
            passed(unit.messages)
        return
    at, end = span(reader, topic, queue_id)
    while at < end:
        try:
            entries = reader.entries(topic, queue_id, at)[: end - at]
        except StoreError:
            after = reader.behind_removed(topic, queue_id, at)
            at = after if after > at else reader.behind_file(topic, queue_id, at)
            continue
        if not entries:
            break
        at += len(entries)
        for _, size, _ in entries:
            if 0 < size != FILLED_SIZE:
                yield size, 1
        passed(len(entries))


def queues(reader: StoreReader, passed: Passed) -> Iterator[Row]:
    """All queues, with what they hold."""
    for topic in topics(reader):
        for queue_id in queue_ids(reader, topic):
            first, end = span(reader, topic, queue_id)
            yield {
                "topic": topic,
                "queue": queue_id,
                "first": first,
                "end": end,
                "messages": end - first,
                "bytes": sum(
                    each for each, _ in sizes(reader, topic, queue_id, passed)
                ),
            }


def topic_figures(reader: StoreReader, topic: str, passed: Passed) -> Row:
    """The number and the size of a topic's messages, and their first and last time.

    Sizes are those of whole records, as they stand in the log. Times are those of the
    first and the last record that can be read.
    """
    messages = records = total = most = 0
    least = FILLED_SIZE
    times: list[int] = []
    for queue_id in queue_ids(reader, topic):
        for size, several in sizes(reader, topic, queue_id, passed):
            records += 1
            messages += several
            total += size
            least = min(least, size)
            most = max(most, size)
        times += _times(reader, topic, queue_id)
    return {
        "topic": topic,
        "queues": len(queue_ids(reader, topic)),
        "messages": messages,
        "bytes": total,
        "least_size": least if records else 0,
        "mean_size": total // records if records else 0,
        "most_size": most,
        "first_stored_ms": min(times, default=0),
        "last_stored_ms": max(times, default=0),
    }


def _times(reader: StoreReader, topic: str, queue_id: int) -> Iterator[int]:
    """The store times of the first and the last record of a queue."""
    found = batches(reader, topic, queue_id)
    if found is not None:
        yield from (unit.store_ms for unit in found.units())
        return
    first, end = span(reader, topic, queue_id)
    for offset in {first, end - 1} if end > first else set():
        try:
            piece = reader.read(topic, queue_id, offset, offset + 1)
        except StoreError:
            continue
        yield from (decode(record).store_ms for record in piece.records)


def messages(
    reader: StoreReader, topic: str, queue_id: int, first: int, until: int | None
) -> Iterator[StoredMessage | StoreError]:
    """The messages of a queue; in the place of one that cannot be read, the error.

    @param until: the offset behind the last; None: to the end of the queue.
    """
    stop = MAX_OFFSET if until is None else until
    found = batches(reader, topic, queue_id)
    if found is not None:
        yield from map(StoreError, _missing_files(reader, topic, queue_id))
        yield from _unwrapped(reader, found, f"{topic}/{queue_id}", first, stop)
        return
    start, end = span(reader, topic, queue_id)
    yield from _entered(reader, topic, queue_id, max(first, start), min(end, stop))


def _entered(
    reader: StoreReader, topic: str, queue_id: int, at: int, end: int
) -> Iterator[StoredMessage | StoreError]:
    """The messages of a queue that is no batch queue."""
    while at < end:
        try:
            piece = reader.read(topic, queue_id, at, end)
        except StoreError as error:
            after = reader.behind_removed(topic, queue_id, at)
            if after == at:
                after, why = _behind_missing(reader, topic, queue_id, at, end)
                yield why or error
            at = after
            continue
        for record in piece.records:
            yield decode(record)
        at = piece.next_offset


def _behind_missing(
    reader: StoreReader, topic: str, queue_id: int, at: int, end: int
) -> tuple[int, StoreError | None]:
    """The next offset behind a message that cannot be read. All messages whose records
    were in the same missing files of the log, or whose entries are in the same file
    that cannot be read, are reported at once.

    @return: the offset, and a sentence about them; None if it is one message.
    """
    first = at
    missing = ((start, behind) for start, behind, _ in reader.log.gaps())
    try:
        entries = reader.entries(topic, queue_id, at)
    except StoreError as error:
        at = min(reader.behind_file(topic, queue_id, at), end)
        return at, StoreError(
            f"Messages {first} to {at - 1} of {topic}/{queue_id} are not found: {error}"
        )
    position = entries[0][0] if entries else -1
    start, behind = next(
        ((low, high) for low, high in missing if low <= position < high), (0, 0)
    )
    if not behind:
        return at + 1, None
    while entries and at < end:
        for position, _, _ in entries[: end - at]:
            if not start <= position < behind:
                entries = []
                break
            at += 1
        else:
            entries = reader.entries(topic, queue_id, at)
    return at, StoreError(
        f"Messages {first} to {at - 1} of {topic}/{queue_id} cannot be read: the log "
        f"has no files from position {start} to {behind}."
    )


def _unwrapped(
    reader: StoreReader, files: BatchQueueReader, queue: str, first: int, until: int
) -> Iterator[StoredMessage | StoreError]:
    """The messages of batches."""
    for unit in files.units():
        if unit.end <= first or unit.base >= until:
            continue
        try:
            whole = decode(reader.record(unit.position, unit.size))
            parts = unwrap(whole)
        except (StoreError, Malformed) as error:
            if unit.position < reader.lowest and not reader.is_clean:
                # A broker that cleans its store has removed it.
                continue
            yield StoreError(
                f"Messages {unit.base} to {unit.end - 1} of {queue}, at position "
                f"{unit.position}, cannot be read: {error}."
            )
            continue
        yield from (each for each in parts if first <= each.queue_offset < until)
