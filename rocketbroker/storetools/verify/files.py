# -*- test-case-name: tests.storetools.verify.test_files -*-
"""The files of a store by themselves: which are missing, or have another length, and
which queues have lost their directory.

Of some the names of the others tell; of others the last entries of the queues, or what
was written down at the last clean stop
(L{rocketbroker.store.recovery.clean_shutdown}), unless somebody has appended to the
log since. A queue without a directory may be one of a topic that was deleted: then it
is not in the broker's C{config/topics.json} (if that is not there nothing is said), or
was made again (L{rocketbroker.store.recovery.fates}).

In a store in use, or after a crash, the last file of the log may be short, and the
queues may be anything: the next start deals with that.

The store sheet, sections 2, 7 and 15.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.commitlog.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.loading import MAX_MISSING_BEHIND
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.extension import FOLDER as EXTENSIONS
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.ordered import first_that
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.store.recovery.clean_shutdown import NAME as ENDS
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.store.recovery.fates import Fate, fate_of
from rocketbroker.store.recovery.known_topics import listed_topics
from rocketbroker.storetools.verify.logbegin import is_begin_lost
from rocketbroker.storetools.verify.rawqueues import raw_queues
from rocketbroker.storetools.verify.report import Fault, Remark, Tell

#: The directories of queues, and what the bytes in their files come in.
QUEUES: Final = (("consumequeue", SIZE), (BATCHES, BATCH_SIZE), (EXTENSIONS, 1))


@final
class FileVerification:
    """One look at them."""

    def __init__(
        self,
        reader: StoreReader,
        tell: Tell,
        remark: Callable[[Remark], None],
        restores: bool = False,
    ) -> None:
        """
        @param tell: is given each fault when it is found.
        @param remark: is given what may be wrong, and may be not.
        @param restores: whether queues are lost where nothing tells it.
        """
        self._reader = reader
        self._tell = tell
        self._remark = remark
        self._restores = restores
        self._ends = CleanShutdown(reader.files, reader.root)
        self._topics: frozenset[str] | None = None
        self._good_end = 0

    def before(self) -> None:
        """The walk is to begin: tell what is wrong with names and lengths."""
        self._log()
        self._small(CHECKPOINT)
        if self._reader.is_clean:
            for kind, unit in QUEUES:
                self._rows(kind, unit)

    def _small(self, name: str) -> None:
        """A small file that has to be readable if it is there."""
        path = os.path.join(self._reader.root, name)
        try:
            if self._reader.files.exists(path):
                self._reader.files.read(path)
        except StoreError as error:
            self._tell(Fault("unreadable", path, 0, str(error)))

    def _log(self) -> None:
        log = self._reader.log
        last = log.segments[-1].start if log.segments else -1
        if 0 < log.given != log.size > 0:
            text = f"its files are made for {log.size} bytes each; by the settings, "
            text += f"mappedFileSizeCommitLog, a broker takes only such of {log.given}"
            folder = log.folder
            self._tell(Fault("file", folder, self._reader.lowest, text))
        for odd in log.odd:
            is_short = odd.length < log.size
            if odd.start == last and is_short and not self._reader.is_clean:
                continue
            position = odd.start + min(odd.length, log.size)
            text = f"it has {odd.length} bytes and should have {log.size}"
            self._tell(Fault("file", odd.path, position, text))
        for odd in log.astray:
            text = f"no file of {log.size} bytes begins at position {odd.start}"
            self._tell(Fault("file", odd.path, odd.start, text))
        for start, end, path in log.gaps():
            text = f"the log is missing from here to position {end}"
            self._tell(Fault("file", path, start, text))

    def _rows(self, kind: str, unit: int) -> None:
        """The files of all queues of a kind."""
        reader = self._reader
        rows: dict[tuple[str, int], FileSequence] = {}
        votes: Counter[int] = Counter()
        for topic in reader.topics(kind):
            for queue_id in reader.queues(topic, kind):
                row = rows[topic, queue_id] = reader.row(kind, topic, queue_id, unit)
                votes[row.size] += len(row.lengths)
        size = max(votes, key=lambda size: (votes[size], size), default=0)
        for (topic, queue_id), row in rows.items():
            folder = os.path.join(reader.root, kind, topic, str(queue_id))
            self._row(row, folder, size, (topic, queue_id))

    def _row(
        self, row: FileSequence, folder: str, size: int, queue: tuple[str, int]
    ) -> None:
        last = max(row.lengths, default=0)
        for start, length in sorted(row.lengths.items()):
            path = os.path.join(folder, segment_name(start))
            if length != size and (length or start != last):
                text = f"it has {length} bytes, and others of the queues have {size}"
                position = start + min(length, size)
                self._tell(Fault("file", path, position, text, queue=queue))
        for before, behind in itertools.pairwise(sorted(row.lengths)):
            end = before + (row.size or size)
            if end < behind:
                path = os.path.join(folder, segment_name(end))
                text = f"the queue is missing from here to its byte {behind}"
                self._tell(Fault("file", path, end, text, queue=queue))

    def after(self, good_end: int, reached: int) -> None:
        """The walk is over: tell what is missing before and behind what is there.

        @param good_end: behind the last record that could be read.
        @param reached: behind all that is more than zeros.
        """
        reader, ends = self._reader, self._ends
        self._topics = listed_topics(reader.files, reader.root)
        if not reader.log.paths:
            self._once()
        if not reader.is_clean:
            return
        self._good_end = good_end
        try:
            ends.load()
        except StoreError as error:
            path = os.path.join(reader.root, ENDS)
            self._tell(Fault("unreadable", path, 0, str(error)))
        folder = reader.log.folder
        if good_end > ends.published:
            self._by_queues(folder)
            return
        if 0 <= ends.first < reader.lowest:
            self._begin(folder, ends.first)
        short = {odd.path for odd in reader.log.odd}
        if reached < ends.published:
            text = "the log ends here; when the store was stopped it ended at "
            text += f"{ends.published}"
            path = os.path.join(folder, segment_name(reached))
            for segment in reader.segments:
                if segment.start <= reached < segment.end:
                    path = segment.path
            if path in short:
                # That says it.
                return
            self._tell(Fault("file", path, reached, text))

    def _once(self) -> None:
        """There is no file of the log: see whether there ever was one."""
        reader = self._reader
        checkpoint = Checkpoint(reader.files, reader.root)
        with contextlib.suppress(StoreError):
            # That it cannot be read was told before.
            checkpoint.load()
        if checkpoint.physic_ms > 0:
            text = "the log and the queues have no files; by the checkpoint they had "
            text += f"messages until {checkpoint.physic_ms}: somebody has removed them "
            text += "all, or they are lost"
            self._remark(Remark(reader.log.folder, 0, text))

    def _begin(self, folder: str, first: int) -> None:
        """The log began earlier when it was stopped."""
        reader = self._reader
        path = os.path.join(folder, segment_name(first))
        text = "the log began here when the store was stopped; now its files begin at "
        text += str(reader.lowest)
        if is_begin_lost(raw_queues(reader.files, reader.root), first, reader.lowest):
            self._tell(Fault("file", path, first, text))
            return
        text += "; another broker has removed some by age, or they are lost"
        self._remark(Remark(path, first, text))

    def _by_queues(self, folder: str) -> None:
        """The last entries of the queues lead behind the last file; not one alone, as
        that may be rotten."""
        reader = self._reader
        end = reader.log.segments[-1].end if reader.segments else 0
        limit = end + MAX_MISSING_BEHIND * reader.log.size
        said = []
        for topic in reader.topics():
            for queue_id in reader.queues(topic):
                behind = reader.max_offset(topic, queue_id)
                first = max(behind - 2, reader.min_offset(topic, queue_id))
                for position, size, _ in reader.entries(topic, queue_id, first)[:2]:
                    if end <= position < limit:
                        said.append(position + size)
        if len(said) > 1:
            path = os.path.join(folder, segment_name(end))
            text = f"the log ends here; entries of the queues lead up to {max(said)}"
            self._tell(Fault("file", path, end, text))

    def fate(self, topic: str, queue_id: int, latest: int, has_older: bool) -> Fate:
        """What became of a queue without a directory, or of what the log has from
        before the first unit of a batch queue; after the walk.

        @param latest: where the last such record stands.
        @param has_older: whether the log has records of others of the topic's queues
            from before these begin.
        """
        reader = self._reader
        if self._topics is None or topic not in self._topics:
            return Fate.DELETED
        fate = fate_of(self._begins(topic), latest, has_older)
        if self._restores:
            return Fate.DELETED if fate is Fate.DELETED else Fate.LOST
        if not reader.is_clean:
            # The next start looks.
            return Fate.DELETED
        exists = any(queue_id in reader.queues(topic, kind) for kind, _ in QUEUES[:2])
        ends = self._ends
        if self._good_end <= ends.published and ends.is_undeleted and not exists:
            was_there = ends.end_of(topic, queue_id) > 0
            return Fate.LOST if was_there else Fate.DELETED
        return fate

    def _begins(self, topic: str) -> Iterator[int]:
        """Where the first records are that a topic's queues lead to."""
        for kind, unit in QUEUES[:2]:
            for queue_id in self._reader.queues(topic, kind):
                row = self._reader.row(kind, topic, queue_id, unit)
                begin = _begin_of(row, unit)
                if begin >= 0:
                    yield begin


def _begin_of(row: FileSequence, unit: int) -> int:
    """Where the record of the first entry, or unit, is; 0 if the first files were
    removed, -1 if there is none."""
    if row.start:
        return 0

    def place(number: int) -> tuple[int, int]:
        data = row.read(number * unit, ENTRY.size)
        position, size, _ = ENTRY.unpack(data.ljust(ENTRY.size, b"\0"))
        return position, size

    count = row.end // unit
    first = first_that(0, count, lambda number: place(number)[1] != FILLED_SIZE)
    position, size = place(first)
    return position if size > 0 else -1
