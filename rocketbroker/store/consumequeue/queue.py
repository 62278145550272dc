# -*- test-case-name: tests.store.consumequeue.test_queue -*-
"""One consume queue: the positions in the log of the messages of one queue of a topic.

Files of 300000 entries of 20 bytes (L{rocketbroker.records.entries}), named by their
first byte; the entry of queue offset C{n} stands at byte C{20 * n}. A queue whose first
record is not number 0 begins in the middle of its first file; the entries before are
filled with (0, 0x7FFFFFFF, 0), which are never read.

The three numbers of a queue live in its slot of the shared positions. Behind
C{max_offset} stand zeros, or remains of a dispatch that failed; they are never read.

C{docs/facts/store.md} 7.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import partial
from typing import Final, final

from zope.interface import classImplements

from rocketbroker.records.entries import ENTRY, FILLED, FILLED_SIZE, SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.records.record_head import (
    LEAST_SIZE,
    MAGIC_V1,
    MAGIC_V2,
    MAX_V1_TOPIC_BYTES,
)
from rocketbroker.store.consumequeue.batch_queue import BatchUnits
from rocketbroker.store.consumequeue.extension import Extension
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.shared_positions import MAX, MIN, NEXT, Positions

#: No topic may be longer (C{docs/facts/store.md} 3.7).
MAX_TOPIC: Final = 255

#: So many entries are read to see the last one; in a small queue the first is with it.
NEARBY: Final = 64
_NO_ENTRIES: Final = bytes(2 * SIZE)

#: Where nothing is known of begin and end.
NO_HINT: Final = (-1, -1)

#: Characters that would lead to another directory, or end a line.
_NOT_IN_NAMES: Final = re.compile(r"[/\0\r\n]")


@final
class Queue:
    """A handle on one consume queue. All that the hot path needs is an attribute.

    @ivar storable: whether a topic of that name can be stored at all.
    @ivar usable: whether messages get ordinary entries in it: not in a batch queue.
    @ivar batch: the units of a batch queue, which has no entries; None of any other.
    @ivar extension: where the tag codes of entries are, if they are not in them.
    @ivar slot: the index of its first shared word.
    @ivar magic: the magic number of its records.
    @ivar topic_field: the topic as it stands in a record, with its length.
    @ivar record_bytes: the size of its records but for body and properties.
    @ivar max_position: the end of the last record entered: one that ends at or before
        it is entered already.
    @ivar trusted_from: this process has entered all entries from this offset on.
    @ivar from_position: records before it belong to a topic of that name that was
        deleted.
    @ivar pending: entries of the dispatch step that is running.
    @ivar pending_codes: their tag codes.
    @ivar pending_offset: the queue offset of the first of them.
    @ivar pending_end: the end of the last one's record.
    """

    __slots__ = (
        "batch",
        "extension",
        "files",
        "from_position",
        "magic",
        "max_position",
        "pending",
        "pending_codes",
        "pending_end",
        "pending_offset",
        "positions",
        "queue_id",
        "record_bytes",
        "slot",
        "storable",
        "topic",
        "topic_bytes",
        "topic_field",
        "trusted_from",
        "usable",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        positions: Positions,
        slot: int,
        files: QueueFiles,
        store_host_v6: bool,
        allow_v2: bool,
    ) -> None:
        encoded = topic.encode("utf-8", "surrogatepass")
        size = len(encoded)
        self.topic = topic
        self.topic_bytes = encoded
        self.queue_id = queue_id
        self.positions = positions
        is_named = is_usable(topic)
        self.slot = slot
        self.files = files
        self.batch: BatchUnits | None = None
        self.extension: Extension | None = None
        self.storable = is_named and 0 <= queue_id < 1 << 31
        if size <= MAX_V1_TOPIC_BYTES:
            self.magic = MAGIC_V1
            self.topic_field = size.to_bytes(1, "big") + encoded
        else:
            self.magic = MAGIC_V2
            self.storable = self.storable and size <= MAX_TOPIC and allow_v2
            self.topic_field = min(size, 0x7FFF).to_bytes(2, "big") + encoded
        self.usable = self.storable
        self.record_bytes = LEAST_SIZE - 1 + len(self.topic_field)
        if store_host_v6:
            self.record_bytes += 12
        self.max_position = 0
        self.from_position = 0
        self.trusted_from = 0
        self.pending: list[bytes] = []
        self.pending_codes: list[int] = []
        self.pending_offset = 0
        self.pending_end = 0

    def __repr__(self) -> str:
        return f"<Queue {self.topic}/{self.queue_id}>"

    @property
    def min_offset(self) -> int:
        """See L{IQueue}."""
        return int(self.positions.view[self.slot + MIN])

    @property
    def max_offset(self) -> int:
        """See L{IQueue}."""
        return int(self.positions.view[self.slot + MAX])

    @property
    def reported_min_offset(self) -> int:
        """See L{IQueue}; C{docs/facts/store.md} 9.1."""
        view, slot = self.positions.view, self.slot
        is_bare = self.batch is not None and view[slot + MAX] == 0
        return -1 if is_bare else int(view[slot + MIN])

    @property
    def next_offset(self) -> int:
        """See L{IQueue}."""
        return int(self.positions.view[self.slot + NEXT])

    @property
    def has_files(self) -> bool:
        """Whether anything was entered into it that is still there."""
        files = self.files if self.batch is None else self.batch.files
        return bool(files.all)

    def set_batch(self, batch: BatchUnits | None) -> None:
        """Become a batch queue, or an ordinary one; only while it has no files."""
        assert not self.has_files
        self.batch = batch
        self.usable = self.storable and batch is None

    def set_offsets(self, first: int, end: int) -> None:
        """Set the range of offsets that can be read; the next message follows it."""
        view = self.positions.view
        view[self.slot + MIN] = first
        view[self.slot + MAX] = end
        view[self.slot + NEXT] = end

    def enter(self, are_there: bool = False) -> None:
        """Write the pending entries and show them.

        As a rule they stand at the end. Beyond it, if entries before them are lost:
        then the gap is filled. Before it, if the log holds a topic of that name that
        was deleted and made again: then the queue ends with them.

        @param are_there: whether the files have them, from before a start; then they
            are only put on the disk with the next flush.
        @raise OSError: the disk refused; nothing is shown, and it can be tried again.
        """
        offset = self.pending_offset
        entries = self.pending
        view = self.positions.view
        slot = self.slot
        there = view[slot + MAX]
        if offset > there:
            self._fill(there, offset)
        elif offset < there:
            self.cut(offset)
        if are_there and offset == there:
            self.files.mark_unsynced(offset * SIZE, len(entries) * SIZE)
        else:
            self.files.write(offset * SIZE, b"".join(entries))
        is_followed = view[slot + NEXT] == there
        view[slot + MAX] = after = offset + len(entries)
        if is_followed or view[slot + NEXT] < after:
            # A slave's queue: nothing else is on its way into it.
            view[slot + NEXT] = after
        self.max_position = self.pending_end

    def cut(self, offset: int) -> None:
        """Let the queue end before an offset."""
        self.files.cut(offset * SIZE)
        view = self.positions.view
        view[self.slot + MAX] = offset
        view[self.slot + MIN] = min(offset, view[self.slot + MIN])

    def _fill(self, there: int, offset: int) -> None:
        """Fill the entries before C{offset} with entries of no message.

        Also those of the file before, if the queue ends in or with it: at zeros there
        RocketMQ would end the queue.
        """
        per_file = self.files.size // SIZE
        view = self.positions.view
        first = view[self.slot + MIN]
        start = offset - offset % per_file
        if there > start or first < there >= start - per_file:
            start = there
        self.files.write(start * SIZE, FILLED * (offset - start))
        files = self.files.all
        if there == first or (files and first * SIZE < files[0].start):
            view[self.slot + MIN] = offset

    def continue_at(self, offset: int) -> None:
        """Become empty, and give the next message a queue offset, as all offsets before
        it were those of messages whose records are gone.

        @raise OSError: the disk refused.
        """
        per_file = self.files.size // SIZE
        start = offset - offset % per_file
        if self.files.all:
            start = max(self.max_offset, self.files.all[0].start // SIZE)
        self.files.write(start * SIZE, FILLED * (offset - start))
        self.set_offsets(offset, offset)

    def read(self, offset: int, max_entries: int) -> bytes:
        """Entries from C{offset} on, to the end of one file at the most."""
        return self.files.read(offset * SIZE, max_entries * SIZE)

    def entries(self, offset: int, max_entries: int) -> list[tuple[int, int, int]]:
        """The same as numbers, of those that count."""
        count = min(max_entries, self.max_offset - offset)
        if offset < self.min_offset or count <= 0:
            return []
        blob = self.read(offset, count)
        return [*ENTRY.iter_unpack(blob[: len(blob) // SIZE * SIZE])]

    # The range of entries that counts.

    def last_place(self) -> tuple[int, int]:
        """Position and size of the last record entered, from its entry."""
        if self.batch is not None:
            unit = self.batch.last()
            return (0, 0) if unit is None else (unit.position, unit.size)
        position, size, _ = ENTRY.unpack(self.read(self.max_offset - 1, 1))
        return position, size

    def bound(
        self, before: int, lowest: int, cut: bool, hint: tuple[int, int] = NO_HINT
    ) -> None:
        """End with the last entry of a record that starts before a position, and begin
        with the first whose record is there.

        @param lowest: where the log begins.
        @param cut: remove the entries behind the end.
        @param hint: where the queue probably begins and ends. A search that begins
            there reads one entry or two, and one without a hint twenty.
        """
        files = self.files.all
        self.max_position = 0
        if self.batch is not None:
            self.set_offsets(*self.batch.bound(before, lowest, cut))
            self.max_position = min(sum(self.last_place()), before)
            return
        if not files:
            self.set_offsets(0, 0)
            if self.extension is not None:
                self.extension.drop()
            return
        low = files[0].start // SIZE
        high = (files[-1].start + self.files.size) // SIZE
        end, entries = self._end_before(before, low, high, hint[1])
        if cut:
            self.files.cut(end * SIZE)
        if self.extension is not None:
            self.extension.bound(self.read, low, end, cut)
        begin = low
        if len(entries) != (end - low) * SIZE or not is_there(entries[:SIZE], lowest):
            begin = first_from(partial(self._is_there, lowest), low, end, hint[0])
        if begin < end:
            position, size, _ = ENTRY.unpack(entries[-SIZE:] or self.read(end - 1, 1))
            # A corrupt size must not hide records that follow.
            self.max_position = min(position + size, before)
        elif end == low:
            # No entry at all: the next record decides where the queue goes on.
            begin = end = 0 if cut else low
        self.set_offsets(begin, end)

    def begins_before(self, lowest: int) -> bool:
        """Whether L{begin_with} may have something to do.

        @param lowest: where the log begins now.
        """
        if self.batch is not None:
            return self.batch.begins_before(lowest)
        view = self.positions.view
        first, end = view[self.slot + MIN], view[self.slot + MAX]
        files = self.files.all
        if not files:
            return False
        begin = bisect_left(
            range(end), True, first, key=partial(self._is_there, lowest)
        )
        behind_first = files[0].start + self.files.size
        return begin > first or (len(files) > 1 and behind_first <= begin * SIZE)

    def begin_with(self, lowest: int) -> int:
        """Begin with the first message whose record is still in the log, and remove
        the files that hold none.

        If all records are gone, the queue is empty, and begins where it ends. Nobody
        may dispatch meanwhile.

        @param lowest: where the log begins now.
        @return: how many files were removed.
        """
        view = self.positions.view
        if self.batch is not None:
            return self.batch.begin_with(lowest)
        first, end = view[self.slot + MIN], view[self.slot + MAX]
        if not self.files.all:
            return 0
        begin = bisect_left(
            range(end), True, first, key=partial(self._is_there, lowest)
        )
        view[self.slot + MIN] = begin
        entry = self.read(begin, 1) if begin < end else b""
        if self.extension is not None and len(entry) == SIZE:
            self.extension.begin_with(ENTRY.unpack(entry)[2])
        return self.files.drop_before(begin * SIZE)

    def _end_before(
        self, before: int, low: int, high: int, hint: int
    ) -> tuple[int, bytes]:
        """The offset behind the last entry of a record that starts before a position,
        and some entries before it, if they were read."""
        if before <= 0:
            return low, b""
        if low < hint < high:
            # As a rule the hint is right, and one read shows it.
            per_file = self.files.size // SIZE
            start = max(low, hint - NEARBY, (hint - 1) // per_file * per_file)
            found = self.read(start, hint + 2 - start)
            size = (hint - start) * SIZE
            if found[size:] == _NO_ENTRIES:
                at, length, _ = ENTRY.unpack_from(found, size - SIZE)
                if length > 0 and 0 <= at < before:
                    return hint, found[:size]
        is_behind = partial(self._is_not_before, before)
        return first_from(is_behind, low, high, hint), b""

    def _is_not_before(self, before: int, offset: int) -> bool:
        """Whether it is no entry, or not of a record that starts before a position.

        A single one that cannot be right is corrupt: others stand behind it.
        """
        return all(
            size <= 0 or not 0 <= position < before
            for position, size, _ in ENTRY.iter_unpack(self.read(offset, 2))
        )

    def _is_there(self, lowest: int, offset: int) -> bool:
        """Whether the entry's record is in the log: not deleted, not filled in.

        If the record of the entry before is, so is this one's: else the entry is
        corrupt.
        """
        return any(is_there(self.read(at, 1), lowest) for at in (offset, offset - 1))

    def restart_at(self, position: int) -> None:
        """Become empty, as only records from a position on belong to the queue.

        Its files are moved away or removed already.
        """
        self.from_position = position
        self.max_position = self.trusted_from = 0
        self.set_offsets(0, 0)
        self.files.forget()
        if self.extension is not None:
            self.extension.forget()
        if self.batch is not None:
            self.batch.forget()

    def drop(self) -> None:
        """Remove all files."""
        self.files.drop(0)
        if self.extension is not None:
            self.extension.drop()
        if self.batch is not None:
            self.batch.drop()

    def mark_dir_unsynced(self) -> None:
        """See L{QueueFiles.mark_dir_unsynced}."""
        self.files.mark_dir_unsynced()
        if self.extension is not None:
            self.extension.files.mark_dir_unsynced()
        if self.batch is not None:
            self.batch.files.mark_dir_unsynced()

    @property
    def is_unsynced(self) -> bool:
        """Whether something of its files may not be on the disk."""
        return (self.files if self.batch is None else self.batch.files).is_unsynced

    def flush(self, least_pages: int = 0) -> None:
        """I{Blocking.} Put all files on the disk.

        @param least_pages: only if so many pages came since the last flush.
        """
        if self.batch is not None:
            end = self.batch.end * BATCH_SIZE
            self.batch.files.flush(least_pages, end)
            return
        if self.extension is not None:
            self.extension.flush(least_pages)
        self.files.flush(least_pages, self.max_offset * SIZE)

    def close(self) -> None:
        """Close all files."""
        self.files.close()
        if self.extension is not None:
            self.extension.files.close()
        if self.batch is not None:
            self.batch.files.close()


classImplements(Queue, IQueue)


def is_there(entry: bytes, lowest: int) -> bool:
    """Whether an entry's record is in the log: not deleted, not filled in.

    @param lowest: where the log begins.
    """
    if len(entry) < SIZE:
        return False
    position, size, _ = ENTRY.unpack(entry)
    return bool(position >= lowest and (size != FILLED_SIZE or position > 0))


def first_from(is_so: Callable[[int], bool], low: int, high: int, hint: int) -> int:
    """The first number from which on something is so.

    @param is_so: whether it is so; then it is so of all numbers that follow.
    @param low: the lowest that may be it.
    @param high: the highest, of which it is so.
    @param hint: the fewer are asked about, the nearer this is, from above; lower than
        the lowest for none.
    """
    if hint < low:
        return bisect_left(range(high), True, low, key=is_so)
    end = min(hint, high)
    if end < high and not is_so(end):
        return bisect_left(range(high), True, end + 1, key=is_so)
    step = 1
    while end > low:
        at = max(low, end - step)
        if not is_so(at):
            return bisect_left(range(end), True, at + 1, key=is_so)
        end = at
        step *= 2
    return low


def is_usable(topic: str) -> bool:
    """Whether a directory can have that name, nothing outside is reached by it, and it
    stands on one line."""
    if topic in ("", ".", "..") or _NOT_IN_NAMES.search(topic):
        return False
    try:
        return len(topic.encode()) <= MAX_TOPIC
    except UnicodeEncodeError:
        return False
