# -*- test-case-name: tests.store.reading.test_property_filter -*-
"""The property filter: reads only the messages whose properties match a subscription.

A tag code stands in the entry, so a filter on tags costs next to nothing. A filter on
properties has to read the record: its properties alone, where the segment is mapped,
and else a run of records at once; the record is read once more, and checked, if it
matches. The time that one read may take for this is limited; at the limit it ends with
the messages it has, the reader goes on from there with its next read, and others come
in between. With a bit map in the queue's extension
(L{rocketbroker.store.consumequeue.extension}) most messages that do not match are
passed over without reading their records.

Short records that this process has written are not looked at one by one if the filter
has a hint (L{rocketbroker.store.reads.MessageFilter}): whole runs of them are
searched for it, bodies and all, and only those where it is found are looked at.

C{docs/facts/store.md} 8; C{docs/facts/broker.md} 13.2.
"""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias, final

from rocketbroker.records import record, record_head, sysflags
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.extension import Extension, UnitRun, is_address
from rocketbroker.store.reading.checked_read import CheckedRead
from rocketbroker.store.reads import MessageFilter, ReadResult

#: How long one read may take for the filter, about, in ns: this and what filters say
#: that they cost are estimates. It is enough for some 700 messages, if the expression
#: is an ordinary one, and sends wait for it. RocketMQ filters 800 at once.
MAX_SPENT: Final = 1_000_000

#: What it takes to find the properties of a record, and to read records from a file.
RECORD_NS: Final = 600
READ_NS: Final = 3_000

#: What it takes to look at the bit map of a message.
UNIT_NS: Final = 1_000

#: A filter takes as long again for so many bytes of properties more.
LONG_PROPERTIES: Final = 512

#: Records are searched for the hint of a filter so many at once, if they are not longer
#: than that on average; with what is between them. What that takes for a byte, in
#: tenths of a ns, and for a record.
HINT_RECORDS: Final = 200
HINT_BYTES: Final = 512
HINT_DECI_NS: Final = 5
HINT_NS: Final = 100

#: A record up to this size is read whole; a longer one without its body.
SMALL: Final = 4096

#: So many bytes of records are read at once, whole records that follow each other, but
#: for the records of others between them, if these are small.
RUN_BYTES: Final = 64 << 10

#: From the start to the body, with the shortest hosts, and with the longest.
_V4_HEAD: Final = record_head.BODY_AT[0]
_HEAD: Final = record_head.BODY_AT[sysflags.HOST_MASK]

_V6: Final = sysflags.HOST_MASK

#: The place of the system flag in a record.
_FLAG_AT: Final = record_head.offset_of("sys_flag")

_FIELDS: Final = record_head.head_struct(
    wanted={"size", "magic", "sys_flag", "body_size"}
)

_Entry: TypeAlias = tuple[int, int, int | None]

#: Where the length of a topic stands, and how many bytes that has.
_Topic: TypeAlias = tuple[int, int]

#: Bytes of the log, and the positions of the first of them and behind the last.
_Window: TypeAlias = tuple[mmap.mmap | bytes, int, int]


@final
class EntryFilter:
    """The filter of one read.

    @ivar spent: how long the filter has taken, about, in ns.
    @ivar passed: how many entries it has looked at, of those given last.
    """

    __slots__ = (
        "_cold",
        "_lowest",
        "_published",
        "_segments",
        "_units",
        "_wanted",
        "passed",
        "spent",
    )

    def __init__(
        self,
        segments: Segments,
        bounds: tuple[int, int],
        extension: Extension | None,
        cold: bool,
        wanted: MessageFilter,
    ) -> None:
        """
        @param bounds: the oldest position of the log, and the published one.
        @param cold: whether to read from the file, and not through the mapping.
        """
        self._segments = segments
        self._lowest, self._published = bounds
        self._units = None if extension is None else UnitRun(extension)
        self._cold = cold
        self._wanted = wanted
        self.passed = 0
        self.spent = 0

    @property
    def is_spent(self) -> bool:
        """Whether this read has spent its limit."""
        return self.spent >= MAX_SPENT

    def takes(self, position: int, size: int, code: int | None) -> bool:
        """Whether the message of an entry matches, or may match if that is not known.

        Not for a filter that is spent.

        @param code: its tag code, or the address of its unit; None if it is not known.
        """
        return any(True for _ in self.taken([(position, size, code)], 1))

    def taken(self, entries: Iterable[_Entry], count: int) -> Iterator[int]:
        """The numbers of the entries whose messages match, or may match if that is not
        known. It ends early when the limit is spent.

        @param entries: position, size, and code as for L{takes}.
        @param count: how many they are.
        """
        ahead: Sequence[_Entry] = ()
        if self._cold:
            entries = ahead = list(entries)
        return self._matching(enumerate(entries), count, ahead)

    def taken_of(self, blob: bytes, count: int) -> Iterator[int]:
        """The same of entries as they stand in a queue.

        @param count: how many they are.
        """
        hint = self._wanted.hint
        if hint is None or self._cold or self._units is not None:
            return self.taken(ENTRY.iter_unpack(blob), count)
        return self._matching(self._hinted(blob, count, hint), count, ())

    def _matching(
        self,
        numbered: Iterable[tuple[int, _Entry]],
        count: int,
        ahead: Sequence[_Entry],
    ) -> Iterator[int]:
        """The numbers of those of these entries whose messages match.

        @param count: of how many entries they are.
        @param ahead: all entries, if records are read from the file.
        """
        wanted = self._wanted
        matches, cost = wanted.matches, wanted.cost + RECORD_NS
        if self._units is not None or wanted.codes is not None:
            numbered = (each for each in numbered if self._may_match(each[1][2]))
        self.passed = count
        if matches is None:
            yield from (number for number, _ in numbered)
            return
        head, version_1 = _FIELDS.unpack_from, record_head.MAGIC_V1
        view: mmap.mmap | bytes = b""
        low = high = 0
        for number, (position, size, _) in numbered:
            if self.spent >= MAX_SPENT:
                self.passed = number
                return
            self.spent += cost
            properties = None
            try:
                if position < low or position + size > high:
                    view, low, high = self._window(position, size, ahead, number)
                if low == high:
                    properties = self._of_long(position, size)
                else:
                    start, stop = position - low, position - low + size
                    stated, magic, flag, body_size = head(view, start)
                    if (
                        stated == size
                        and magic == version_1
                        and not flag & _V6
                        and 0 <= body_size < size
                        and (at := start + _V4_HEAD + body_size)
                        and (first := at + view[at] + 3) <= stop
                        and view[first - 2] << 8 | view[first - 1] == stop - first
                    ):
                        # Nearly all are so.
                        properties = view[first:stop]
                    else:
                        properties = _properties(view, start, size)
            except (OSError, IndexError, struct.error):
                # The read of the whole record deals with it.
                pass
            if properties is None:
                yield number
                continue
            if len(properties) > LONG_PROPERTIES:
                self.spent += cost * (len(properties) // LONG_PROPERTIES)
            if matches(properties):
                yield number

    def _hinted(
        self, blob: bytes, count: int, hint: re.Pattern[bytes]
    ) -> Iterator[tuple[int, _Entry]]:
        """The entries in whose records a hint is found, or may be, with their numbers.

        For records that this process has written: the others are not looked at. When
        it is found in most, it is not worth a search.
        """
        hits = 0
        for first in range(0, count, HINT_RECORDS):
            if self.spent >= MAX_SPENT:
                self.passed = first
                return
            most = min(HINT_RECORDS, count - first)
            fields = struct.unpack_from(">" + "qiq" * most, blob, first * SIZE)
            starts = fields[::3]
            at, end = starts[0], starts[-1] + fields[-2]
            view, low, high = self._window(at, fields[1], (), 0)
            if (
                not low < high
                or hits > first // 2
                or not at < end <= min(high, at + HINT_BYTES * most)
                or sorted(starts) != [*starts]
            ):
                # Each is looked at.
                run = ENTRY.iter_unpack(blob[first * SIZE : (first + most) * SIZE])
                yield from enumerate(run, first)
                continue
            self.spent += HINT_NS * most + (end - at) * HINT_DECI_NS // 10
            while (found := hint.search(view, at - low, end - low)) is not None:
                at = low + found.start()
                number = bisect_right(starts, at) - 1
                position, size, code = fields[3 * number : 3 * number + 3]
                if at < position + size:
                    hits += 1
                    yield first + number, (position, size, code)
                    at = starts[number + 1] if number + 1 < most else end
                else:
                    # Between them, in the record of another queue.
                    at += 1

    def _may_match(self, code: int | None) -> bool:
        """Whether a message may match, by what is known without its record."""
        wanted = self._wanted
        if self._units is not None and code is not None and is_address(code):
            self.spent += UNIT_NS
            unit = self._units.unit(code)
            if unit is None:
                return True
            if wanted.may_match is not None and not wanted.may_match(
                unit.store_ms, unit.bit_map
            ):
                return False
            code = unit.tag_code
        return code is None or wanted.codes is None or wanted.codes(code)

    def _window(
        self, position: int, size: int, entries: Sequence[_Entry], number: int
    ) -> _Window:
        """A part of the log that holds the record of an entry, and those of many behind
        it.

        @param entries: all, if records are read from the file.
        @param number: of the entry.
        @return: nothing if there can be no such record, or it is a long one in a file.
        @raise OSError: the disk did not read it.
        """
        segment = self._segments.find(position)
        end = position + size
        if segment is None or position < self._lowest:
            return b"", 0, 0
        high = min(segment.end, self._published)
        if not position < end <= high or (self._cold and size > SMALL):
            return b"", 0, 0
        if not self._cold:
            return segment.view(), max(segment.start, self._lowest), high
        most = min(high, position + RUN_BYTES)
        for at, more, _ in islice(entries, number + 1, None):
            if not end <= at <= end + SMALL or not at < at + more <= most:
                break
            end = at + more
        self.spent += READ_NS
        data = segment.file.pread(end - position, position - segment.start)
        return (data, position, end) if len(data) == end - position else (b"", 0, 0)

    def code_of(self, unit: BatchUnit) -> int | None:
        """The tag code of a unit of a batch queue, for L{takes}.

        @return: None for a batch without one, whose messages may have their own.
        """
        position, size, code, *_ = unit
        if code or unit.messages > 1 or self._wanted.codes is None:
            return code or None
        if not self._lowest <= position <= self._published - size:
            return None
        self.spent += RECORD_NS
        try:
            flag = self._segments.read(position + _FLAG_AT, record.I32.size, self._cold)
        except OSError:
            return None
        return None if int.from_bytes(flag, "big") & sysflags.INNER_BATCH else 0

    def _of_long(self, position: int, size: int) -> bytes | None:
        """The properties of a record that is long, or none, without its body.

        @raise OSError: the disk did not read it.
        """
        if not self._lowest <= position <= self._published - size or size <= SMALL:
            return None
        self.spent += 2 * READ_NS
        read = self._segments.read
        head = read(position, _HEAD, self._cold)
        if len(head) < _HEAD:
            return None
        found = _behind_body(head, 0, size)
        if found is None:
            return None
        at, width = found
        tail = read(position + at, size - at, self._cold)
        return _behind_topic(tail, 0, width, len(tail))


def _properties(view: mmap.mmap | bytes, start: int, size: int) -> bytes | None:
    """The properties of a record of any kind.

    @param start: where the record begins.
    @param size: how many bytes its entry says that it has.
    @return: None if no such record begins there.
    """
    found = _behind_body(view, start, size)
    return None if found is None else _behind_topic(view, *found, start + size)


def _behind_body(view: mmap.mmap | bytes, start: int, size: int) -> _Topic | None:
    """Where the length of the topic stands, and how many bytes that has.

    @param start: where the record begins.
    @param size: how many bytes its entry says that it has.
    @return: None if no such record begins there.
    """
    stated, magic, flag, body_size = _FIELDS.unpack_from(view, start)
    at = start + _V4_HEAD
    if flag & _V6:
        at = start + record_head.BODY_AT[flag & _V6]
        body_size = record.I32.unpack_from(view, at - 4)[0]
    at += body_size
    if stated != size or body_size < 0 or at >= start + size:
        return None
    if magic == record_head.MAGIC_V1:
        return at, 1
    return (at, 2) if magic == record_head.MAGIC_V2 else None


def _behind_topic(
    view: mmap.mmap | bytes, at: int, width: int, stop: int
) -> bytes | None:
    """The properties of a record.

    @param at: where the length of the topic stands.
    @param width: how many bytes that has.
    @param stop: where the record ends.
    """
    start = at + width + 2
    if start > stop:
        return None
    start += view[at] if width == 1 else view[at] << 8 | view[at + 1]
    if start > stop:
        return None
    end = start + (view[start - 2] << 8 | view[start - 1])
    return view[start:end] if end <= stop else None


@final
class FilteredRead:
    """The matching messages that one read has found so far.

    It has the methods of L{rocketbroker.store.reading.pull.Collector}.

    @ivar count: how many messages.
    @ivar is_full: whether no further message fits, or the filter has spent its limit.
    """

    __slots__ = ("_filter", "_found", "_offset", "count", "is_full")

    def __init__(self, entry_filter: EntryFilter, found: CheckedRead) -> None:
        """
        @param found: takes the messages that match.
        """
        self._filter = entry_filter
        self._found = found
        self._offset = found.offset
        self.count = 0
        self.is_full = False

    def collect(
        self, blob: bytes, entries: int, matches: Callable[[int], bool] | None
    ) -> int:
        """Take the messages of these entries that match.

        @param matches: not used: the filter decides.
        @return: how many of them were passed.
        """
        entry_filter, found = self._filter, self._found
        for number in entry_filter.taken_of(blob, entries):
            found.offset = self._offset + number
            at = number * SIZE
            passed = number + found.collect(blob[at : at + SIZE], 1, None)
            if found.is_full:
                break
        else:
            passed = entry_filter.passed
        self._offset += passed
        self.count = found.count
        self.is_full = found.is_full or entry_filter.is_spent
        return passed

    def result(self, next_offset: int, first: int, end: int) -> ReadResult:
        """The result of the read."""
        return self._found.result(next_offset, first, end)
