# -*- test-case-name: tests.store.dispatch.test_replaying -*-
"""Replay: adds many records of the log to their queues at once: after a stop that was
not clean, and of a master.

Ordinary here are records that L{rocketbroker.store.commitlog.ordinary} can take, of
queues that are known, neither delayed nor for a batch queue.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.codec.received import ReceivedRun
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.names import SCHEDULE_TOPIC_BYTES
from rocketbroker.records.sysflags import INNER_BATCH, TRANSACTION_PREPARED
from rocketbroker.store.commitlog.batch_records import LMQ_MARK
from rocketbroker.store.commitlog.ordinary import QueueRun, collect
from rocketbroker.store.commitlog.scanner import NO_CRC, RECORD_CRC
from rocketbroker.store.consumequeue.queue import Queue

#: Half messages and those that were rolled back stand in no queue.
_UNUSUAL: Final = TRANSACTION_PREPARED | INNER_BATCH


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
        if queue is None or not _is_plain(queue, position):
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


def take_run(
    run: ReceivedRun,
    known: dict[tuple[bytes, int], Queue],
    touched: list[Queue],
    has_lmqs: bool,
) -> bool:
    """Collect the entries of a run of records of a master, if they are ordinary and the
    next in their queue.

    @param known: as for L{replay}, and C{touched}.
    @param has_lmqs: whether messages for LMQs are not ordinary.
    @return: whether it was so; else nothing was done.
    """
    queue = known.get((run.topic, run.queue_id))
    if queue is None or run.sys_flag & _UNUSUAL:
        return False
    if not _is_plain(queue, run.positions[0]):
        return False
    if has_lmqs and any(LMQ_MARK in each for each in run.properties):
        return False
    pending = queue.pending
    expected = queue.max_offset
    if pending:
        expected = queue.pending_offset + len(pending)
    if run.queue_offset != expected:
        return False
    if not pending:
        touched.append(queue)
        queue.pending_offset = expected
    pending += run.entries
    queue.pending_codes += run.codes
    queue.pending_end = run.end
    return True


def _is_plain(queue: Queue, position: int) -> bool:
    """Whether a queue takes records from a position on as they come."""
    if queue.batch or queue.extension or queue.topic_bytes == SCHEDULE_TOPIC_BYTES:
        return False
    return position >= max(queue.from_position, queue.max_position)
