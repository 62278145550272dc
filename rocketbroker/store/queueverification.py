# -*- test-case-name: tests.store.test_verification -*-
"""The queues of a store against its log, while that is walked.

Ordinary records come many at once (L{rocketbroker.store.ordinary}): what their entries
have to be is compared with what stands in the queue by one comparison of bytes. Where
that finds a difference, the same records come once more, one by one.

The store sheet, section 7.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.sysflags import INNER_BATCH, takes_queue_offset
from rocketbroker.store.faults import Fault, Tell
from rocketbroker.store.locating import segment_at
from rocketbroker.store.matching import Entry, Matching
from rocketbroker.store.ordinary import Lane, collect
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.scanning import (
    SMALLEST,
    Blank,
    Broken,
    Found,
    parse,
    tag_code_of,
)

#: Entries of this topic say when, not which tag.
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"

#: Queues whose entries point to records of other topics.
SHARED_PREFIX: Final = "%LMQ%"

#: Codes below are addresses in C{consumequeue_ext}.
LEAST_CODE: Final = -(1 << 31)

#: The longest record that an entry is believed, as the longest message that can be
#: configured is below it.
MOST_RECORD: Final = 64 << 20

#: So many records of one queue that have no entry are told one by one.
MOST_MISSING: Final = 20_000


@final
class QueueVerification:
    """All queues.

    @ivar unlisted: how many records of a store not stopped cleanly have no entry yet.
    @ivar orphans: how many records belong to queues that do not exist (any more).
    """

    def __init__(self, reader: StoreReader, tell: Tell) -> None:
        """
        @param tell: is given each fault when it is found.
        """
        self._reader = reader
        self._tell_fault = tell
        self._queues: dict[tuple[bytes, int], Matching] = {}
        self.unlisted = 0
        self.orphans = 0

    def open(self) -> None:
        """Find all queues, and how far each goes."""
        for topic in self._reader.topics():
            for queue_id in self._reader.queues(topic):
                self._matching(topic.encode(), queue_id)

    def _matching(self, topic: bytes, queue_id: int) -> Matching:
        matching = self._queues.get((topic, queue_id))
        if matching is None:
            name = topic.decode("utf-8", "replace").replace("/", "\ufffd")
            matching = Matching(self._reader, name or "\ufffd", queue_id)
            self._queues[topic, queue_id] = matching
        return matching

    def take(self, data: bytes, at: int, start: int) -> tuple[int, int]:
        """Check ordinary records, with their CRC, and their entries.

        @param start: the position of C{data} in the log.
        @return: behind the last one, and how many they were.
        """
        opened: list[tuple[Matching, Lane]] = []

        def lane_of(key: tuple[bytes, int]) -> Lane | None:
            matching = self._queues.get(key)
            if matching is None or matching.last < 0:
                return None
            lane = Lane([], matching.last + 1, 0)
            opened.append((matching, lane))
            return lane

        end, count, _ = collect(data, at, start, True, lane_of)
        for matching, lane in opened:
            entries = lane.entries
            first = matching.last + 1
            if not matching.exists:
                self.orphans += len(entries)
                matching.last += len(entries)
            elif first >= matching.end and not self._reader.is_clean:
                matching.unlisted += len(entries)
                matching.last += len(entries)
            elif not matching.follow(first, entries):
                for entry in entries:
                    position = ENTRY.unpack(entry)[0]
                    self.record(parse(data, position - start, position, False))
        return end, count

    def record(self, found: Found) -> None:
        """Check one record against its queue."""
        position, size, topic, queue_id, offset, sys_flag, _, properties = found
        if not takes_queue_offset(sys_flag) or sys_flag & INNER_BATCH:
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
            offsets = last + 1, offset
            self._tell_record("order", topic, queue_id, position, text, offsets)
        if offset <= last:
            # A topic of that name began again; nobody reads what was before.
            matching.unlisted = 0
            matching.missing.clear()
        if not matching.exists:
            self.orphans += 1
        elif not matching.meet(offset, (position, size, tag_code_of(properties))):
            matching.unlisted += 1
            if len(matching.missing) < MOST_MISSING:
                matching.missing.append((position, offset))

    def _tell_record(
        self,
        kind: str,
        topic: bytes,
        queue_id: int,
        position: int,
        text: str,
        offsets: tuple[int, int] = (0, 0),
    ) -> None:
        name = topic.decode("utf-8", "replace")
        path = segment_at(self._reader, position).path
        text = f"{name}/{queue_id}: {text}"
        queue = name, queue_id
        self._tell_fault(
            Fault(kind, path, position, text, queue=queue, offsets=offsets)
        )

    def rest(self) -> None:
        """The walk is over: check the entries that met no record of theirs."""
        for (topic, queue_id), matching in self._queues.items():
            self._tell_missing(topic, queue_id, matching)
            name = topic.decode("utf-8", "replace")
            for offset, entry in matching.rest():
                why = self._wrong(name, queue_id, offset, entry)
                if why:
                    what = f"entry {offset} (position {entry[0]}, size {entry[1]})"
                    self._tell_entry(name, queue_id, offset, f"{what}: {why}")
            if matching.dropped:
                text = f"{matching.dropped} more entries fit no record"
                self._tell_entry(name, queue_id, matching.first, text)

    def _tell_missing(self, topic: bytes, queue_id: int, matching: Matching) -> None:
        """The records that have no entry; after a crash the next start makes them."""
        if not self._reader.is_clean:
            self.unlisted += matching.unlisted
            return
        for position, offset in matching.missing:
            text = f"the record of offset {offset} has no entry in the queue"
            self._tell_record("missing", topic, queue_id, position, text)
        more = matching.unlisted - len(matching.missing)
        if more:
            text = f"{more} more records have no entry in the queue"
            position = matching.missing[-1][0]
            self._tell_record("missing", topic, queue_id, position, text)

    def _tell_entry(self, topic: str, queue_id: int, offset: int, text: str) -> None:
        path = self._reader.queue_path(topic, queue_id, offset)
        queue = topic, queue_id
        offsets = offset, offset + 1
        self._tell_fault(
            Fault("entry", path, offset * SIZE, text, queue=queue, offsets=offsets)
        )

    def _wrong(self, topic: str, queue_id: int, offset: int, entry: Entry) -> str:
        """What is wrong with an entry; empty if nothing is."""
        position, size, code = entry
        found = None
        for segment in self._reader.segments:
            if segment.start <= position < segment.end:
                at = position - segment.start
                said = int.from_bytes(segment.file.pread(4, at), "big")
                data = segment.file.pread(max(SMALLEST, min(said, MOST_RECORD)), at)
                try:
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
