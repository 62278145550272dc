# -*- test-case-name: tests.store.test_index -*-
"""The index: which messages of a topic have a key, or a unique key.

It is built behind the dispatch, in steps that run in a thread: the dispatch hands over
what it knows of the records, which is an append to a list; what it does not hand over
is read from the log. How far the index is, its newest file says itself, so whatever was
not done when a broker stopped is done by the next.

After an unclean stop the files that may not be on the disk are removed, and what they
held is read from the log again. (The reference reads only as far back as its recovery
does, and loses the keys of what was before.)

The store sheet, sections 12, 15.1 and 17.2.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.bulkhashing import MOST_ROWS
from rocketbroker.records.hashing import index_hash, unsigned_hash
from rocketbroker.store.commitlog import Hint
from rocketbroker.store.flags import WRITE_INDEX_FILE_ERROR, RunningFlags
from rocketbroker.store.indexfile import IndexFile, create, file_size
from rocketbroker.store.indexkeys import codes_of
from rocketbroker.store.interfaces import KeyResult, Placed
from rocketbroker.store.lookahead import LookAhead
from rocketbroker.store.scanning import Scan
from rocketbroker.store.segments import Segments
from rocketbroker.store.words import DISPATCHED, MIN_POSITION, PUBLISHED, Words

FOLDER: Final = "index"

#: So far behind, in bytes of log, what is handed over is kept; else it is read again.
MOST_BEHIND: Final = 64 << 20

#: Messages with properties of more bytes on average are entered a few at a time, as
#: each may have a thousand keys.
LARGE_PROPERTIES: Final = 1024
_A_FEW: Final = 64

#: Records that one step reads from the log: 5 ms of a thread, behind which others get
#: their turn, as an index may have to be built from all that the log holds.
MOST_READ: Final = 2048

#: How long, in ms, a disk that has refused is left alone.
RETRY_MS: Final = 1000

#: Hashes of topics that are remembered.
MOST_TOPICS: Final = 4096

#: Not more bytes are found by a key, but for one record: clients read frames of 16 MiB.
MOST_FOUND_BYTES: Final = 15 << 20


@final
class Rows:
    """Messages whose keys are to be entered, as columns.

    @ivar prefixes: the unsigned hash of each topic and C{#}.
    @ivar properties: the properties of each.
    @ivar positions: where each is, ascending.
    @ivar times: the store time of each in ms.
    """

    __slots__ = ("_known", "positions", "prefixes", "properties", "times")

    def __init__(self, known: dict[str, int]) -> None:
        """
        @param known: hashes of topics that were seen before.
        """
        self._known = known
        self.prefixes: list[int] = []
        self.properties: list[bytes] = []
        self.positions: list[int] = []
        self.times: list[int] = []

    def prefix(self, topic: str) -> int:
        """The hash of what stands before the keys of a topic."""
        found = self._known.get(topic)
        if found is None:
            if len(self._known) >= MOST_TOPICS:
                self._known.clear()
            found = self._known[topic] = unsigned_hash(topic + "#")
        return found

    def collect(self, hint: Hint) -> None:
        """Add what was appended, but for what is rolled back."""
        prefixes, properties = self.prefixes, self.properties
        positions = self.positions
        last = ""
        prefix = self.prefix(last)
        for draft in hint.drafts:
            if draft.sys_flag & 12 == 12:
                continue
            topic = draft.queue.topic
            if topic is not last:
                last = topic
                prefix = self.prefix(topic)
            if draft.parts is None:
                prefixes.append(prefix)
                properties.append(draft.properties)
                positions.append(draft.position)
            else:
                assert type(draft.parts) is not Placed, "those are read from the log"
                prefixes += [prefix] * len(draft.parts)
                properties += [part[2] for part in draft.parts]
                positions += draft.positions
        self.times += [hint.store_ms] * (len(positions) - len(self.times))

    def cut(self, count: int) -> None:
        """Leave out the first."""
        for column in (self.prefixes, self.positions, self.times):
            del column[:count]
        del self.properties[:count]


@final
class Index:
    """The index of a store. Steps and questions may come from several threads.

    @ivar position: all records before it are in the index.
    @ivar flushed_ms: the end time of the last file that is on the disk.
    @ivar entered: how many keys were entered.
    @ivar failures: how many steps the disk has refused.
    @ivar report: sentences about files that were ignored or removed.
    """

    def __init__(
        self,
        files: IFiles,
        options: StoreOptions,
        segments: Segments,
        words: Words,
        wall_ms: Callable[[], int],
        flags: RunningFlags,
        record_at: Callable[[int], bytes | None],
    ) -> None:
        """
        @param record_at: the record at a position.
        """
        self._files = files
        self._folder = os.path.join(options.store_path_root_dir, FOLDER)
        self._slots = max(1, options.max_hash_slot_num)
        # Number 0 is no entry, and a file without any would be full at once.
        self._numbers = max(2, options.max_index_num)
        self._enabled = options.message_index_enable
        self._most_found = options.max_msgs_num_batch
        self._segments = segments
        self._words = words
        self._wall_ms = wall_ms
        self._flags = flags
        self._record_at = record_at
        self._all: list[IndexFile] = []
        self._hints: deque[Hint] = deque()
        self._topics: dict[str, int] = {}
        #: One builds or asks at a time; and one flushes, closes or removes files.
        self._lock = threading.Lock()
        self._keeping = threading.Lock()
        self._retry_at_ms = 0
        self._closed = False
        self.position = 0
        self.flushed_ms = 0
        self.entered = 0
        self.failures = 0
        self.report: list[str] = []

    # Starting.

    def load(self, clean: bool, flushed_ms: int) -> None:
        """I{Blocking.} Open the files that are there, once the log is recovered.

        @param clean: whether the last stop was a clean one.
        @param flushed_ms: the index time stamp of the checkpoint.
        """
        self.flushed_ms = flushed_ms
        view = self._words.view
        believed = True
        for name in self._files.list(self._folder):
            found = self._open(os.path.join(self._folder, name), name)
            if found is None:
                continue
            is_whole = found.load()
            if not is_whole:
                self.report.append(
                    f"The header of {found.path} is broken; it is built again from "
                    "the log."
                )
            # Only full files are put on the disk, and noted.
            is_safe = clean or (found.room <= 0 and found.end_ms <= flushed_ms)
            is_within = found.end_position < max(view[PUBLISHED], 1)
            believed = believed and is_whole and is_safe and is_within
            if not believed:
                # Nor those that follow: what it held must come before them.
                found.close()
                self._files.remove(found.path)
                continue
            self._all.append(found)
        if self._all and self._all[-1].end_ms > 0:
            self.position = self._all[-1].end_position
        self.drop_before(view[MIN_POSITION])

    def _open(self, path: str, name: str) -> IndexFile | None:
        """A file of the index; None and a sentence if it is not one."""
        if not (name.isascii() and name.isdigit()) or self._files.is_dir(path):
            self.report.append(f"{path} is not an index file; it is ignored.")
            return None
        file = self._files.open(path)
        size = file.size()
        if size and size != file_size(self._slots, self._numbers):
            file.close()
            self.report.append(
                f"{path} ({size} bytes) does not fit maxHashSlotNum and "
                "maxIndexNum; it is ignored."
            )
            return None
        return IndexFile(path, file, self._slots, self._numbers)

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
        """Take what an append was, so that the log need not be read."""
        if self._enabled and hint.end - self.position <= MOST_BEHIND:
            self._hints.append(hint)

    @property
    def behind(self) -> int:
        """How many bytes of the log are dispatched and not in the index."""
        if not self._enabled or self._closed:
            return 0
        return max(0, int(self._words.view[DISPATCHED]) - self.position)

    def build(self, most: int) -> bool:
        """I{Blocking.} Enter the keys of up to about C{most} records.

        @return: whether there is more to do.
        @raise OSError: the disk refused; a call in a second tries the same again.
        """
        now_ms = self._wall_ms()
        retry_at_ms = self._retry_at_ms
        if not self.behind or retry_at_ms - RETRY_MS <= now_ms < retry_at_ms:
            return False
        with self._lock:
            try:
                self._build(most)
            except OSError:
                self.failures += 1
                self._flags.set(WRITE_INDEX_FILE_ERROR)
                self._retry_at_ms = now_ms + RETRY_MS
                raise
            self._flags.set(WRITE_INDEX_FILE_ERROR, False)
        return self.behind > 0

    def _build(self, most: int) -> None:
        if self._closed:
            return
        limit: int = self._words.view[DISPATCHED]
        position = self.position
        hints = self._hints
        while hints and hints[0].start < position:
            hints.popleft()
        rows = Rows(self._topics)
        used = 0
        while used < len(hints) and len(rows.positions) < most:
            hint = hints[used]
            if hint.start != position:
                break
            rows.collect(hint)
            position = hint.end
            used += 1
        if not used:
            end = min(limit, hints[0].start) if hints else limit
            position = self._read(position, end, min(most, MOST_READ), rows)
        self._enter(rows)
        for _ in range(used):
            hints.popleft()
        self.position = position

    def _read(self, start: int, end: int, most: int, rows: Rows) -> int:
        """Collect from the log.

        @return: how far that is.
        """
        start = max(start, self._words.view[MIN_POSITION])
        if start >= end:
            return end
        scan = Scan(self._segments, start, end, check_crc=False)
        for count, found in enumerate(scan, 1):
            position, _, topic_bytes, _, _, sys_flag, ms, properties = found
            if sys_flag & 12 != 12:
                topic = topic_bytes.decode("utf-8", "replace")
                rows.prefixes.append(rows.prefix(topic))
                rows.properties.append(properties)
                rows.positions.append(position)
                rows.times.append(ms)
            if count >= most:
                break
        if scan.broken:
            # What the dispatch has skipped, too, and told of; or it was just removed.
            lowest: int = self._words.view[MIN_POSITION]
            if scan.position < lowest:
                return min(lowest, end)
            behind = LookAhead(self._segments, 0).next_or_end(scan.position)
            return end if behind < 0 else min(behind, end)
        return min(scan.position, end)

    def _enter(self, rows: Rows) -> None:
        """Enter the keys of messages, but for what a step before has entered."""
        last = next((file for file in reversed(self._all) if file.count > 1), None)
        done = last.end_position if last is not None else -1
        if rows.positions and rows.positions[0] < done:
            rows.cut(bisect_left(rows.positions, done))
        size = sum(map(len, rows.properties))
        count = len(rows.positions)
        some = MOST_ROWS if size <= LARGE_PROPERTIES * count else _A_FEW
        for start in range(0, count, some):
            end = start + some
            codes = codes_of(rows.prefixes[start:end], rows.properties[start:end])
            positions = rows.positions[start:end]
            if positions[0] == done:
                codes[0] = tuple(
                    code
                    for code in codes[0]
                    if not any(file.has(code, done) for file in self._all[-2:])
                )
            self._enter_keys(
                list(chain.from_iterable(codes)),
                _spread(positions, codes),
                _spread(rows.times[start:end], codes),
            )

    def _enter_keys(
        self, codes: list[int], positions: list[int], times: list[int]
    ) -> None:
        at = 0
        while at < len(codes):
            file = self._writable()
            end = at + file.room
            file.add(codes[at:end], positions[at:end], times[at:end])
            self.entered += min(end, len(codes)) - at
            at = end

    def _writable(self) -> IndexFile:
        """A file with room, which is made if the last one is full."""
        last = self._all[-1] if self._all else None
        if last is not None and last.room > 0:
            return last
        make_lasting(self._files, self._folder)
        ms = self._wall_ms()
        day = time.strftime("%Y%m%d%H%M%S", time.localtime(ms // 1000))
        number = int(f"{day}{ms % 1000:03d}")
        names = self._files.list(self._folder)
        while f"{number:017d}" in names or (
            last is not None and number <= int(os.path.basename(last.path))
        ):
            number += 1
        path = os.path.join(self._folder, f"{number:017d}")
        made = create(self._files, path, self._slots, self._numbers, last)
        self._files.sync_dir(self._folder)
        self._all.append(made)
        return made

    def flush(self) -> None:
        """I{Blocking.} Put full files on the disk; others are built again anyway.

        @raise OSError: the disk refused.
        """
        with self._keeping:
            for file in list(self._all):
                if file.room <= 0 and not file.is_flushed:
                    file.flush()
                    self.flushed_ms = max(self.flushed_ms, file.end_ms)

    # Questions.

    def query(
        self, topic: str, key: str, most: int, begin_ms: int, end_ms: int
    ) -> KeyResult:
        """See L{rocketbroker.store.interfaces.IStore.find_by_key}."""
        found, ms, position = self.find(topic, key, most, begin_ms, end_ms)
        records: list[bytes] = []
        size = 0
        for at in found:
            record = self._record_at(at)
            if record is not None:
                size += len(record)
                if size > MOST_FOUND_BYTES and records:
                    break
                records.append(record)
        return KeyResult(records, ms, position)

    def find(
        self, topic: str, key: str, most: int, begin_ms: int, end_ms: int
    ) -> tuple[list[int], int, int]:
        """I{Blocking.} The positions of records that may have a key, in order.

        @return: these, and time and position of the last one in the index.
        """
        code = index_hash(topic, key)
        most = min(most, self._most_found)
        found: list[int] = []
        with self._lock:
            if self._closed or not self._all:
                return [], 0, 0
            for file in reversed(self._all):
                if len(found) >= most:
                    break
                if file.count > 1:
                    if file.begin_ms <= end_ms and file.end_ms >= begin_ms:
                        file.find(code, most, begin_ms, end_ms, found)
                    if file.begin_ms < begin_ms:
                        break
            last = self._all[-1]
            return sorted(found), last.end_ms, last.end_position

    # Stopping.

    def finish(self) -> None:
        """I{Blocking.} Enter what is left, if that is little, and put all on the disk.

        @raise OSError: the disk refused the last.
        """
        if self.behind <= MOST_BEHIND:
            self._retry_at_ms = 0
            # What cannot be entered, the next start will.
            with contextlib.suppress(OSError):
                while self.build(MOST_ROWS):
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


def _spread(column: list[int], codes: Sequence[tuple[int, ...]]) -> list[int]:
    """Each number as often as its message has keys."""
    counts = set(map(len, codes))
    if len(counts) > 1:
        return list(chain.from_iterable(map(repeat, column, map(len, codes))))
    (count,) = counts
    spread = [0] * (count * len(column))
    for at in range(count):
        spread[at::count] = column
    return spread
