# -*- test-case-name: tests.store.test_verification -*-
"""Every record and every queue entry of a store checked, and each fault told.

The log is read in large pieces from its first byte to its end. Of each record: magic,
size, lengths, the position that it says, the CRC of its body, the order of its queue
offset, and the entry that its queue has for it. Behind a record that cannot be
delimited the walk goes on at the next that says the position where it stands. What
another process writes in the meantime is no fault: before one is told, its bytes are
read once more.

A tail that is no record, and records that are not in the queues yet, are faults only in
a store that was stopped cleanly: after a crash the next start deals with them.

The heads of records have no checksum: a flipped bit there is found if the numbers then
contradict each other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.sysflags import HOST_MASK
from rocketbroker.store.encoding import MAGIC_BLANK
from rocketbroker.store.matching import Entry, Matching
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.scanning import (
    NOTHING,
    SMALLEST,
    Blank,
    Broken,
    Found,
    parse,
    tag_code_of,
)
from rocketbroker.store.segments import Segment, position_of_name

#: How much of the log is read at once: the calls cost nothing then, and it still fits
#: the processor's cache in part.
PIECE: Final = 4 << 20

#: Where a record or a filler may begin: four bytes before one of these.
_MAGIC: Final = re.compile(rb"\xda\xa3\x20[\xa7\xab]|\xcb\xd4\x31\x94", re.DOTALL)

#: The longest record that the search for the next one believes in, as the longest
#: message that can be configured is below it.
MOST_RECORD: Final = 64 << 20

#: Entries of this topic say when, not which tag.
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"

#: Queues whose entries point to records of other topics.
SHARED_PREFIX: Final = "%LMQ%"

#: Codes below are addresses in C{consumequeue_ext}.
LEAST_CODE: Final = -(1 << 31)

#: Transaction bits, and the two states that get no entry; inner batches have queues of
#: another kind.
_TRANSACTION: Final = 0xC
_PREPARED: Final = 0x4
_ROLLBACK: Final = 0xC
_INNER_BATCH: Final = 0x80


@final
class Fault:
    """Something that is wrong.

    @ivar kind: C{body}, C{record}, C{entry}, C{order}, C{missing}, C{file}, C{index}.
    @ivar where: the file, or topic and queue.
    @ivar position: of the first byte concerned, in the log or in the queue.
    @ivar text: what is wrong, in words.
    @ivar region: of C{body} and C{record}: from where to where the log holds no good
        record; of others (0, 0).
    @ivar queue: of C{entry}, C{order} and C{missing}: topic and queue id.
    @ivar offsets: of C{entry}: its number and the one behind; of C{order}: the first
        offset that has no record, and the one behind the last.
    """

    __slots__ = ("kind", "offsets", "position", "queue", "region", "text", "where")

    def __init__(
        self,
        kind: str,
        where: str,
        position: int,
        text: str,
        region: tuple[int, int] = (0, 0),
        queue: tuple[str, int] | None = None,
        offsets: tuple[int, int] = (0, 0),
    ) -> None:
        self.kind = kind
        self.where = where
        self.position = position
        self.text = text
        self.region = region
        self.queue = queue
        self.offsets = offsets


@final
class Verification:
    """One walk.

    @ivar records: how many records were seen.
    @ivar entries: how many of them have the right entry, or need none.
    @ivar done: how many bytes of the log were walked.
    @ivar faults: how many were told.
    @ivar unlisted: how many records of a store not stopped cleanly have no entry yet.
    @ivar orphans: how many records belong to queues that do not exist (any more).
    @ivar tail: how many bytes a crash left behind the last record.
    @ivar tail_position: where they begin.
    """

    def __init__(
        self,
        files: IFiles,
        reader: StoreReader,
        tell: Callable[[Fault], None],
        progress: Callable[[int], None],
    ) -> None:
        """
        @param tell: is given each fault when it is found.
        @param progress: is given the bytes walked so far, after each piece.
        """
        self._files = files
        self._reader = reader
        self._tell_fault = tell
        self._progress = progress
        self._queues: dict[tuple[bytes, int], Matching] = {}
        self.records = 0
        self.done = 0
        self.faults = 0
        self.unlisted = 0
        self.orphans = 0
        self.tail = 0
        self.tail_position = 0

    def expected_bytes(self) -> int:
        """About how much there is to walk, for the time left."""
        reader = self._reader
        start = reader.segments[0].start if reader.segments else 0
        end = start
        for topic in reader.topics():
            for queue_id in reader.queues(topic):
                last = reader.max_offset(topic, queue_id)
                if last > reader.min_offset(topic, queue_id):
                    position, size, _ = reader.entries(topic, queue_id, last - 1)[0]
                    end = max(end, position + size)
        return min(end, reader.log_end()) - start

    def run(self) -> None:
        """Check everything."""
        for topic in self._reader.topics():
            for queue_id in self._reader.queues(topic):
                self._matching(topic.encode(), queue_id)
        self._files_of_log()
        end = self._reader.log_end()
        segments = [each for each in self._reader.segments if each.start < end]
        while len(segments) > 1 and not self._reader.is_live:
            if any(segments[-1].file.pread(8, 0)):
                break
            # Made ahead of the writer, as the reference does.
            segments.pop()
        for segment in segments:
            is_last = segment is segments[-1]
            self._segment(segment, min(segment.end, end), is_last)
        for (topic_bytes, queue_id), matching in self._queues.items():
            self._rest(topic_bytes, queue_id, matching)

    def _tell(self, fault: Fault) -> None:
        self.faults += 1
        self._tell_fault(fault)

    # The log.

    def _files_of_log(self) -> None:
        """Files that do not continue those before, or are too short."""
        segments = self._reader.segments
        if not segments:
            return
        opened = {segment.start for segment in segments}
        folder = os.path.dirname(segments[0].path)
        for name in self._files.list(folder):
            start = position_of_name(name)
            if start >= 0 and start not in opened and start < segments[-1].start:
                path = os.path.join(folder, name)
                text = "the file behind it is missing"
                self._tell(Fault("file", path, start, text))

    def _segment(self, segment: Segment, stop: int, is_last: bool) -> None:
        position = segment.start
        wanted = PIECE
        while position < stop:
            size = min(wanted, stop - position)
            data = segment.file.pread(size, position - segment.start)
            if not data:
                text = "the file became shorter while it was read"
                self._tell(Fault("file", segment.path, position, text))
                return
            wanted = PIECE
            before = position
            position, is_broken = self._piece(data, position, segment)
            used = position - before
            self.done += used
            if is_broken:
                left = len(data) - used
                size = int.from_bytes(data[used : used + 4], "big")
                if before + len(data) < stop and max(size, SMALLEST) > left:
                    # Perhaps it is only cut by the end of the piece.
                    if used:
                        continue
                    if size <= min(MOST_RECORD, stop - position):
                        wanted = size
                        continue
                broken = position
                position = self._broken(segment, broken, stop, is_last)
                self.done += position - broken
            self._progress(self.done)

    def _piece(self, data: bytes, start: int, segment: Segment) -> tuple[int, bool]:
        """Check the records of one piece.

        @return: where the first stands that is not whole, and whether there is one.
        """
        at = 0
        size = len(data)
        try:
            while at < size:
                found = parse(data, at, start + at, True)
                at += found[1]
                self._record(found)
        except Blank:
            return segment.end, False
        except Broken:
            return start + at, True
        return start + at, False

    def _read(self, segment: Segment, position: int, stop: int) -> bytes:
        """The bytes of a record, as they are now."""
        at = position - segment.start
        size = int.from_bytes(segment.file.pread(4, at), "big")
        return segment.file.pread(
            min(max(SMALLEST, min(size, MOST_RECORD)), stop - position), at
        )

    def _why(self, segment: Segment, position: int, stop: int) -> str:
        """What is wrong with a record, as it is now; empty if nothing is."""
        try:
            parse(self._read(segment, position, stop), 0, position, True)
        except Blank:
            return ""
        except Broken as error:
            return str(error)
        return ""

    def _broken(self, segment: Segment, position: int, stop: int, is_last: bool) -> int:
        """A record is not as it should be.

        @return: where to go on; the same position if it has become good.
        """
        why = self._why(segment, position, stop)
        if not why:
            return position
        data = self._read(segment, position, stop)
        try:
            found = parse(data, 0, position, False)
        except (Broken, Blank):
            pass
        else:
            body = 88 + 12 * (found[5] & HOST_MASK).bit_count()
            length = int.from_bytes(data[body - 4 : body], "big")
            queue = f"{found[2].decode('utf-8', 'replace')}/{found[3]}"
            text = f"message {found[4]} of {queue}, record at {position}: {why} "
            text += f"({length} bytes)"
            region = position, position + found[1]
            self._tell(Fault("body", segment.path, position + body, text, region))
            self._record(found)
            return position + found[1]
        after, is_zero = self._search(segment, position, stop)
        if after < stop:
            if self._why(segment, position, stop):
                lost = after - position
                text = f"{why}; {lost} bytes up to the next record are lost"
                region = position, after
                self._tell(Fault("record", segment.path, position, text, region))
                return after
            return position
        return self._end(segment, position, stop, is_last, is_zero, why)

    def _end(
        self,
        segment: Segment,
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
        if is_last and not reader.is_live:
            if why == NOTHING and is_zero:
                self.done -= stop - position
                return stop
            if not reader.is_clean:
                self.tail += stop - position
                self.tail_position = position
                return stop
        text = f"{why}; no record follows in the {stop - position} bytes to the end"
        self._tell(Fault("record", segment.path, position, text, (position, stop)))
        return stop

    def _search(self, segment: Segment, broken: int, stop: int) -> tuple[int, bool]:
        """Where the next record stands, and whether all before it are zeros."""
        position = broken
        is_zero = True
        zeros = bytes(PIECE)
        while position < stop:
            size = min(PIECE, stop - position)
            data = segment.file.pread(size, position - segment.start)
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

    def _is_start(self, segment: Segment, position: int, stop: int) -> bool:
        """Whether a record, or the filler of a file, begins there."""
        data = self._read(segment, position, stop)
        if int.from_bytes(data[4:8], "big", signed=True) == MAGIC_BLANK:
            return int.from_bytes(data[:4], "big") == segment.end - position
        try:
            parse(data, 0, position, False)
        except (Broken, Blank):
            return False
        return True

    # The queues.

    def _matching(self, topic: bytes, queue_id: int) -> Matching:
        matching = self._queues.get((topic, queue_id))
        if matching is None:
            name = topic.decode("utf-8", "replace").replace("/", "\ufffd")
            matching = Matching(self._reader, name or "\ufffd", queue_id)
            self._queues[topic, queue_id] = matching
        return matching

    def _record(self, found: Found) -> None:
        """A record against its queue."""
        position, size, topic, queue_id, offset, sys_flag, _, properties = found
        self.records += 1
        state = sys_flag & _TRANSACTION
        if state in (_PREPARED, _ROLLBACK) or sys_flag & _INNER_BATCH:
            return
        matching = self._queues.get((topic, queue_id))
        if matching is None:
            matching = self._matching(topic, queue_id)
        last = matching.last
        matching.last = offset
        if offset != last + 1 and last >= 0 and offset != 0:
            text = f"offset {offset} stands behind {last}"
            if offset > last + 1:
                text = f"offsets {last + 1} to {offset - 1} have no record"
            self._tell_queue("order", topic, queue_id, position, text, last + 1, offset)
        if not matching.exists:
            self.orphans += 1
        elif not matching.meet(offset, (position, size, tag_code_of(properties))):
            if not self._reader.is_clean:
                self.unlisted += 1
                return
            text = f"the record of offset {offset} has no entry in the queue"
            self._tell_queue("missing", topic, queue_id, position, text)

    def _tell_queue(
        self,
        kind: str,
        topic: bytes,
        queue_id: int,
        position: int,
        text: str,
        first: int = 0,
        end: int = 0,
    ) -> None:
        name = topic.decode("utf-8", "replace")
        where = f"{name}/{queue_id}"
        queue = name, queue_id
        self._tell(
            Fault(kind, where, position, text, queue=queue, offsets=(first, end))
        )

    def _rest(self, topic: bytes, queue_id: int, matching: Matching) -> None:
        """The entries that met no record of theirs."""
        name = topic.decode("utf-8", "replace")
        for offset, entry in matching.rest():
            why = self._wrong(name, queue_id, offset, entry)
            if why:
                text = f"entry {offset} (position {entry[0]}, size {entry[1]}): {why}"
                at = offset * 20
                self._tell_queue("entry", topic, queue_id, at, text, offset, offset + 1)
        if matching.dropped:
            text = f"{matching.dropped} more entries fit no record"
            self._tell_queue("entry", topic, queue_id, matching.first * 20, text)

    def _wrong(self, topic: str, queue_id: int, offset: int, entry: Entry) -> str:
        """What is wrong with an entry; empty if nothing is."""
        position, size, code = entry
        found = None
        for segment in self._reader.segments:
            if segment.start <= position < segment.end:
                try:
                    data = self._read(segment, position, segment.end)
                    found = parse(data, 0, position, False)
                except Blank:
                    return "the file of the log ends there"
                except Broken as error:
                    return str(error)
        if found is None:
            return "the log has no such position"
        if found[1] != size:
            return f"the record there has {found[1]} bytes"
        its_topic = found[2].decode("utf-8", "replace")
        if topic.startswith(SHARED_PREFIX):
            return ""
        if (its_topic, found[3], found[4]) != (topic, queue_id, offset):
            return f"the record there is {found[4]} of {its_topic}/{found[3]}"
        if topic != SCHEDULE_TOPIC and code >= LEAST_CODE:
            its_code = tag_code_of(found[7])
            if its_code != code:
                return f"its tag code is {code}, the record's is {its_code}"
        return ""
