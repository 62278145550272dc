# -*- test-case-name: tests.store.reading.test_property_filter -*-
"""The property filter: reads only the messages whose properties match a subscription.

A tag code stands in the entry, so a filter on tags costs next to nothing. A filter on
properties has to read the record: first its properties alone, not its body, and the
record only if it matches. The bytes that one read may spend on this are limited; at the
limit it ends with the messages it has, the reader goes on from there with its next
read, and others come in between. With a bit map in the queue's extension
(L{rocketbroker.store.consumequeue.extension}) most messages that do not match are
passed over without reading their records.

C{docs/facts/store.md} 8; C{docs/facts/broker.md} 13.2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.records import record, record_head, sysflags
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.extension import Extension, is_address
from rocketbroker.store.interfaces import MessageFilter, ReadResult
from rocketbroker.store.reading.checked_read import CheckedRead

#: How long one read may take for the filter, about, in ns.
MAX_SPENT: Final = 2_000_000

#: A record up to this size is read whole; a longer one without its body.
SMALL: Final = 4096

#: From the start to the length of the body, with the longest hosts.
_HEAD: Final = 88 + 24

#: The place of the system flag in a record.
_FLAG_AT: Final = record_head.offset_of("sys_flag")


@final
class EntryFilter:
    """The filter of one read.

    @ivar spent: how many bytes the filter has read, and its expressions have cost.
    """

    __slots__ = (
        "_cold",
        "_extension",
        "_lowest",
        "_published",
        "_segments",
        "_wanted",
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
        """
        self._segments = segments
        self._lowest, self._published = bounds
        self._extension = extension
        self._cold = cold
        self._wanted = wanted
        self.spent = 0

    @property
    def is_spent(self) -> bool:
        """Whether this read has spent its limit."""
        return self.spent >= MAX_SPENT

    def takes(self, position: int, size: int, code: int | None) -> bool:
        """Whether the message of an entry matches, or may match if that is not known.

        @param code: its tag code, or the address of its unit; None if it is not known.
        """
        wanted = self._wanted
        codes, may_match, matches = wanted.codes, wanted.may_match, wanted.matches
        if self._extension is not None and code is not None and is_address(code):
            unit = self._extension.unit(code)
            code = None
            if unit is not None:
                code = unit.tag_code
                if may_match is not None and not may_match(unit.store_ms, unit.bit_map):
                    return False
        if code is not None and codes is not None and not codes(code):
            return False
        if matches is None:
            return True
        self.spent += wanted.cost
        try:
            properties = self._properties(position, size)
        except OSError:
            # The read of the whole record deals with the error.
            return True
        if properties is None:
            return True
        # A search in long properties takes longer the longer they are.
        self.spent += len(properties) + wanted.cost * (len(properties) // SMALL)
        return matches(properties)

    def code_of(self, unit: BatchUnit) -> int | None:
        """The tag code of a unit of a batch queue, for L{takes}.

        @return: None for a batch without one, whose messages may have their own.
        """
        position, size, code, *_ = unit
        if code or unit.messages > 1 or self._wanted.codes is None:
            return code or None
        if not self._lowest <= position <= self._published - size:
            return None
        self.spent += record.I32.size
        try:
            flag = self._segments.read(position + _FLAG_AT, record.I32.size, self._cold)
        except OSError:
            return None
        return None if int.from_bytes(flag, "big") & sysflags.INNER_BATCH else 0

    def _properties(self, position: int, size: int) -> bytes | None:
        """The properties string of a record; None if there is no such record."""
        if (
            position < self._lowest
            or size < record_head.LEAST_SIZE
            or position + size > self._published
        ):
            return None
        read, cold = self._segments.read, self._cold
        data = read(position, size if size <= SMALL else _HEAD, cold)
        if len(data) < min(size, _HEAD):
            return None
        stated, magic = record.SIZE_AND_MAGIC.unpack_from(data)
        if stated != size or magic not in (record_head.MAGIC_V1, record_head.MAGIC_V2):
            return None
        flag = record.I32.unpack_from(data, _FLAG_AT)[0]
        body_at = 88
        body_at += 12 if flag & sysflags.BORN_HOST_V6 else 0
        body_at += 12 if flag & sysflags.STORE_HOST_V6 else 0
        if body_at > len(data):
            return None
        at = body_at + int(record.I32.unpack_from(data, body_at - 4)[0])
        if not body_at <= at < size:
            return None
        tail = data[at:] if size <= SMALL else read(position + at, size - at, cold)
        return _behind_topic(tail, 2 if magic == record_head.MAGIC_V2 else 1)


def _behind_topic(tail: bytes, width: int) -> bytes | None:
    """The properties of a record, from the bytes that follow its body.

    @param width: how many bytes the length of the topic has.
    """
    at = width + int.from_bytes(tail[:width], "big")
    start = at + 2
    if start > len(tail):
        return None
    end = start + int.from_bytes(tail[at:start], "big")
    return tail[start:end] if end <= len(tail) else None


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
        passed = 0
        for at in range(0, entries * SIZE, SIZE):
            if found.is_full or entry_filter.is_spent:
                break
            entry = blob[at : at + SIZE]
            if entry_filter.takes(*ENTRY.unpack(entry)):
                found.offset = self._offset + passed
                if not found.collect(entry, 1, None):
                    break
            passed += 1
        self._offset += passed
        self.count = found.count
        self.is_full = found.is_full or entry_filter.is_spent
        return passed

    def result(self, next_offset: int, first: int, end: int) -> ReadResult:
        """The result of the read."""
        return self._found.result(next_offset, first, end)
