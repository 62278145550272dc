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

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.hashing import index_hash, positive_hash
from rocketbroker.store.commitlog import Hint
from rocketbroker.store.indexfile import IndexFile, create, file_size
from rocketbroker.store.scanning import Scan
from rocketbroker.store.segments import Segments
from rocketbroker.store.words import DISPATCHED, MIN_POSITION, PUBLISHED, Words

FOLDER: Final = "index"

#: So far behind, in bytes of log, what is handed over is kept; else it is read again.
MOST_BEHIND: Final = 64 << 20

#: So many keys of one message are taken; KEYS may have 32 KiB, and each is an entry.
MOST_KEYS: Final = 1024

#: Not more records of one step, as all their keys are in memory until it ends.
MOST_AT_ONCE: Final = 4096

#: How long, in ms, a disk that has refused is left alone.
RETRY_MS: Final = 1000


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
    ) -> None:
        self._files = files
        self._folder = os.path.join(options.store_path_root_dir, FOLDER)
        self._slots = max(1, options.max_hash_slot_num)
        # Number 0 is no entry, and a file without any would be full at once.
        self._numbers = max(2, options.max_index_num)
        self._enabled = options.message_index_enable
        self._segments = segments
        self._words = words
        self._wall_ms = wall_ms
        self._all: list[IndexFile] = []
        self._hints: deque[Hint] = deque()
        self._lock = threading.Lock()
        self._from = 0
        self._retry_at_ms = 0
        self._closed = False
        self.position = 0
        self.flushed_ms = 0
        self.entered = 0
        self.failures = 0
        self.report: list[str] = []

    def load(self, clean: bool, flushed_ms: int) -> None:
        """Open the files that are there, once the log is recovered.

        @param clean: whether the last stop was a clean one.
        @param flushed_ms: the index time stamp of the checkpoint.
        """
        self.flushed_ms = flushed_ms
        view = self._words.view
        believed = True
        for name in self._files.list(self._folder):
            path = os.path.join(self._folder, name)
            if not (name.isascii() and name.isdigit()) or self._files.is_dir(path):
                self.report.append(f"{path} is not an index file; it is ignored.")
                continue
            file = self._files.open(path)
            size = file.size()
            if size and size != file_size(self._slots, self._numbers):
                file.close()
                self.report.append(
                    f"{path} ({size} bytes) does not fit maxHashSlotNum and "
                    "maxIndexNum; it is ignored."
                )
                continue
            found = IndexFile(path, file, self._slots, self._numbers)
            is_whole = found.load()
            if not is_whole:
                self.report.append(
                    f"The header of {path} is broken; it is built again from the log."
                )
            believed = (
                believed
                and is_whole
                and (clean or found.end_ms <= flushed_ms)
                and found.end_position < max(view[PUBLISHED], 1)
            )
            if not believed:
                # Nor those that follow: what it held must come before them.
                file.close()
                self._files.remove(path)
                continue
            self._all.append(found)
        while len(self._all) > 1 and self._all[0].end_position < view[MIN_POSITION]:
            old = self._all.pop(0)
            old.close()
            self._files.remove(old.path)
        if self._all and self._all[-1].end_ms > 0:
            self.position = self._all[-1].end_position
            # Of that record not all keys may be in what is left.
            whole = clean and believed
            self._from = self.position + 1 if whole else self.position
        self.position = max(self.position, view[MIN_POSITION])

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
        if not self.behind or self._wall_ms() < self._retry_at_ms:
            return False
        with self._lock:
            try:
                self._build(min(most, MOST_AT_ONCE))
            except OSError:
                self.failures += 1
                self._retry_at_ms = self._wall_ms() + RETRY_MS
                raise
        return self.behind > 0

    def _build(self, most: int) -> None:
        limit: int = self._words.view[DISPATCHED]
        position = self.position
        hints = self._hints
        while hints and hints[0].start < position:
            hints.popleft()
        keys: list[tuple[int, int, int]] = []
        count = used = 0
        while used < len(hints) and count < most:
            hint = hints[used]
            if hint.start != position:
                break
            self._collect(hint, keys)
            count += len(hint.drafts)
            position = hint.end
            used += 1
        if not used:
            end = min(limit, hints[0].start) if hints else limit
            position = self._read(position, end, most, keys)
        self._enter(keys)
        for _ in range(used):
            hints.popleft()
        self.position = position

    def _collect(self, hint: Hint, keys: list[tuple[int, int, int]]) -> None:
        """The keys of what was appended."""
        ms = hint.store_ms
        for draft in hint.drafts:
            if draft.sys_flag & 12 == 12:
                continue
            topic = draft.queue.topic + "#"
            if draft.parts is None:
                position = draft.position
                if position < self._from:
                    continue
                for key in keys_of(draft.properties):
                    keys.append((positive_hash(topic + key), position, ms))
                continue
            for part, position in zip(draft.parts, draft.positions, strict=True):
                if position < self._from:
                    continue
                for key in keys_of(part[2]):
                    keys.append((positive_hash(topic + key), position, ms))

    def _read(
        self, start: int, end: int, most: int, keys: list[tuple[int, int, int]]
    ) -> int:
        """The keys of what stands in the log.

        @return: how far that is.
        """
        start = max(start, self._words.view[MIN_POSITION])
        if start >= end:
            return end
        scan = Scan(self._segments, start, end, check_crc=False)
        for count, found in enumerate(scan, 1):
            position, _, topic_bytes, _, _, sys_flag, ms, properties = found
            if sys_flag & 12 != 12 and position >= self._from:
                topic = topic_bytes.decode("utf-8", "replace")
                for key in keys_of(properties):
                    keys.append((index_hash(topic, key), position, ms))
            if count >= most:
                break
        if scan.broken:
            # What the dispatch has skipped, too, and told of.
            segment = self._segments.find(scan.position)
            return min(segment.end if segment is not None else end, end)
        return min(scan.position, end)

    def _enter(self, keys: list[tuple[int, int, int]]) -> None:
        at = 0
        while at < len(keys):
            file = self._writable()
            some = keys[at : at + file.room]
            file.add(some)
            at += len(some)
            self.entered += len(some)
            # Were the next file refused, these would not come twice.
            self._from = max(self._from, some[-1][1])

    def _writable(self) -> IndexFile:
        """A file with room; a full one is put on the disk before the next is made."""
        last = self._all[-1] if self._all else None
        if last is not None:
            if last.room > 0:
                return last
            last.file.datasync()
            self.flushed_ms = last.end_ms
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

    # Questions.

    def find(
        self, topic: str, key: str, most: int, begin_ms: int, end_ms: int
    ) -> tuple[list[int], int, int]:
        """I{Blocking.} The positions of records that may have a key, in order.

        @return: these, and time and position of the last one in the index.
        """
        code = index_hash(topic, key)
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

    def finish(self) -> None:
        """I{Blocking.} Enter what is left, if that is little, and put all on the disk.

        @raise OSError: the disk refused; the next start does it.
        """
        if self.behind <= MOST_BEHIND:
            self._retry_at_ms = 0
            while self.build(MOST_AT_ONCE):
                pass
        with self._lock:
            if self._all and self._all[-1].count > 1:
                self._all[-1].file.datasync()
                self.flushed_ms = self._all[-1].end_ms

    def close(self) -> None:
        """Close the files."""
        with self._lock:
            self._closed = True
            for file in self._all:
                file.close()
            self._all.clear()


def keys_of(properties: bytes) -> list[str]:
    """Unique key and keys in a properties string; of two of a name the last counts."""
    keys = []
    unique = _value(properties, b"UNIQ_KEY\x01")
    if unique:
        keys.append(unique)
    if b"KEYS\x01" in properties:
        words = _value(properties, b"KEYS\x01").split(" ")
        keys += [key for key in words if key][:MOST_KEYS]
    return keys


def _value(properties: bytes, name: bytes) -> str:
    at = properties.rfind(name)
    while at > 0 and properties[at - 1] != 2:
        at = properties.rfind(name, 0, at)
    if at < 0:
        return ""
    start = at + len(name)
    end = properties.find(b"\x02", start)
    value = properties[start:] if end < 0 else properties[start:end]
    return value.decode("utf-8", "replace")
