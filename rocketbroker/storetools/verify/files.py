# -*- test-case-name: tests.storetools.verify.test_files -*-
"""A check of the files of a store: missing ones, wrong lengths, and queues that have
lost their directory.

A missing file shows in the names of the others, in the last entries of the queues, or
in the file written at the last clean stop
(L{rocketbroker.store.recovery.clean_shutdown}), unless another broker has appended to
the log since. A queue without a directory is lost if it had messages at that stop; else
its topic was deleted.

In a store in use, or after a crash, the last file of the log may be short, and the
queues may be anything: the next start deals with that.

Only queues show whether the first files of the log were lost, and not removed by age.
Retention removes files of the log, and then those of queues that lead nowhere else. So
a whole file of a queue that leads only to removed positions means a loss. If no queue
has one whole file before the log, the two cannot be distinguished.

docs/facts/store.md 2, 7, 15 and 17.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import FILLED_SIZE, SIZE
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.commitlog.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.loading import MAX_MISSING_BEHIND
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.extension import FOLDER as EXTENSIONS
from rocketbroker.store.consumequeue.table import FOLDER
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.store.reader.queue import QueueReader
from rocketbroker.store.reader.unreadable import Unreadable
from rocketbroker.store.recovery.clean_shutdown import NAME as ENDS
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.storetools.verify.lookup import queues_in
from rocketbroker.storetools.verify.queues import SHARED_PREFIX
from rocketbroker.storetools.verify.report import Fault, Remark, Report

#: The directories of queues, and what the bytes in their files come in.
QUEUES: Final = (("consumequeue", SIZE), (BATCHES, BATCH_SIZE), (EXTENSIONS, 1))


@final
class FileVerification:
    """One check of the files."""

    def __init__(
        self,
        reader: StoreReader,
        report: Report,
        remark: Callable[[Remark], None],
    ) -> None:
        """
        @param report: is given each fault when it is found.
        @param remark: is given each finding that is no fault.
        """
        self._reader = reader
        self._report = report
        self._remark = remark
        self._ends = CleanShutdown(reader.files, reader.root)
        self._good_end = 0

    def before(self) -> None:
        """Report wrong names and lengths; before the walk."""
        self._log()
        self._small(CHECKPOINT)
        if self._reader.is_clean:
            for kind, unit in QUEUES:
                self._rows(kind, unit)

    def _small(self, name: str) -> None:
        """A small file that has to be readable if it is there."""
        reader = self._reader
        path = os.path.join(reader.root, name)
        if reader.files.exists(path):
            with contextlib.suppress(StoreError), reader.unread.naming(path):
                reader.files.read(path)

    def _log(self) -> None:
        log = self._reader.log
        last = log.segments[-1].start if log.segments else -1
        if 0 < log.given != log.size > 0:
            text = f"its files are made for {log.size} bytes each; by the settings, "
            text += f"mappedFileSizeCommitLog, a broker takes only such of {log.given}"
            folder = log.folder
            self._report(Fault("file", folder, self._reader.lowest, text))
        for odd in log.odd:
            is_short = odd.length < log.size
            if odd.start == last and is_short and not self._reader.is_clean:
                continue
            position = odd.start + min(odd.length, log.size)
            text = f"it has {odd.length} bytes and should have {log.size}"
            self._report(Fault("file", odd.path, position, text))
        for odd in log.astray:
            text = f"no file of {log.size} bytes begins at position {odd.start}"
            self._report(Fault("file", odd.path, odd.start, text))
        for start, end, path in log.gaps():
            text = f"the log is missing from here to position {end}"
            self._report(Fault("file", path, start, text))

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
                self._report(Fault("file", path, position, text, queue=queue))
        for before, behind in itertools.pairwise(sorted(row.lengths)):
            end = before + (row.size or size)
            if end < behind:
                path = os.path.join(folder, segment_name(end))
                text = f"the queue is missing from here to its byte {behind}"
                self._report(Fault("file", path, end, text, queue=queue))

    def after(self, good_end: int, reached: int) -> None:
        """Report files that are missing at both ends of the log; after the walk.

        @param good_end: behind the last record that could be read.
        @param reached: behind all that is more than zeros.
        """
        reader, ends = self._reader, self._ends
        if not reader.log.paths:
            self._once()
        if not reader.is_clean:
            return
        self._good_end = good_end
        path = os.path.join(reader.root, ENDS)
        with contextlib.suppress(StoreError), reader.unread.naming(path):
            ends.load()
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
            region = 0, 0
            segment = reader.log.find(reached)
            if segment is not None:
                path = segment.path
                region = reached, min(ends.published, segment.end)
            if path in short:
                # That was reported before.
                return
            self._report(Fault("file", path, reached, text, region))

    def _once(self) -> None:
        """There is no file of the log: see whether there ever was one."""
        reader = self._reader
        checkpoint = Checkpoint(reader.files, reader.root)
        with contextlib.suppress(OSError):
            # An unreadable one was reported before.
            checkpoint.load()
        if checkpoint.physic_ms > 0:
            text = "the log and the queues have no files; by the checkpoint they had "
            text += f"messages until {checkpoint.physic_ms}: they were all removed, "
            text += "or are lost"
            self._remark(Remark(reader.log.folder, 0, text))

    def _begin(self, folder: str, first: int) -> None:
        """The log began earlier when it was stopped."""
        reader = self._reader
        path = os.path.join(folder, segment_name(first))
        text = "the log began here when the store was stopped; now its files begin at "
        text += str(reader.lowest)
        queues = raw_queues(reader.files, reader.root).values()
        if is_begin_lost(queues, first, reader.lowest):
            self._report(Fault("file", path, first, text))
            return
        text += "; another broker has removed some by age, or they are lost"
        self._remark(Remark(path, first, text))

    def _by_queues(self, folder: str) -> None:
        """The last entries of the queues lead behind the last file; not one alone, as
        that may be corrupt."""
        reader = self._reader
        end = reader.log.segments[-1].end if reader.segments else 0
        limit = end + MAX_MISSING_BEHIND * reader.log.size
        ends = []
        for topic in reader.topics():
            for queue_id in reader.queues(topic):
                behind = reader.max_offset(topic, queue_id)
                first = max(behind - 2, reader.min_offset(topic, queue_id))
                with contextlib.suppress(StoreError):
                    for position, size, _ in reader.entries(topic, queue_id, first)[:2]:
                        if end <= position < limit:
                            ends.append(position + size)
        if len(ends) > 1:
            path = os.path.join(folder, segment_name(end))
            text = f"the log ends here; entries of the queues lead up to {max(ends)}"
            self._report(Fault("file", path, end, text))

    def is_lost(self, topic: str, queue_id: int) -> bool:
        """Whether a queue without a directory had messages when the store was stopped;
        after the walk."""
        ends = self._ends
        is_known = self._reader.is_clean and self._good_end <= ends.published
        return is_known and ends.is_undeleted and ends.end_of(topic, queue_id) > 0


def raw_queues(files: IFiles, root: str) -> dict[tuple[str, int], QueueReader]:
    """All queues that are not of other topics' messages, each to its last entry,
    whether that leads anywhere."""
    found = {}
    for topic, queue_id in sorted(queues_in(files, os.path.join(root, FOLDER))):
        if not topic.startswith(SHARED_PREFIX):
            folder = os.path.join(root, FOLDER, topic, str(queue_id))
            queue = QueueReader(files, folder, Unreadable())
            queue.bound(0, None)
            found[topic, queue_id] = queue
    return found


def is_begin_lost(queues: Iterable[QueueReader], first: int, lowest: int) -> bool:
    """Whether a queue has a file that would have been removed with the log's.

    @param first: where the log has begun.
    @param lowest: where it begins now.
    """

    def leads_before(queue: QueueReader, offset: int) -> bool:
        entry = queue.entry(offset)
        if entry is None:
            return False
        position, size, _ = entry
        return 0 < size < FILLED_SIZE and first <= position < lowest

    for queue in queues:
        last = queue.start + queue.file_size // SIZE - 1
        # Another file has to follow; and one entry alone may be corrupt.
        if last < queue.end - 1 and all(
            leads_before(queue, offset) for offset in (last - 1, last)
        ):
            return True
    return False
