# -*- test-case-name: tests.store.reading.test_checked_read -*-
"""The checked read: reads records that may be corrupt, with all checks.

Records that this process has appended are believed. Records from before the start, or
from the disk, are checked before they are handed out: that a record stands there, of
the size in its entry, with the right CRC of its body, and with the queue offset at
which its entry stands. One that fails is passed over, and those behind it are handed
out: it is counted, and reported once, with its position.

The same holds for a record that the disk has refused to read several times. Such
records are never read through a mapping: a process that touches a bad block there is
killed.

C{docs/facts/store.md} 3.4, 7.3 and 16.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, final

from rocketbroker.files.blocks import UNREADABLE
from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.records.record_head import RecordHead
from rocketbroker.records.tag_codes import TagCodes
from rocketbroker.store.commitlog.scanner import Blank, Broken, parse
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.reads import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_MESSAGE,
    ReadResult,
)

#: Before more bytes than this are read for one record, its own size field is checked:
#: the size in the entry may be corrupt.
LARGE: Final = 64 << 10

#: Queues of this prefix hold entries of records that are in another queue, too.
LMQ_PREFIX: Final = b"%LMQ%"
MULTI_DISPATCH: Final = b"INNER_MULTI_DISPATCH\x01"


def reason_to_skip(
    corruption_log: CorruptionLog,
    segments: Segments,
    position: int,
    size: int,
    error: OSError,
) -> str:
    """Why a record cannot be read, if the disk has refused it so often that readers
    are to pass over it.

    @param size: how many bytes were to be read.
    @raise OSError: it has not.
    """
    segment = segments.find(position)
    if error.errno not in UNREADABLE or segment is None:
        raise error
    data, why = segments.before_bad(segment, size, position - segment.start)
    if not why or not corruption_log.should_skip(position, position + len(data)):
        raise error
    return why


@final
class CheckedRead:
    """The records that one read has found so far, each checked.

    It has the methods of L{rocketbroker.store.reading.pull.Collector}.

    @ivar offset: that of the next entry to come.
    @ivar count: how many messages.
    @ivar is_full: whether no further message fits.
    """

    def __init__(
        self,
        segments: Segments,
        corruption_log: CorruptionLog,
        queue: Queue,
        offset: int,
        bounds: tuple[int, int],
        limits: tuple[int, int],
        cold: bool,
    ) -> None:
        """
        @param offset: that of the first entry to come.
        @param bounds: the oldest position of the log, and the published one.
        @param limits: the most messages and bytes.
        """
        self._segments = segments
        self._corruption_log = corruption_log
        self._queue = queue
        self.offset = offset
        self._lowest, self._published = bounds
        self._max_messages, self._max_bytes = limits
        self._cold = cold
        self._records: list[bytes] = []
        self._size = 0
        self._status = NO_MATCHED_MESSAGE
        self.count = 0
        self.is_full = False

    def collect(
        self, blob: bytes, entries: int, matches: Callable[[int], bool] | None
    ) -> int:
        """Take the records of these entries.

        @return: how many of them were passed.
        """
        passed = entries
        numbers: Sequence[int] = range(entries)
        if isinstance(matches, TagCodes):
            most, room = self._max_messages - self.count, self._max_bytes - self._size
            picked = matches.pick(blob, most, room)
            if picked is not None:
                numbers, blob, passed = picked
                matches = None
        for number, (position, size, code) in zip(
            numbers, ENTRY.iter_unpack(blob), strict=True
        ):
            if self.count and self._size + size > self._max_bytes:
                self.is_full = True
                passed = number
                break
            if matches is not None and not matches(code):
                continue
            try:
                record = self._record(self.offset + number, position, size)
            except OSError:
                if not self.count:
                    raise
                # The next read, from this entry on, reports the error.
                self.is_full = True
                passed = number
                break
            if record is None:
                if not self.count:
                    self._status = MESSAGE_WAS_REMOVING
                continue
            self._records.append(record)
            self.count += 1
            self._size += size
            if self.count >= self._max_messages or self._size >= self._max_bytes:
                self.is_full = True
                passed = number + 1
                break
        self.offset += passed
        return passed

    def _record(self, offset: int, position: int, size: int) -> bytes | None:
        """The record of an entry; None if it is gone, or corrupt.

        @raise OSError: the disk did not read it; it may another time.
        """
        if position < self._lowest or size == FILLED_SIZE:
            # Deleted, or an entry of no message.
            return None
        why = ""
        try:
            data, found = self._read(position, size)
            self._check_place(offset, found)
            return data
        except (Blank, Broken) as error:
            why = str(error)
        except OSError as error:
            why = reason_to_skip(
                self._corruption_log, self._segments, position, size, error
            )
        if not (self._is_removed(position) or self._keeps_place(offset, position)):
            self._corruption_log.note(
                position,
                f"Message {offset} of {self._queue.topic}/{self._queue.queue_id}, at "
                f"position {position} ({size} bytes), cannot be read: {why}.",
            )
        return None

    def _is_removed(self, position: int) -> bool:
        """Whether its segment was removed since the read began."""
        segments = self._segments.all
        return not segments or position < segments[0].start

    def _read(self, position: int, size: int) -> tuple[bytes, RecordHead]:
        """A record, as bytes and as fields.

        @raise Broken: there is none of that size.
        @raise OSError: the disk did not read it.
        """
        segment = self._segments.find(position)
        if (
            size <= 0
            or position + size > self._published
            or segment is None
            or position + size > segment.end
        ):
            raise Broken(f"the size in its entry is {size}")
        if size > LARGE:
            size_field = self._segments.read(position, 4, self._cold)
            if int.from_bytes(size_field, "big") != size:
                raise Broken(f"the size in its entry is {size}")
        data = self._segments.read(position, size, self._cold)
        found = parse(data, 0, position, True)
        if found.size != size:
            raise Broken(f"it has {found.size} bytes")
        return data, found

    def _check_place(self, offset: int, found: RecordHead) -> None:
        """Check that a record has the queue and the offset where its entry stands.

        @raise Broken: it has others.
        """
        _, _, topic, queue_id, own_offset, _, _, properties = found
        queue = self._queue
        if topic == queue.topic_bytes and queue_id == queue.queue_id:
            if own_offset != offset and not self._is_shifted(
                offset, own_offset - offset
            ):
                raise Broken(f"its queue offset is {own_offset}")
        elif (
            not queue.topic_bytes.startswith(LMQ_PREFIX)
            or MULTI_DISPATCH not in properties
        ):
            raise Broken(f"its queue is {topic!r}/{queue_id}")

    def _keeps_place(self, offset: int, position: int) -> bool:
        """Whether an entry is a second one of the record before: its own was lost, as
        a start has reported."""
        entry = self._queue.read(offset - 1, 1) if offset > 0 else b""
        return len(entry) == SIZE and bool(ENTRY.unpack(entry)[0] == position)

    def _is_shifted(self, offset: int, shift: int) -> bool:
        """Whether the entry beside is shifted as far from its record's queue offset.

        RocketMQ only logs it when a queue lags behind the offsets in its records, and
        goes on like that: it hands such records out, and so does rocketbroker.
        """
        for beside in (offset - 1, offset + 1):
            try:
                position, size, _ = ENTRY.unpack(self._queue.read(beside, 1))
                if size != FILLED_SIZE:
                    _, found = self._read(position, size)
                    return found.queue_offset - beside == shift
            except (Blank, Broken, struct.error, OSError):
                continue
        return False

    def result(self, next_offset: int, first: int, end: int) -> ReadResult:
        """The result of the read."""
        return ReadResult(
            FOUND if self.count else self._status,
            next_offset,
            first,
            end,
            [b"".join(self._records)] if self._records else [],
            self.count,
            self._size,
        )
