# -*- test-case-name: tests.storetools.repair.test_run -*-
"""Positions, entries and files looked up in a directory opened for reading."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.queueunits import BatchUnit
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.reader.batch_queue import BatchQueueReader
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.store.reader.log import LogSegment

#: So much is read at once.
READ_SIZE: Final = 4 << 20


def queues_in(files: IFiles, folder: str) -> set[tuple[str, int]]:
    """The topics and queue ids that have a directory in one of queues."""
    return {
        (topic, int(name))
        for topic in files.list(folder)
        for name in files.list(os.path.join(folder, topic))
        if name.isascii() and name.isdigit()
    }


def file_size_in(files: IFiles, folder: str, setting: int, unit: int) -> int:
    """The length of the files in a directory of queues: that of most of them, as some
    may be damaged.

    @param setting: the length in the settings, which counts if as many files have it.
    @param unit: the size of an entry in them.
    @return: that of the settings if there are no files.
    """
    votes = Counter({setting: 0})
    for topic, queue_id in queues_in(files, folder):
        queue = os.path.join(folder, topic, str(queue_id))
        for name in files.list(queue):
            path = os.path.join(queue, name)
            if position_of_name(name) >= 0 and not files.is_dir(path):
                size = files.size(path)
                votes[size] += size > 0 and size % unit == 0
    return max(votes, key=lambda size: (votes[size], size == setting, size))


def segment_at(reader: StoreReader, position: int) -> LogSegment:
    """The segment of a position.

    @raise StoreError: there is none; one sentence.
    """
    segment = reader.log.find(position)
    if segment is None:
        raise StoreError(f"The log has no position {position}.")
    return segment


def written_from(reader: StoreReader, position: int) -> int:
    """The number of bytes from a position to the last non-zero byte of its segment."""
    segment = segment_at(reader, position)
    at = position
    last = position
    while at < segment.end:
        data = segment.pread(min(READ_SIZE, segment.end - at), at - segment.start)
        kept = len(data.rstrip(b"\0"))
        last = at + kept if kept else last
        at += len(data)
    return last - position


def entries_between(
    reader: StoreReader, topic: str, queue_id: int, start: int, end: int
) -> Iterator[tuple[int, int, int]]:
    """The entries of a queue whose records begin in a region: offset, position, size.
    Positions grow with offsets, but for one that is corrupt.

    @raise StoreError: a file of the queue cannot be read; one sentence.
    """
    low = reader.min_offset(topic, queue_id)
    high = stop = reader.max_offset(topic, queue_id)
    while low < high:
        middle = (low + high) // 2
        if reader.entries(topic, queue_id, middle)[0][0] < start:
            low = middle + 1
        else:
            high = middle
    is_behind = False
    while low < stop:
        for position, size, _ in reader.entries(topic, queue_id, low):
            if position < end:
                yield low, position, size
            elif is_behind:
                return
            is_behind = position >= end
            low += 1


def units_between(
    reader: StoreReader, topic: str, queue_id: int, start: int, end: int
) -> Iterator[BatchUnit]:
    """The units of a batch queue whose batches begin in a region."""
    for unit in BatchQueueReader(reader, topic, queue_id).units(start):
        if unit.position >= end:
            return
        if unit.position >= start:
            yield unit
