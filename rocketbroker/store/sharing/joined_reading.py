# -*- test-case-name: tests.store.sharing.test_joined_reading -*-
"""A store that another process has opened, joined to read messages from it.

A read is done as the owner would do it, or not at all: then the owner is to do it. It
is not done of what may not be in memory any more, as that blocks; when anything looks
damaged, which the owner counts and reports; where nothing is found that the reader may
have; and when the owner has changed something meanwhile.

The owner removes files while they are open here. So those that do not belong to the
log or a queue any more are closed in L{JoinedReading.let_go}, or their blocks would not
be freed.
"""

from __future__ import annotations

import os
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import SIZE
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.reading.pull import Reading
from rocketbroker.store.reads import (
    FOUND,
    NO_MATCHED_MESSAGE,
    Matches,
    MessageFilter,
    ReadResult,
)
from rocketbroker.store.shared_positions import (
    MIN_POSITION,
    POSITIONS_NAME,
    PUBLISHED,
    READ_VERSION,
    JoinedPositions,
)

#: After so many reads the pages of the log that were read through mappings are given
#: back: they would count as memory of this process, up to the size of the log.
READS: Final = 64

#: At each so many calls of L{JoinedReading.let_go} all queues are looked at: there may
#: be ten thousands, and their files are removed far less often than once a minute.
CALLS: Final = 60

#: What a read may have found; of all else the owner decides what it means.
_GOOD: Final = frozenset((FOUND, NO_MATCHED_MESSAGE))


@final
class JoinedReading:
    """The store, for reads only."""

    def __init__(
        self, open_files: OpenFiles, options: StoreOptions, memory_bytes: int
    ) -> None:
        """
        @param open_files: opens the files that are read.
        @param options: those of the owner.
        @param memory_bytes: the machine's memory.
        @raise OSError: the store has no owner that lets others read.
        """
        root = options.store_path_root_dir
        self._files = files = open_files.files
        self._folder = os.path.join(root, "consumequeue")
        self._file_size = -(-options.mapped_file_size_consume_queue // SIZE) * SIZE
        self._open_files = open_files
        self._file = files.open(os.path.join(root, POSITIONS_NAME))
        self._positions = JoinedPositions(self._file)
        log = options.store_path_commit_log or os.path.join(root, "commitlog")
        old = options.read_only_commit_log_store_paths or ""
        self._segments = Segments(
            self._open_files,
            [folder for folder in log.split(",") if folder],
            options.mapped_file_size_commit_log,
            [folder for folder in old.split(",") if folder],
        )
        self._memory_bytes = memory_bytes
        self.configure(options)
        self._queues: dict[int, Queue] = {}
        self._reads = 0
        self._calls_left = CALLS

    @property
    def version(self) -> int:
        """By which version of what the owner has told others may read; 0: by none."""
        return int(self._positions.view[READ_VERSION])

    def configure(self, options: StoreOptions) -> None:
        """Obey those of these settings that may change while the store is open."""
        self._options = options
        self._corruption_log = CorruptionLog()
        self._reading = Reading(
            self._segments,
            self._positions,
            options,
            self._memory_bytes,
            self._corruption_log,
        )

    def queue(self, topic: str, queue_id: int, slot: int, trusted_from: int) -> Queue:
        """The handle of a queue; the same one each time.

        @param slot: the owner's, of the same queue.
        @param trusted_from: the owner has entered all entries from this offset on.
        @raise OSError: there is no such slot.
        """
        known = self._queues.get(slot)
        if known is not None and (known.topic, known.queue_id) == (topic, queue_id):
            known.trusted_from = trusted_from
            return known
        self._positions.reach(slot)
        folder = f"{self._folder}/{topic}/{queue_id}"
        files = QueueFiles(self._open_files, folder, self._file_size)
        queue = Queue(topic, queue_id, self._positions, slot, files, False, True)
        queue.trusted_from = trusted_from
        self._queues[slot] = queue
        return queue

    def read(
        self,
        queue: Queue,
        offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches,
        version: int,
    ) -> ReadResult | None:
        """Read as L{IStore.read<rocketbroker.store.interfaces.IStore.read>} does, or
        leave it to the owner.

        @param version: by which C{queue} was made.
        @return: what was found; None: the owner is to read it.
        """
        try:
            result = self._read(queue, offset, max_messages, max_bytes, matches)
        except OSError:
            return None
        if self._positions.view[READ_VERSION] != version:
            return None
        self._reads += 1
        if self._reads >= READS:
            self._reads = 0
            for segment in self._segments.all:
                segment.forget_pages()
        return result

    def _read(
        self,
        queue: Queue,
        offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches,
    ) -> ReadResult | None:
        self._reach_log()
        if not 0 <= offset < queue.max_offset or not self._reach(queue, offset):
            return None
        reading = self._reading
        if matches is None:
            plain = reading.read_warm(queue, offset, max_messages, max_bytes)
            if plain is not None:
                return plain
        if reading.is_cold(queue, offset):
            return None
        result = reading.read(queue, offset, max_messages, max_bytes, matches)
        if self._corruption_log.records:
            self.configure(self._options)
            return None
        if result.status not in _GOOD or not self._is_written(queue, result):
            return None
        return result

    def entries(
        self, queue: Queue, offset: int, max_entries: int
    ) -> list[tuple[int, int, int]]:
        """See L{IStore.entries<rocketbroker.store.interfaces.IStore.entries>}."""
        self._reach(queue, offset)
        return queue.entries(offset, max_entries)

    def has_wanted(
        self, queue: IQueue, offset: int, max_messages: int, wanted: MessageFilter
    ) -> tuple[bool, int]:
        """See L{IStore.has_wanted<rocketbroker.store.interfaces.IStore.has_wanted>}."""
        assert type(queue) is Queue
        self._reach_log()
        if not self._reach(queue, offset):
            return True, 0
        return self._reading.has_wanted(queue, offset, max_messages, wanted)

    def _is_written(self, queue: Queue, result: ReadResult) -> bool:
        """Whether all entries that a read has passed are in the files: on a full disk
        the last ones of a queue are in the owner's memory, and zeros here."""
        last = queue.read(result.next_offset - 1, 1)
        return len(last) == SIZE and any(last)

    def _reach(self, queue: Queue, offset: int) -> bool:
        """Know the file of an entry, if there is one."""
        files = queue.files
        if files.find(offset * SIZE) is not None:
            return True
        starts = [position_of_name(name) for name in self._files.list(files.folder)]
        found = sorted(start for start in starts if start >= 0)
        files.close()
        if found and found[-1] - found[0] == (len(found) - 1) * files.size:
            files.know(found[0], len(found))
        return files.find(offset * SIZE) is not None

    def _reach_log(self) -> None:
        """Know all segments of the log that there are now."""
        view, known = self._positions.view, self._segments.all
        if (
            not known
            or known[-1].end < view[PUBLISHED]
            or known[0].end <= view[MIN_POSITION]
        ):
            self._list_log(view[MIN_POSITION], view[PUBLISHED])

    def _list_log(self, lowest: int, published: int) -> None:
        """Look for the segments of the log; those before a gap are left out."""
        segments = self._segments
        before = {segment.start: segment for segment in segments.all}
        found: dict[int, Segment] = {}
        for folder in (*segments.folders, *segments.read_only):
            for name in self._files.list(folder):
                start = position_of_name(name)
                if start % segments.size or not (
                    lowest - segments.size < start < max(published, 1)
                ):
                    continue
                known = before.pop(start, None)
                if known is None:
                    path, size = os.path.join(folder, name), segments.size
                    known = Segment(start, size, path, self._open_files)
                found[start] = known
        for segment in before.values():
            segment.close()
        run: list[Segment] = []
        for start in sorted(found):
            if run and run[-1].end != start:
                for segment in run:
                    segment.close()
                run = []
            run.append(found[start])
        segments.all = run

    def let_go(self) -> None:
        """Close the files that the owner has removed; once in a while."""
        if self._segments.all:
            self._reach_log()
        for segment in self._segments.all:
            segment.forget_pages()
        self._calls_left -= 1
        if not self._calls_left:
            self._calls_left = CALLS
            for queue in self._queues.values():
                files = queue.files
                end = files.all[0].start + files.size if files.all else 0
                if 0 < end <= queue.min_offset * SIZE:
                    files.close()

    def forget(self) -> None:
        """Know no files, as the owner has changed something: others may have their
        names by now."""
        for queue in self._queues.values():
            queue.files.close()
        for segment in self._segments.all:
            segment.close()
        self._segments.all = []

    def close(self) -> None:
        """Close all files."""
        self.forget()
        self._file.close()
