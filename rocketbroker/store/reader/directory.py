# -*- test-case-name: tests.store.reader.test_directory -*-
"""A store's directory opened for reading only, by another process.

For exports without a broker, and beside a running one, ours or RocketMQ's. Nothing
is written, no lock is taken, sizes are taken from the files.

How far can be read: beside a broker of ours, to the position that it has committed in
its L{rocketbroker.store.shared_positions}, which are believed only if the C{abort} file
is the one that belongs to them. Beside RocketMQ's broker, and in a
directory that is not in use, as far as queue entries point to whole records: each
record is checked, with its CRC, before it is handed out. Records that are after a
crash in the log and not yet in the queues are not seen; the next start of a broker
enters them.
"""

from __future__ import annotations

import os
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import FILLED_SIZE
from rocketbroker.records.record_head import RecordHead
from rocketbroker.store.commitlog.scanner import Broken, checked
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.store.reader.log import LogFiles, LogSegment, without_log
from rocketbroker.store.reader.queue import QueueReader
from rocketbroker.store.reader.unreadable import Unreadable
from rocketbroker.store.shared_positions import (
    END,
    FIRST_SLOT,
    MAX,
    MIN,
    POSITIONS_NAME,
    PUBLISHED,
    QUEUES,
    QUEUES_NAME,
    SLOT_WORDS,
    ReadOnlyPositions,
)

#: So many entries are read at once.
ENTRY_BATCH_SIZE: Final = 4096

#: The same for readers of all queues at once, which hold what they have read.
FEW_ENTRIES: Final = 1024

#: Where a queue goes on that was deleted.
BEHIND_ALL: Final = 1 << 62

#: So many bytes of the log are read at once: the records of other queues between those
#: of one are read with them, which costs less than a call for each.
WINDOW: Final = 64 << 10


@final
class Piece:
    """Some messages of one queue.

    @ivar records: whole records, in the order of their offsets.
    @ivar next_offset: where to go on.
    """

    __slots__ = ("next_offset", "records")

    def __init__(self, records: list[bytes], next_offset: int) -> None:
        self.records = records
        self.next_offset = next_offset


@final
class StoreReader:
    """A store directory, opened for reading only.

    @ivar root: where it is.
    @ivar files: the disk.
    @ivar unread: what cannot be read.
    @ivar log: the files of the log.
    @ivar is_live: whether a broker of ours uses it now.
    @ivar is_clean: whether no broker uses it and the last one stopped cleanly.
    @ivar loss: that its log is lost, in a sentence; empty if it is not.
    """

    def __init__(
        self,
        files: IFiles,
        root: str,
        commit_log: str | None = None,
        log_size: int = 0,
        even_lost: bool = False,
    ) -> None:
        """
        @param commit_log: where the log is, if not in the root; several directories are
            separated by commas.
        @param log_size: the bytes of each of its files, if that is known.
        @param even_lost: whether it is opened, too, if its log is lost.
        @raise StoreError: there is no store, its log is lost, or it cannot be read; one
            sentence.
        """
        self.files = files
        self.unread = Unreadable()
        self.root = root
        self._positions: ReadOnlyPositions | None = None
        self._window = (0, b"")
        self._slots: dict[tuple[str, int], int] = {}
        self._queues: dict[tuple[str, int], QueueReader] = {}
        folders = (commit_log or os.path.join(root, "commitlog")).split(",")
        try:
            self.is_clean = not files.exists(os.path.join(root, "abort"))
            folders = [each for each in folders if each]
            self.log = LogFiles(files, folders, log_size, self.unread)
            self.loss = "" if self.log.paths else self._without_log()
            if self.loss and not even_lost:
                raise StoreError(self.loss)
            self._open_positions()
        except OSError as error:
            raise StoreError(
                f"The store {root} cannot be read: {error.strerror}."
            ) from error
        self.is_live = self._positions is not None

    def _without_log(self) -> str:
        """No file of the log was found; see L{without_log}."""
        loss = without_log(self.files, self.root, self.log.folders)
        if loss:
            self.log = self.log.again()
        return "" if self.log.paths else loss

    def _open_positions(self) -> None:
        """Use the numbers of a running broker, if they are those of this one."""
        abort = os.path.join(self.root, "abort")
        path = os.path.join(self.root, POSITIONS_NAME)
        if not self.files.exists(path) or self.is_clean:
            return
        positions = ReadOnlyPositions(self.files.open_readonly(path))
        owner = self.files.read(abort)
        if not owner.isdigit() or not positions.belongs_to(
            int(owner), self.files.modified_ms(abort)
        ):
            positions.close()
            return
        self._positions = positions
        names = self.files.read(os.path.join(self.root, QUEUES_NAME))
        lines = names.decode("utf-8", "surrogatepass").split("\n")[:-1]
        for number, line in enumerate(lines[: positions.view[QUEUES]]):
            topic, _, queue_id = line.rpartition("/")
            slot = FIRST_SLOT + number * SLOT_WORDS
            if slot + SLOT_WORDS <= len(positions.view):
                self._slots[topic, int(queue_id)] = slot

    # Contents.

    @property
    def segments(self) -> list[LogSegment]:
        """The files of the log, in order; some between them may be missing."""
        return self.log.segments

    @property
    def lowest(self) -> int:
        """The first position of the log."""
        return self.log.segments[0].start if self.log.segments else 0

    def log_end(self) -> int:
        """The end of the log: that of the committed bytes, or of the files."""
        end = self.log.segments[-1].end if self.log.segments else 0
        if self._positions is not None:
            return min(end, self._positions.view[PUBLISHED])
        return end

    def entries(
        self, topic: str, queue_id: int, offset: int
    ) -> list[tuple[int, int, int]]:
        """Some entries from an offset on; none at the end.

        @return: of each the fields of L{ENTRY<rocketbroker.records.entries.ENTRY>}.
        """
        queue = self._queue(topic, queue_id)
        count = min(queue.end - offset, ENTRY_BATCH_SIZE)
        return queue.entries(offset, count) if count > 0 else []

    def entry_bytes(
        self, topic: str, queue_id: int, offset: int, most: int = FEW_ENTRIES
    ) -> bytes:
        """Some entries from an offset on as they stand in the file; empty at the end.

        @raise StoreError: the file cannot be read, or was removed meanwhile; one
            sentence.
        """
        queue = self._queue(topic, queue_id)
        count = min(queue.end - offset, most)
        return queue.read(offset, count) if count > 0 else b""

    def row(self, kind: str, topic: str, queue_id: int, unit: int) -> FileSequence:
        """The files that a queue has of another kind.

        @param kind: the name of their directory in the root.
        @param unit: what their bytes come in.
        """
        folder = os.path.join(self.root, kind, topic, str(queue_id))
        return FileSequence(self.files, folder, unit, self.unread)

    def queue_path(self, topic: str, queue_id: int, offset: int) -> str:
        """The file that holds an entry; empty if none does."""
        return self._queue(topic, queue_id).path_of(offset)

    def behind_file(self, topic: str, queue_id: int, offset: int) -> int:
        """The first offset behind the file that holds an entry."""
        return self._queue(topic, queue_id).behind_file(offset)

    def behind_removed(self, topic: str, queue_id: int, offset: int) -> int:
        """The next offset of a queue from which a broker that cleans its store has
        removed the message at an offset, or its entry, since the queue was looked at.

        @return: the next offset that is there; the same one if it was not removed.
        """
        self._queues.pop((topic, queue_id), None)
        queue = self._queue(topic, queue_id)
        if not queue.file_size:
            return BEHIND_ALL
        first = max(offset, queue.first)
        lowest = self.lowest
        while not self.is_clean and first < queue.end:
            # The log goes before its entries.
            entry = queue.entry(first)
            if entry is None or entry[0] >= lowest:
                break
            first += 1
        return first

    def topics(self, kind: str = "consumequeue") -> list[str]:
        """All topics that have queues of a kind."""
        folder = os.path.join(self.root, kind)
        return [name for name in self.files.list(folder) if self.queues(name, kind)]

    def queues(self, topic: str, kind: str = "consumequeue") -> list[int]:
        """The numbers of a topic's queues, in order."""
        folder = os.path.join(self.root, kind, topic)
        return sorted(
            int(name)
            for name in self.files.list(folder)
            if name.isascii() and name.isdigit()
        )

    def batch_end(self, topic: str, queue_id: int) -> int | None:
        """The readable bytes of a batch queue; None if they are not known."""
        if self._positions is None:
            return None
        slot = self._slots.get((topic, queue_id))
        return int(self._positions.view[slot + END]) if slot is not None else 0

    def start_offset(self, topic: str, queue_id: int) -> int:
        """The number of the first entry of the first file; see L{min_offset}."""
        return self._queue(topic, queue_id).start

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The first offset that can be read."""
        return self._queue(topic, queue_id).first

    def max_offset(self, topic: str, queue_id: int) -> int:
        """One more than the last offset that can be read, when it was first asked."""
        return self._queue(topic, queue_id).end

    def _queue(self, topic: str, queue_id: int) -> QueueReader:
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            if "/" in topic or topic in ("", ".", ".."):
                raise StoreError(f"{topic!r} is not the name of a topic.")
            folder = os.path.join(self.root, "consumequeue", topic, str(queue_id))
            # Before the files are listed: up to there they exist, whatever comes.
            known = self._range_of(topic, queue_id)
            try:
                queue = QueueReader(self.files, folder, self.unread)
                if known is None:
                    queue.bound(self.lowest, None if self.is_clean else self._is_record)
                else:
                    queue.first, queue.end = known
            except OSError as error:
                raise StoreError(
                    f"{folder} cannot be read: {error.strerror}."
                ) from error
            self._queues[topic, queue_id] = queue
        return queue

    def _range_of(self, topic: str, queue_id: int) -> tuple[int, int] | None:
        """The readable range of a queue, from its broker's shared positions; None
        beside a RocketMQ broker, and beside none."""
        if self._positions is None:
            return None
        slot = self._slots.get((topic, queue_id))
        if slot is None:
            # It was made since.
            return 0, 0
        return self._positions.view[slot + MIN], self._positions.view[slot + MAX]

    def _is_record(self, position: int, size: int) -> bool:
        """Whether one stands there. After a clean stop, one with another CRC is
        corrupt; else it may never have been written whole."""
        try:
            self._record(position, size, not self.is_clean)
        except Broken:
            return False
        return True

    # Reading.

    def _record(
        self, position: int, size: int, check_crc: bool = True
    ) -> tuple[bytes, RecordHead]:
        """One record.

        @raise Broken: there is none of that size.
        """
        start, window = self._window
        at = position - start
        if at >= 0 and at + size <= len(window) and not self.unread.is_bad and size > 0:
            try:
                return checked(window, at, position, size, check_crc)
            except Broken:
                # Perhaps it was written since.
                pass
        segment = self._find(position)
        end = segment.end
        if self._positions is not None:
            end = min(end, self._positions.view[PUBLISHED])
        if size <= 0 or position + size > end:
            raise Broken(f"the size in its entry is wrong: {size} bytes")
        wanted = min(max(size, WINDOW), end - position)
        data = segment.pread(wanted, position - segment.start)
        if why := self.why_unread(position, size):
            raise Broken(why)
        self._window = position, data
        return checked(data, 0, position, size, check_crc)

    def why_unread(self, position: int, size: int) -> str:
        """The disk's error for bytes of the log; empty if they were read."""
        segment = self.log.find(position) if self.unread.is_bad else None
        if segment is None:
            return ""
        return self.unread.why(segment.path, position - segment.start, size)

    def _find(self, position: int) -> LogSegment:
        """The segment of a position; the broker may have made it since.

        @raise Broken: there is none.
        """
        segment = self.log.find(position)
        if segment is None and position >= 0 and not self.is_clean:
            self.log = self.log.again()
            segment = self.log.find(position)
        if segment is None:
            raise Broken("there is no file")
        return segment

    def read(
        self,
        topic: str,
        queue_id: int,
        offset: int,
        until: int,
        max_bytes: int = 4 << 20,
    ) -> Piece:
        """Messages of a range, as many as fit, at least one.

        @param until: the offset behind the range.
        @raise StoreError: a record of the range cannot be read; one sentence. Those
            before it were handed out by the calls before.
        """
        queue = self._queue(topic, queue_id)
        if not queue.first <= offset <= until <= queue.end:
            raise StoreError(
                f"{topic}/{queue_id} can be read from {queue.first} to {queue.end}, "
                f"not from {offset} to {until}."
            )
        records: list[bytes] = []
        total = 0
        at = offset
        last = queue.entry(at - 1) if at > queue.first else None
        before = last[0] if last is not None else -1
        while at < until:
            try:
                entries = queue.entries(at, min(until - at, ENTRY_BATCH_SIZE))
            except StoreError:
                if records:
                    return Piece(records, at)
                raise
            if not entries:
                raise StoreError(f"{topic}/{queue_id} was cut while it was read.")
            for position, size, _ in entries:
                if records and total + size > max_bytes:
                    return Piece(records, at)
                at += 1
                if size == FILLED_SIZE and position == 0:
                    continue
                try:
                    if position == before:
                        raise Broken("the record before has its place")
                    before = position
                    data, _ = self._record(position, size)
                except Broken as error:
                    if records:
                        return Piece(records, at - 1)
                    raise StoreError(
                        f"Message {at - 1} of {topic}/{queue_id}, at position "
                        f"{position}, cannot be read: {error}."
                    ) from None
                records.append(data)
                total += size
        return Piece(records, at)

    def log_bytes(self, position: int, size: int) -> bytes:
        """Bytes of one file of the log, whatever they are.

        @raise StoreError: they are not there, or cannot be read; the rest of a
            sentence.
        """
        try:
            segment = self._find(position)
        except Broken as error:
            raise StoreError(str(error)) from None
        end = segment.end
        if self._positions is not None:
            end = min(end, self._positions.view[PUBLISHED])
        if position + size > end:
            raise StoreError("the log ends")
        data = segment.pread(size, position - segment.start)
        if why := self.why_unread(position, size):
            raise StoreError(why)
        return data

    def record(self, position: int, size: int) -> bytes:
        """One record, checked.

        @raise StoreError: none of that size stands there; the rest of a sentence.
        """
        try:
            return self._record(position, size)[0]
        except Broken as error:
            raise StoreError(str(error)) from None

    def offset_by_time(self, topic: str, queue_id: int, ms: int) -> int:
        """The first offset of a message stored at a time or later; else the end."""
        queue = self._queue(topic, queue_id)
        low, high = queue.first, queue.end
        while low < high:
            middle = (low + high) // 2
            position, size, _ = queue.entries(middle, 1)[0]
            try:
                stored_ms = self._record(position, size)[1][6]
            except Broken:
                stored_ms = -1
            if stored_ms < ms:
                low = middle + 1
            else:
                high = middle
        return low

    def close(self) -> None:
        """Close all files."""
        self.log.close()
        if self._positions is not None:
            self._positions.close()
            self._positions = None
