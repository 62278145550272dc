# -*- test-case-name: tests.store.dispatch.test_replaying -*-
"""Replay: adds many records of the log to their queues at once, after a stop that was
not clean.

Ordinary here are records that L{rocketbroker.store.commitlog.ordinary} can take, of
queues that are known, neither delayed nor for a batch queue.
"""

from __future__ import annotations

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.names import SCHEDULE_TOPIC_BYTES
from rocketbroker.store.commitlog.ordinary import QueueRun, collect
from rocketbroker.store.commitlog.scanner import NO_CRC, RECORD_CRC
from rocketbroker.store.consumequeue.queue import Queue


def replay(
    data: bytes,
    at: int,
    start: int,
    check_crc: int,
    known: dict[tuple[bytes, int], Queue],
    touched: list[Queue],
) -> tuple[int, int, int]:
    """Collect the entries of the ordinary records from C{data[at:]} on.

    The tag codes of C{pending_codes} are left out: no reader waits for arrivals yet.
    Records that are entered already, or of a topic that was deleted, are not ordinary.

    @param start: the position of C{data} in the log.
    @param check_crc: which CRCs are checked; see
        L{rocketbroker.store.commitlog.scanner.parse}.
    @param known: queues by topic and id; a record of another is not ordinary.
    @param touched: where queues are noted that had nothing pending.
    @return: behind the last one taken, how many they were, and its store time.
    """
    opened: list[tuple[Queue, QueueRun, bool]] = []

    def run_of(key: tuple[bytes, int], position: int) -> QueueRun | None:
        queue = known.get(key)
        if queue is None or queue.batch or queue.topic_bytes == SCHEDULE_TOPIC_BYTES:
            return None
        if position < max(queue.from_position, queue.max_position):
            return None
        pending = queue.pending
        expected = queue.max_offset
        if pending:
            expected = queue.pending_offset + len(pending)
        run = QueueRun(pending, expected)
        opened.append((queue, run, not pending))
        return run

    check_own = check_crc == RECORD_CRC
    found = collect(data, at, start, check_crc != NO_CRC, run_of, check_own)
    for queue, run, was_empty in opened:
        if not run.entries:
            continue
        if was_empty:
            touched.append(queue)
            queue.pending_offset = run.expected - len(run.entries)
        position, size, _ = ENTRY.unpack(run.entries[-1])
        queue.pending_end = position + size
    return found
