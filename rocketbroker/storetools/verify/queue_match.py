# -*- test-case-name: tests.storetools.verify.test_log -*-
"""A check of one queue: its entries against the records of the log.

The log is walked once, and each record meets its entry in passing: both come in the
order of their offsets. Entries that do not fit at once are kept aside until the end of
the walk, because a record may be missing, an entry wrong, or the topic deleted and made
again, and only the whole queue shows which.

The tag code of an entry is the hash of the tags, or with delayed messages the time of
delivery, which has to be behind the store time; how far is a setting. Or it is the
address of a unit in the queue's extension, in which the same stands, and the store time
beside it.

docs/facts/store.md 7 and 8.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final, TypeAlias, final

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.queueunits import EXTENSION_HEAD, decode_extension
from rocketbroker.store.consumequeue.extension import FOLDER, NOWHERE, is_address
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.file_sequence import FileSequence

#: Position, size, tag code.
Entry: TypeAlias = tuple[int, int, int]

#: So many entries of one queue are kept aside; more only come of a queue or a log that
#: is lost as a whole, where the first ones say enough.
MAX_ASIDE: Final = 20_000

#: The number that makes a position an address when added.
_ZERO = -(1 << 63)


@final
class TagCodes:
    """The tag codes of one queue.

    @ivar are_plain: whether they are what stands in the records.
    """

    def __init__(self, reader: StoreReader, topic: str, queue_id: int) -> None:
        self._is_delayed = topic == SCHEDULE_TOPIC
        self._units: FileSequence | None = None
        if queue_id in reader.queues(topic, FOLDER):
            self._units = reader.row(FOLDER, topic, queue_id, 1)
        self.are_plain = self._units is None and not self._is_delayed

    def wrong(self, code: int, expected: int, store_ms: int) -> tuple[str, int, str]:
        """The fault of a tag code.

        @param code: the one in the entry.
        @param expected: the hash of the record's tags.
        @param store_ms: the record's store time.
        @return: what, in words, empty if nothing is; then where: the position in the
            extension and its file, or 0 and nothing if it is the entry that is wrong.
        """
        if not is_address(code):
            return self._differs(code, expected, store_ms), 0, ""
        if code == NOWHERE:
            # There never was a unit, or it is another's.
            return "", 0, ""
        position = code - _ZERO
        units = self._units
        path = units.path_of(position) if units is not None else ""
        if units is None or not path:
            return f"its tag code is {code}, where the extension has no file", 0, ""
        try:
            head = units.read(position, EXTENSION_HEAD)
            size = int.from_bytes(head[:2], "big", signed=True)
            unit = decode_extension(units.read(position, max(size, EXTENSION_HEAD)))
        except StoreError:
            # A broker that cleans its store has removed it, or its file is bad.
            return "", 0, ""
        if unit is None:
            return "no unit of the extension stands there", position, path
        why = self._differs(unit.tag_code, expected, store_ms)
        if not why and unit.store_ms != store_ms:
            why = f"its store time is {unit.store_ms}, the record's is {store_ms}"
        return why, position, path

    def _differs(self, code: int, expected: int, store_ms: int) -> str:
        if code == expected or (self._is_delayed and code >= store_ms):
            return ""
        if self._is_delayed:
            return f"it is delivered at {code}, and was stored at {store_ms}"
        return f"its tag code is {code}, the record's is {expected}"


@final
class QueueMatch:
    """One queue.

    @ivar last: the offset of the last record of it in the log, -1 before the first.
    @ivar holes: offsets that no record has: the first, and the one behind the last.
    @ivar exists: whether the queue has files.
    @ivar first: its first offset.
    @ivar end: the offset behind its last entry, when the walk began.
    @ivar next: the offset of the entry that no record has met yet.
    @ivar unlisted: how many records have no entry.
    @ivar missing: positions and offsets of the first of them.
    @ivar codes: checks tag codes.
    @ivar wrong: wrong tag codes: the offset, what, and where in the extension.
    @ivar dropped: how many entries were not kept aside because there were too many.
    """

    __slots__ = (
        "_aside",
        "_at",
        "_blob",
        "_lowest",
        "_queue_id",
        "_reader",
        "_topic",
        "codes",
        "dropped",
        "end",
        "exists",
        "first",
        "holes",
        "last",
        "missing",
        "next",
        "unlisted",
        "wrong",
    )

    def __init__(self, reader: StoreReader, topic: str, queue_id: int) -> None:
        self._reader = reader
        self._topic = topic
        self._queue_id = queue_id
        self.exists = queue_id in reader.queues(topic)
        self.first = self.end = self._lowest = 0
        if self.exists:
            self.first = reader.min_offset(topic, queue_id)
            self.end = reader.max_offset(topic, queue_id)
            if reader.is_clean:
                self._lowest = reader.start_offset(topic, queue_id)
        self.codes = TagCodes(reader, topic, queue_id)
        self.wrong: list[tuple[int, str, int, str]] = []
        self.last = -1
        self.holes: list[tuple[int, int]] = []
        self.next = self.first
        self.dropped = 0
        self.unlisted = 0
        self.missing: list[tuple[int, int]] = []
        self._blob = b""
        self._at = 0
        self._aside: dict[int, Entry] = {}

    def follow(self, offset: int, entries: list[bytes]) -> bool:
        """Records come by whose offsets follow each other.

        @param offset: that of the first.
        @param entries: what their entries have to be.
        @return: whether these are the next of the queue; if not, nothing has changed.
        """
        end = offset + len(entries)
        if offset != self.next or end > self.end:
            return False
        before = self._blob, self._at
        wanted = b"".join(entries)
        done = 0
        while done < len(wanted):
            if self._at >= len(self._blob):
                self._fill(offset + done // SIZE)
            some = min(len(wanted) - done, len(self._blob) - self._at)
            found = self._blob[self._at : self._at + some]
            if not some or self.next != offset or found != wanted[done : done + some]:
                self._blob, self._at = before
                return False
            self._at += some
            done += some
        self.next = end
        self.last = end - 1
        return True

    def meet(self, offset: int, entry: Entry, store_ms: int) -> bool:
        """A record comes by.

        Entries that point before it have missed theirs. One that points behind it waits
        for a record to come: this one is of an older topic of that name, or has lost
        its entry. But if the one behind that does not, it is wrong.

        @param entry: what its entry has to be, with the hash of its tags.
        @param store_ms: its store time.
        @return: whether there is an entry for its offset, right or wrong.
        """
        if offset == self.next and self._at < len(self._blob):
            # Nearly always.
            if ENTRY.unpack_from(self._blob, self._at) == entry:
                self._at += SIZE
                self.next += 1
                return True
        elif offset < self.next and self._aside.get(offset) == entry:
            del self._aside[offset]
            return True
        position = entry[0]
        while self._has_next(2):
            found = ENTRY.unpack_from(self._blob, self._at)
            if found[0] > position:
                behind = self._at + SIZE
                if (
                    behind >= len(self._blob)
                    or ENTRY.unpack_from(self._blob, behind)[0] > position
                ):
                    break
            passed = self.next
            self._at += SIZE
            self.next += 1
            if passed == offset and found[:2] == entry[:2]:
                why = self.codes.wrong(found[2], entry[2], store_ms)
                if why[0]:
                    self._report_code(offset, why)
                return True
            self._keep(passed, found)
        return self._lowest <= offset < self.end

    def miss(self, position: int, offset: int, max_kept: int) -> None:
        """A record has no entry.

        @param max_kept: so many are kept.
        """
        self.unlisted += 1
        if len(self.missing) < max_kept:
            self.missing.append((position, offset))

    def rest(self) -> Iterator[tuple[int, Entry]]:
        """The entries that no record fits, with their offsets."""
        yield from sorted(self._aside.items())
        while self._has_next(1):
            found = ENTRY.unpack_from(self._blob, self._at)
            self._at += SIZE
            self.next += 1
            yield self.next - 1, found

    def keeps_place(self, offset: int, entry: Entry) -> bool:
        """Whether an entry is a second one of the record before, in the place of one
        that is lost; see L{rocketbroker.store.dispatch.offset_sequence}."""
        if not any(first <= offset < end for first, end in self.holes):
            return False
        with contextlib.suppress(StoreError):
            blob = self._reader.entry_bytes(self._topic, self._queue_id, offset - 1)
            return len(blob) >= SIZE and ENTRY.unpack_from(blob)[:2] == entry[:2]
        return False

    def _fill(self, offset: int) -> None:
        """Read entries from one on.

        A broker that cleans its store may have removed them meanwhile: then the queue
        goes on at what is first in it now, and C{next} says so.
        """
        self._at = 0
        try:
            self._blob = self._reader.entry_bytes(self._topic, self._queue_id, offset)
        except StoreError:
            self._blob = b""
            first = self._reader.behind_removed(self._topic, self._queue_id, offset)
            # A file that cannot be read is reported by itself, and ends the queue.
            self.next = first if first > offset else self.end

    def _has_next(self, wanted: int) -> bool:
        """Whether there is a next entry; it is in the blob then, and so many if there
        are."""
        while self.next < self.end:
            if self._at + wanted * SIZE <= len(self._blob):
                return True
            before = self.next
            self._fill(before)
            if self.next == before:
                if not self._blob:
                    # The file became shorter.
                    self.end = before
                break
        return self.next < self.end

    def _report_code(self, offset: int, why: tuple[str, int, str]) -> None:
        if len(self.wrong) < MAX_ASIDE:
            self.wrong.append((offset, *why))
        else:
            self.dropped += 1

    def _keep(self, offset: int, entry: Entry) -> None:
        if len(self._aside) < MAX_ASIDE:
            self._aside[offset] = entry
        else:
            self.dropped += 1
