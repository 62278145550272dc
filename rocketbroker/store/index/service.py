# -*- test-case-name: tests.store.index.test_service -*-
"""The index service: finds the messages of a topic by a key or a unique key.

It is built behind the dispatch, which hands over the records as it has them in memory.
A step enters the messages of some milliseconds, as a key costs the less the more are
entered together: about 1 us for a message with two keys. As long as there is a file
with room this waits for the disk as little as the log does, and runs between the
turns: a thread would hold the interpreter for as long, and find the messages in another
processor's cache (1.8 us). All else needs a thread: to make a file, and to read from
the log records that were not handed over. The newest file holds the position up to
which the index is complete, so the next start does what was not done when a broker
stopped.

After an unclean stop the files that may not be on the disk are removed, and their keys
are read from the log again. (RocketMQ reads only as far back as its recovery does, and
loses the keys of earlier messages.)

C{docs/facts/store.md} 12, 15.1 and 17.2.
"""

from __future__ import annotations

import contextlib
import os
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.blocks import UNREADABLE
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.files.os_errors import reason
from rocketbroker.records.hashing import index_hash, unsigned_hash
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.resync import Resync
from rocketbroker.store.commitlog.scanner import Scan
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.writer import Hint
from rocketbroker.store.disk_usage import describe_refusal
from rocketbroker.store.index.buffer import KeyColumns, Share
from rocketbroker.store.index.file import (
    FOLDER,
    IndexFile,
    create,
    next_path,
)
from rocketbroker.store.index.keys import Keys
from rocketbroker.store.index.loading import believed_files
from rocketbroker.store.interfaces import KeyResult
from rocketbroker.store.running_flags import WRITE_INDEX_FILE_ERROR, RunningFlags
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    MIN_POSITION,
    PUBLISHED,
    SharedPositions,
)

#: So far behind, in bytes of log, appends that are handed over are kept; behind that
#: the log is read again.
MAX_BEHIND: Final = 64 << 20

#: Messages with properties of more bytes on average are entered a few at a time, as
#: each may have a thousand keys.
LARGE_PROPERTIES: Final = 1024
_A_FEW: Final = 64

#: Records that one step reads from the log: 5 ms of a thread, behind which others get
#: their turn, as an index may have to be built from the whole log.
MAX_READ: Final = 2048

#: Messages that are entered at once: so many stay in the cache of a processor.
ROW_BATCH_SIZE: Final = 1024

#: With room for fewer keys a step may need another file, which takes time to be made.
NEAR_FULL: Final = 1 << 16

#: The message when the disk refuses.
INDEX_REFUSED: Final = "the index in {} cannot be written"

#: How long, in ms, a disk that has refused is left alone.
RETRY_MS: Final = 1000

#: Hashes of topics that are kept.
MAX_TOPICS: Final = 4096

#: Not more bytes are found by a key, but for one record: clients read frames of 16 MiB.
MAX_FOUND_BYTES: Final = 15 << 20


@final
class Index:
    """The index of a store. Steps and queries may come from several threads.

    @ivar position: all records before it are in the index.
    @ivar flushed_ms: the latest end time of a file that is on the disk.
    @ivar flushed_position: the last record of the last file that is on the disk, with
        all before it; 0 if none is.
    @ivar entered: how many keys were entered.
    @ivar failures: how many steps the disk has refused.
    @ivar report: sentences about files that were ignored or removed.
    """

    def __init__(
        self,
        open_files: OpenFiles,
        options: StoreOptions,
        segments: Segments,
        positions: SharedPositions,
        wall_ms: Callable[[], int],
        flags: RunningFlags,
        record_at: Callable[[int], bytes | None],
        count: Callable[[str], None],
    ) -> None:
        """
        @param open_files: opens its files.
        @param record_at: the record at a position.
        @param count: called with a sentence about each file that cannot be read.
        """
        self._count = count
        self._open_files = open_files
        self._files = open_files.files
        self._folder = os.path.join(options.store_path_root_dir, FOLDER)
        self._slots = max(1, options.max_hash_slot_num)
        # Number 0 is no entry, and a file without any would be full at once.
        self._numbers = max(2, options.max_index_num)
        self.configure(options)
        self._segments = segments
        self._positions = positions
        self._wall_ms = wall_ms
        self._flags = flags
        self._record_at = record_at
        self._all: list[IndexFile] = []
        self._shares: deque[Share] = deque()
        self._topics: dict[str, int] = {}
        #: Held to build or query; and to flush, close or remove files.
        self._lock = threading.Lock()
        self._keeping = threading.Lock()
        self._refused_ms = -RETRY_MS
        self._closed = False
        self.position = 0
        self.flushed_ms = 0
        self.flushed_position = 0
        self.entered = 0
        self.failures = 0
        self.report: list[str] = []

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._enabled = options.message_index_enable
        self._max_found = options.max_msgs_num_batch

    # Starting.

    def load(self, clean: bool, checkpoint: Checkpoint) -> None:
        """I{Blocking.} Open the files that are there, once the log is recovered.

        @param clean: whether the last stop was a clean one.
        @param checkpoint: knows the files on the disk, if it was not.
        """
        self.flushed_ms = checkpoint.index_ms
        view = self._positions.view
        self._all = believed_files(
            self._open_files,
            self._folder,
            (self._slots, self._numbers),
            None if clean else checkpoint,
            view[PUBLISHED],
            self.report,
        )
        if self._all and self._all[-1].end_ms > 0:
            self.position = self._all[-1].end_position
        self.drop_before(view[MIN_POSITION])

    def drop_before(self, position: int) -> int:
        """I{Blocking.} Remove files of which no record is in the log any more; the last
        one stays.

        @param position: where the log begins.
        @return: how many were removed.
        @raise OSError: one could not be.
        """
        count = 0
        with self._lock, self._keeping:
            while len(self._all) > 1 and self._all[0].end_position < position:
                self._files.remove(self._all[0].path)
                self._all.pop(0).close()
                count += 1
            self.position = max(self.position, position)
        return count

    # Building.

    def hand_over(self, hint: Hint) -> None:
        """Take the messages of an append, so that the log need not be read."""
        if self._enabled and hint.end - self.position <= MAX_BEHIND:
            self._shares.append(Share(hint, self._prefix))

    def _prefix(self, topic: str) -> int:
        """The hash of a topic and C{#}, which come before each key."""
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= MAX_TOPICS:
                self._topics.clear()
            found = self._topics[topic] = unsigned_hash(topic + "#")
        return found

    @property
    def behind(self) -> int:
        """How many bytes of the log are dispatched and not in the index."""
        if not self._enabled or self._closed:
            return 0
        return max(0, int(self._positions.view[DISPATCHED]) - self.position)

    def build(self, max_records: int) -> bool:
        """I{Blocking.} Enter the keys of up to about C{max_records} records.

        @return: whether there is more to do.
        @raise OSError: the disk refused; a call in a second tries the same again.
        """
        with self._lock:
            if not self._may_build():
                return False
            self._try(max_records)
        return self.behind > 0

    def build_now(self, max_records: int) -> bool:
        """Enter the keys of up to about C{max_records} records that were handed over,
        if that needs no new file and no thread queries or builds.

        @return: whether that was so; else L{build} does it.
        @raise OSError: as there.
        """
        if not self._lock.acquire(blocking=False):
            return False
        try:
            last = self._all[-1] if self._all else None
            if last is None or not last.is_ready or last.room < NEAR_FULL:
                return False
            shares = self._shares
            if not shares or shares[0].start != self.position or not self._may_build():
                return False
            self._try(max_records)
            return True
        finally:
            self._lock.release()

    def _may_build(self) -> bool:
        """Whether there is something to do, and the disk has not just refused."""
        since_ms = self._wall_ms() - self._refused_ms
        return self.behind > 0 and not 0 <= since_ms < RETRY_MS

    def _try(self, max_records: int) -> None:
        """Build; report errors of the disk."""
        try:
            self._build(max_records)
        except OSError as error:
            if self._mend(error):
                return
            self.failures += 1
            self._refused_ms = self._wall_ms()
            reason = describe_refusal(self._files, self._folder, INDEX_REFUSED, error)
            self._flags.set(WRITE_INDEX_FILE_ERROR, True, reason, FOLDER)
            raise
        if self._flags.has(WRITE_INDEX_FILE_ERROR):
            self._flags.set(WRITE_INDEX_FILE_ERROR, False, by=FOLDER)

    def _mend(self, error: OSError) -> bool:
        """Let a file that the disk cannot read be built again, and those behind it.

        @return: whether that was the cause of the error.
        @raise OSError: it cannot be removed.
        """
        paths = [file.path for file in self._all]
        if error.errno not in UNREADABLE or error.filename not in paths:
            return False
        at = paths.index(error.filename)
        self._remove_from(at)
        self._count(
            f"A file of the index cannot be read: {reason(error)}. It is built again "
            "from the log, and with it those behind it."
        )
        return True

    def _remove_from(self, at: int) -> None:
        """Remove the files from one on; they are built again from the log."""
        with self._keeping:
            gone, self._all = self._all[at:], self._all[:at]
            for file in gone:
                file.close()
                self._files.remove(file.path)
        self._shares.clear()
        end = self._all[-1].end_position if self._all else 0
        self.position = max(end, int(self._positions.view[MIN_POSITION]))

    def truncate(self, position: int) -> None:
        """I{Blocking.} Have no keys of records from a position on; those of others in
        the same file are entered again."""
        with self._lock:
            self._shares.clear()
            at = sum(file.end_position < position for file in self._all)
            if at < len(self._all):
                self._remove_from(at)
                self._files.sync_dir(self._folder)
                # Of those that are left; the next flush notes their positions.
                self.flushed_ms = max([file.end_ms for file in self._all], default=0)
            self.position = min(self.position, position)

    def _build(self, max_records: int) -> None:
        limit: int = self._positions.view[DISPATCHED]
        position = self.position
        shares = self._shares
        while shares and shares[0].start < position:
            shares.popleft()
        rows = KeyColumns()
        used = 0
        while used < len(shares) and len(rows.positions) < max_records:
            share = shares[used]
            if share.start != position:
                break
            rows.take(share)
            position = share.end
            used += 1
        if not used:
            end = min(limit, shares[0].start) if shares else limit
            position = self._read(position, end, min(max_records, MAX_READ), rows)
        self._enter(rows)
        for _ in range(used):
            shares.popleft()
        self.position = position

    def _read(self, start: int, end: int, max_records: int, rows: KeyColumns) -> int:
        """Collect from the log.

        @return: how far that is.
        """
        start = max(start, self._positions.view[MIN_POSITION])
        if start >= end:
            return end
        scan = Scan(self._segments, start, end, check_crc=False)
        rows.read(scan, max_records, self._prefix)
        if scan.broken:
            # The dispatch has skipped it, too, and reported it; or it was just removed.
            lowest: int = self._positions.view[MIN_POSITION]
            if scan.position < lowest:
                return min(lowest, end)
            behind = Resync(self._segments).next_or_end(scan.position)
            return end if behind < 0 else min(behind, end)
        return min(scan.position, end)

    def _enter(self, rows: KeyColumns) -> None:
        """Enter the keys of messages that no step before has entered."""
        last = next((file for file in reversed(self._all) if file.count > 1), None)
        done = last.end_position if last is not None else -1
        if rows.positions and rows.positions[0] < done:
            rows.cut(bisect_left(rows.positions, done))
        size = sum(map(len, rows.properties))
        count = len(rows.positions)
        some = ROW_BATCH_SIZE if size <= LARGE_PROPERTIES * count else _A_FEW
        for start in range(0, count, some):
            keys, counts = rows.keys(start, start + some)
            at = 0
            if rows.positions[start] == done:
                # Some of that message's keys may be there already.
                first = counts if isinstance(counts, int) else counts[0]
                while at < first and self._has(keys.codes[at], done):
                    at += 1
            self._enter_keys(keys, at)

    def _has(self, code: int, position: int) -> bool:
        """Whether the last message in the index has an entry for a hash."""
        return any(file.has(code, position) for file in self._all[-2:])

    def _enter_keys(self, keys: Keys, at: int) -> None:
        """Enter keys from the one at C{at} on."""
        end = len(keys.codes)
        while at < end:
            file = self._writable()
            some = keys.part(at, min(end, at + file.room))
            file.add(some)
            at += len(some.codes)
            self.entered += len(some.codes)

    def _writable(self) -> IndexFile:
        """A file with room, which is made if the last one is full."""
        last = self._all[-1] if self._all else None
        if last is not None and last.room > 0:
            return last
        make_lasting(self._files, self._folder)
        path = next_path(self._files, self._folder, self._wall_ms(), last)
        made = create(self._open_files, path, self._slots, self._numbers, last)
        self._files.sync_dir(self._folder)
        self._all.append(made)
        return made

    def flush(self) -> tuple[int, int]:
        """I{Blocking.} Put full files on the disk; others are built again anyway.

        @return: the store time and the position up to which all of it is there.
        @raise OSError: the disk refused.
        """
        with self._keeping:
            position = 0
            for file in list(self._all):
                if file.room > 0:
                    continue
                if not file.is_flushed:
                    file.flush()
                    self.flushed_ms = max(self.flushed_ms, file.end_ms)
                position = file.end_position
            # Lower than it was, where files are built again.
            self.flushed_position = position
            return self.flushed_ms, position

    # Queries.

    def query(
        self, topic: str, key: str, max_found: int, begin_ms: int, end_ms: int
    ) -> KeyResult:
        """See L{rocketbroker.store.interfaces.IStore.find_by_key}.

        @raise OSError: the disk could not read the index, or none of the records found.
        """
        found, ms, position = self.find(topic, key, max_found, begin_ms, end_ms)
        records: list[bytes] = []
        size = 0
        refused: OSError | None = None
        for at in found:
            try:
                record = self._record_at(at)
            except OSError as error:
                # The records beside it can be returned all the same.
                refused = error
                continue
            if record is not None:
                size += len(record)
                if size > MAX_FOUND_BYTES and records:
                    break
                records.append(record)
        if refused is not None and not records:
            raise refused
        return KeyResult(records, ms, position)

    def find(
        self, topic: str, key: str, max_found: int, begin_ms: int, end_ms: int
    ) -> tuple[list[int], int, int]:
        """I{Blocking.} The positions of records that may have a key, in order.

        @return: these, and time and position of the last one in the index.
        @raise OSError: the disk refused to read a file.
        """
        code = index_hash(topic, key)
        max_found = min(max_found, self._max_found)
        found: list[int] = []
        with self._lock:
            if self._closed or not self._all:
                return [], 0, 0
            for file in reversed(self._all):
                if len(found) >= max_found:
                    break
                if file.count > 1:
                    if file.begin_ms <= end_ms and file.end_ms >= begin_ms:
                        try:
                            file.find(code, max_found, begin_ms, end_ms, found)
                        except OSError as error:
                            self._mend(error)
                            raise
                    if file.begin_ms < begin_ms:
                        break
            last = self._all[-1]
            return sorted(found), last.end_ms, last.end_position

    # Stopping.

    def finish(self) -> None:
        """I{Blocking.} Enter the messages that are left, if they are few, and put all
        on the disk.

        @raise OSError: the disk refused the flush.
        """
        if self.behind <= MAX_BEHIND:
            self._refused_ms = -RETRY_MS
            # The next start will enter the messages that cannot be entered now.
            with contextlib.suppress(OSError):
                while self.build(ROW_BATCH_SIZE):
                    pass
        self.flush()
        with self._keeping:
            if self._all:
                self._all[-1].flush()

    def close(self) -> None:
        """Close the files."""
        with self._lock, self._keeping:
            self._closed = True
            for file in self._all:
                file.close()
            self._all.clear()
