# -*- test-case-name: tests.storetools.verify.test_log -*-
"""A check of every record and every queue entry of a store; each fault is reported.

The log is read in large pieces from its first byte to its end. Of each record: magic,
size, lengths, the position that it says, the CRC of its body, the order of its queue
offset, and the entry that its queue has for it. Behind a record that cannot be
delimited the walk goes on at the next that says the position where it stands. What
another process writes in the meantime is no fault: before a report the bytes are read
once more.

A tail that is no record, and records that are not in the queues yet, are faults only in
a store that was stopped cleanly: after a crash the next start deals with them.

The heads and properties of records have no checksum, unless they were written with
C{enabledAppendPropCRC}: a flipped bit there is found if the numbers then contradict
each other.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.checking import numbers_are_numbers
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.record import (
    CRC_BEGINS,
    CRC_PROPERTY_SIZE,
    is_crc_property_right,
)
from rocketbroker.records.record_head import (
    BODY_AT,
    LEAST_SIZE,
    MAGIC_BLANK,
    RecordHead,
    offset_of,
)
from rocketbroker.records.sysflags import HOST_MASK, INNER_BATCH
from rocketbroker.store.commitlog.scanner import NOTHING, Blank, Broken, parse
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.log import LogSegment
from rocketbroker.storetools.verify.files import FileVerification
from rocketbroker.storetools.verify.queues import MAX_RECORD, QueueVerification
from rocketbroker.storetools.verify.report import Fault, Remark, Report

#: How much of the log is read at once: the calls cost nothing then, and it still fits
#: the processor's cache in part.
PIECE: Final = 2 << 20

#: Where a record or a filler may begin: four bytes before one of these.
_MAGIC: Final = re.compile(rb"\xda\xa3\x20[\xa7\xab]|\xcb\xd4\x31\x94", re.DOTALL)

#: Why a record ends the log for RocketMQ, though it is whole.
NO_NUMBER: Final = "a property of it that has to be a number is none"

#: The topic of messages that wait, whose level is a number.
WAITING: Final = SCHEDULE_TOPIC.encode()

#: After records that are not ordinary, so many more are looked at one by one at most
#: before ordinary ones are looked for again.
MAX_EXACT: Final = 31

#: Where the system flag stands in a record.
_FLAG_AT: Final = offset_of("sys_flag")


def _body_of(record: bytes) -> tuple[int, int]:
    """The start of the body in a record, and its length."""
    flags = int.from_bytes(record[_FLAG_AT : _FLAG_AT + 4], "big")
    body = BODY_AT[flags & HOST_MASK]
    return body, int.from_bytes(record[body - 4 : body], "big")


def is_filler(head: bytes) -> bool:
    """Whether the magic number of a filler stands there, whatever its length."""
    return int.from_bytes(head[4:8], "big", signed=True) == MAGIC_BLANK


def _filler_size(data: bytes, at: int) -> int:
    """The length in the head of a filler. RocketMQ ends its log before one that is
    longer than the rest of its file."""
    return int.from_bytes(data[at : at + 4], "big")


def queue_of(path: str) -> tuple[str, int] | None:
    """The queue that a file belongs to, by its path in the root; None if to none."""
    parts = path.split(os.sep)
    if len(parts) < 3 or parts[0] == "commitlog" or not parts[2].isdigit():
        return None
    return parts[1], int(parts[2])


@final
class Verification:
    """One walk.

    @ivar records: how many records were seen.
    @ivar done: how many bytes of the log were walked.
    @ivar faults: how many were reported.
    @ivar remarks: findings that are no faults; when the walk is over.
    @ivar queues: the same of their queues.
    @ivar tail: how many bytes a crash left behind the last record.
    @ivar tail_position: where they begin.
    """

    def __init__(
        self,
        reader: StoreReader,
        report: Report,
        progress: Callable[[int], None],
    ) -> None:
        """
        @param report: is given each fault when it is found.
        @param progress: is given the bytes walked so far, after each piece.
        """
        self._reader = reader
        self._report_fault = report
        self._progress = progress
        self.remarks: list[Remark] = []
        remark = self.remarks.append
        self._names = FileVerification(reader, self._report, remark)
        self.queues = QueueVerification(reader, self._report, self._names.is_lost)
        self._good_end = 0
        self._reached = 0
        self.records = 0
        self.done = 0
        self.faults = 0
        self.tail = 0
        self.tail_position = 0

    def expected_bytes(self) -> int:
        """The approximate number of bytes to walk, for the time left."""
        reader = self._reader
        start = reader.segments[0].start if reader.segments else 0
        end = start
        for topic in reader.topics():
            for queue_id in reader.queues(topic):
                last = reader.max_offset(topic, queue_id)
                if last <= reader.min_offset(topic, queue_id):
                    continue
                with contextlib.suppress(StoreError):
                    for position, size, _ in reader.entries(topic, queue_id, last - 1):
                        end = max(end, position + size)
        return min(end, reader.log_end()) - start

    def run(self) -> None:
        """Check everything. Of a store whose log is lost only that is reported."""
        if self._reader.loss:
            where = self._reader.log.folder
            self._report(Fault("file", where, 0, self._reader.loss))
            return
        self._names.before()
        self.queues.open()
        end = self._reader.log_end()
        segments = [each for each in self._reader.segments if each.start < end]
        while len(segments) > 1 and not self._reader.is_live:
            if any(segments[-1].pread(8, 0)):
                break
            if self._reader.why_unread(segments[-1].start, 8):
                break
            # Made ahead of the writer, as RocketMQ does.
            segments.pop()
        for segment in segments:
            is_last = segment is segments[-1]
            self._segment(segment, min(segment.end, end), is_last)
        self._names.after(self._good_end, self._reached)
        self.queues.rest(end)
        self.report_unread()

    def report_unread(self) -> None:
        """Report what the disk has refused to read since the last call."""
        root = self._reader.root
        for each in self._reader.unread.taken():
            start = max(position_of_name(os.path.basename(each.path)), 0)
            queue = queue_of(os.path.relpath(each.path, root))
            what = f"{each.end - each.start} bytes" if each.end else "it"
            text = f"{what} cannot be read: {each.why}"
            where = "unreadable", each.path, start + each.start, text
            self._report(Fault(*where, queue=queue))

    def _report(self, fault: Fault) -> None:
        self.faults += 1
        self._report_fault(fault)

    # The log.

    def _segment(self, segment: LogSegment, stop: int, is_last: bool) -> None:
        position = segment.start
        wanted = PIECE
        while position < stop:
            size = min(wanted, stop - position)
            data = segment.pread(size, position - segment.start)
            wanted = PIECE
            before = position
            position, is_broken = self._piece(data, position, segment)
            used = position - before
            self.done += used
            if used:
                self._good_end = self._reached = position
            if is_broken:
                left = len(data) - used
                size = int.from_bytes(data[used : used + 4], "big")
                if before + len(data) < stop and max(size, LEAST_SIZE) > left:
                    # Perhaps it is only cut by the end of the piece.
                    if used:
                        continue
                    if size <= min(MAX_RECORD, stop - position):
                        wanted = size
                        continue
                broken = position
                self._reached = stop
                position = self._broken(segment, broken, stop, is_last)
                self.done += position - broken
            self.report_unread()
            self._progress(self.done)

    def _piece(self, data: bytes, start: int, segment: LogSegment) -> tuple[int, bool]:
        """Check the records of one piece.

        @return: where the first stands that is not whole, and whether there is one.
        """
        at = 0
        size = len(data)
        exact = pause = 0
        is_bad = self._reader.why_unread(start, size) != ""
        if is_bad:
            exact = size
        try:
            while at < size:
                if not exact:
                    at, count = self.queues.take(data, at, start)
                    self.records += count
                    pause = 0 if count else min(2 * pause + 1, MAX_EXACT)
                    exact = pause + 1
                exact -= 1
                found = parse(data, at, start + at, True)
                end = at + found.size
                if (found.topic == WAITING or found.sys_flag & INNER_BATCH) and (
                    not numbers_are_numbers(found.topic, found.properties)
                ):
                    raise Broken(NO_NUMBER)
                if is_bad and (why := self._reader.why_unread(start + at, found.size)):
                    raise Broken(why)
                if data[end - CRC_PROPERTY_SIZE] == CRC_BEGINS and (
                    not is_crc_property_right(data, at, end)
                ):
                    self._own_crc(segment, found)
                at = end
                self.records += 1
                self.queues.record(found)
        except Blank:
            if _filler_size(data, at) == segment.end - (start + at):
                return segment.end, False
            return start + at, True
        except Broken:
            return start + at, True
        return start + at, False

    def _own_crc(self, segment: LogSegment, found: RecordHead) -> None:
        """A record has a CRC of its own, which is another, though that of its body is
        right."""
        position, size, topic, queue_id, offset = found[:5]
        queue = f"{topic.decode('utf-8', 'replace')}/{queue_id}"
        text = (
            f"message {offset} of {queue}: its own CRC is another, its body's is right"
        )
        span = position, position + size
        self._report(Fault("crc", segment.path, position, text, offsets=span))

    def _read(self, segment: LogSegment, position: int, stop: int) -> bytes:
        """The bytes of a record, as they are now."""
        at = position - segment.start
        size = int.from_bytes(segment.pread(4, at), "big")
        return segment.pread(
            min(max(LEAST_SIZE, min(size, MAX_RECORD)), stop - position), at
        )

    def _why(self, segment: LogSegment, position: int, stop: int) -> str:
        """The fault of a record, as it is now; empty if there is none."""
        data = self._read(segment, position, stop)
        if why := self._reader.why_unread(position, len(data)):
            return why
        try:
            found = parse(data, 0, position, True)
        except Blank:
            size, left = _filler_size(data, 0), segment.end - position
            return f"the filler there says {size} bytes, not {left}" * (size != left)
        except Broken as error:
            return str(error)
        return "" if numbers_are_numbers(found.topic, found.properties) else NO_NUMBER

    def _broken(
        self, segment: LogSegment, position: int, stop: int, is_last: bool
    ) -> int:
        """A record is not as it should be.

        @return: where to go on; the same position if it has become good.
        """
        why = self._why(segment, position, stop)
        if not why:
            return position
        data = self._read(segment, position, stop)
        found = self._all_but_body(data, position)
        if found is not None:
            body, length = _body_of(data)
            queue = f"{found.topic.decode('utf-8', 'replace')}/{found.queue_id}"
            text = (
                f"message {found.queue_offset} of {queue}, record at {position}: {why} "
            )
            text += f"({length} bytes)"
            region = position, position + found.size
            self._report(Fault("body", segment.path, position + body, text, region))
            self.records += 1
            self.queues.record(found)
            return position + found.size
        after, is_zero = self._search(segment, position, stop)
        if after < stop:
            if self._why(segment, position, stop):
                lost = after - position
                text = f"{why}; {lost} bytes up to the next record are lost"
                region = position, after
                self._report(Fault("record", segment.path, position, text, region))
                return after
            return position
        return self._end(segment, position, stop, is_last, is_zero, why)

    def _all_but_body(self, data: bytes, position: int) -> RecordHead | None:
        """The head of a record of which only the body is damaged; None if more is."""
        try:
            found = parse(data, 0, position, False)
        except (Broken, Blank):
            return None
        unread = self._reader.why_unread
        body, length = _body_of(data)
        behind = body + length
        if unread(position, body) or unread(position + behind, found.size - behind):
            return None
        return found

    def _end(
        self,
        segment: LogSegment,
        position: int,
        stop: int,
        is_last: bool,
        is_zero: bool,
        why: str,
    ) -> int:
        """No record follows in this file.

        @return: where the file ends.
        """
        reader = self._reader
        head = segment.pread(8, position - segment.start)
        if is_last and not reader.is_live and not is_filler(head):
            if why == NOTHING and is_zero:
                self._reached = position
                self.done -= stop - position
                return stop
            if not reader.is_clean:
                self.tail += stop - position
                self.tail_position = position
                return stop
        text = f"{why}; no record follows in the {stop - position} bytes to the end"
        self._report(Fault("record", segment.path, position, text, (position, stop)))
        return stop

    def _search(self, segment: LogSegment, broken: int, stop: int) -> tuple[int, bool]:
        """The position of the next record, and whether all bytes before it are
        zeros."""
        position = broken
        is_zero = True
        zeros = bytes(PIECE)
        while position < stop:
            size = min(PIECE, stop - position)
            data = segment.pread(size, position - segment.start)
            if data == (zeros if size == PIECE else bytes(size)):
                position += size
                continue
            is_zero = False
            for match in _MAGIC.finditer(data):
                start = position + match.start() - 4
                if start > broken and self._is_start(segment, start, stop):
                    return start, False
            if position + size >= stop:
                break
            # A magic number may be cut by the end of the piece.
            position += max(size - 8, 1)
        return stop, is_zero

    def _is_start(self, segment: LogSegment, position: int, stop: int) -> bool:
        """Whether a record, or the filler of a file, begins there."""
        data = self._read(segment, position, stop)
        if is_filler(data):
            return _filler_size(data, 0) == segment.end - position
        try:
            parse(data, 0, position, False)
        except (Broken, Blank):
            return False
        return True
