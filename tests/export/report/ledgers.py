"""Histories of exports, made without files."""

from __future__ import annotations

import attrs

from rocketbroker.export.history import Commit, DataFile, ExportedRange, Gap, History
from rocketbroker.export.plans import HOUR_MS, End, file_path
from rocketbroker.sources.ranges import Queue, Range

#: 2026-11-21 14:00 UTC.
START_MS = 498_686 * HOUR_MS


def queue(number: int, topic: str = "Orders") -> Queue:
    """A queue."""
    return Queue(topic, f"broker-{'ab'[number % 2]}", number // 2)


def data_file(
    commit: int,
    wanted: Range,
    hour: int = 0,
    size: int = 1000,
    hole: tuple[int, int] | None = None,
    **row: object,
) -> DataFile:
    """A file with one range.

    @param hour: how many hours after the start it was stored.
    @param hole: offsets that are missing in it.
    @param row: further words of its manifest row.
    """
    stored_ms = START_MS + hour * HOUR_MS
    gaps: tuple[Gap, ...] = ()
    if hole is not None:
        gap = Gap(Range(wanted.queue, *hole), f"damaged at {hole[0]}", False, commit)
        gaps = (gap,)
    rows = wanted.size - sum(gap.wanted.size for gap in gaps)
    part = ExportedRange(wanted, rows, gaps, stored_ms, stored_ms + 1, 0)
    return DataFile(
        path=file_path([wanted], stored_ms),
        rows=rows,
        bytes=size,
        crc=0,
        schema=1,
        decode_errors=int(str(row.get("decodeErrors", 0))),
        body_digest=0,
        parts=(part,),
        row=row,
    )


def commit(
    number: int, files: list[DataFile], lost: tuple[Gap, ...] = (), seconds: float = 2.0
) -> Commit:
    """A commit of files of one topic."""
    ends = {part.wanted.queue: part.wanted for file in files for part in file.parts}
    made_ms = START_MS + number * HOUR_MS
    return Commit(
        number=number,
        topic=files[0].parts[0].wanted.queue.topic,
        made_ms=made_ms,
        done_ms=made_ms + int(seconds * 1000),
        rows=sum(file.rows for file in files),
        files=tuple(files),
        lost=lost,
        ends={each: End(wanted.until) for each, wanted in ends.items()},
    )


def history(*commits: Commit) -> History:
    """A history of commits, each of which knows the ends of those before."""
    ends: dict[Queue, End] = {}
    found = []
    for each in commits:
        ends = {**ends, **each.ends}
        found.append(attrs.evolve(each, ends=ends))
    return History(tuple(found), (), ())


def long_history(commits: int, queues: int, each: int) -> History:
    """A history of many commits, one an hour, each of some of many queues.

    @param each: of how many queues each commit has a file.
    """
    ends = [0] * queues
    found = []
    for number in range(1, commits + 1):
        files = []
        for place in range(each):
            index = (number * each + place) % queues
            rows = 500 + (number * 37 + place * 101) % 900
            wanted = Range(queue(index), ends[index], ends[index] + rows)
            hole = (wanted.start + 3, wanted.start + 20) if number % 97 == 0 else None
            size = (rows * rows * 70) % (200 << 20)
            files.append(data_file(number, wanted, number, size, hole))
            ends[index] = wanted.until
        found.append(commit(number, files, (), 1 + number % 7))
    return history(*found)
