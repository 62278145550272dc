# -*- test-case-name: tests.store.commitlog.test_loading -*-
"""The opening of segments at a start, with stand-ins for those that are missing.

Some may be missing: a log has several directories, and the disk of one is not mounted;
or somebody has removed a file. RocketMQ's files do not record this, and the segments
may come back. So their positions stay theirs: in the place of each missing segment is a
I{stand-in} in memory, nothing but a filler. The log before it can still be read; queue
entries that lead into it stay; and new messages are stored behind it. When the disk is
back, all of it can be read.

No file is put there. RocketMQ goes on behind a hole, too, and passes over entries that
lead into it; out of a file of fillers it would hand out fillers.

Segments that are missing at the end are known from the positions that a clean stop
wrote down; where there are several directories, also from a queue entry that leads
behind the end. (With one directory a power failure leaves such an entry of
queues that were flushed before the log; the same holds if the last segment does not end
as a full one does.) Missing first segments are known only from a clean stop; then no
queue entries are removed that lead into them.

A directory that is called like a segment is set aside, or the log could not be
continued there. A link that leads nowhere stays where it is: its target may be on a
disk that is not mounted.

Where two files have the same position, one was written while the other was away, by a
start that did not see that it was missing. Both may have acknowledged messages: the
start is refused.

C{docs/facts/store.md} 15.1; RocketMQ has no rules for missing segments.
"""

from __future__ import annotations

import os
from typing import Final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.files.misplaced_files import clear_for_file, is_no_file
from rocketbroker.records.record_head import MAGIC_BLANK
from rocketbroker.store.commitlog.encoder import FILLER
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.file_names import position_of_name
from rocketbroker.store.quarantine import set_aside

#: So many segments in a row are held to be missing. With more, the segments before them
#: are of another log.
MAX_MISSING: Final = 256

#: So many behind the end. They are known from one number, which may be corrupt.
MAX_MISSING_BEHIND: Final = 16


def load_segments(files: IFiles, segments: Segments) -> list[str]:
    """Open the segments that are there, and put stand-ins between them.

    @return: sentences about what was not right.
    @raise StoreError: a file was made for another size, or two have one position.
    """
    report: list[str] = []
    found = _find(files, segments, report)
    opened: list[Segment] = []
    for start, path in sorted(found.items()):
        length = files.size(path)
        if length == 0 and start == max(found):
            files.remove(path)
            report.append(f"{path} was empty; it is removed.")
            continue
        if opened and opened[-1].end != start:
            opened = _bridge(segments, opened, start, report)
        segment = Segment(start, segments.size, path, segments.open_files)
        file = _open(segment, segments)
        if length < segments.size:
            file.truncate(segments.size)
            report.append(f"{path} had {length} bytes; it has {segments.size} now.")
        opened.append(segment)
    for folder in segments.folders:
        # The process before may have had no time to do it.
        files.sync_dir(folder)
    segments.all = opened
    return report


def _find(files: IFiles, segments: Segments, report: list[str]) -> dict[int, str]:
    """The paths of the segments by their positions."""
    found: dict[int, str] = {}
    for folder in segments.folders + segments.read_only:
        for name in files.list(folder):
            path = os.path.join(folder, name)
            start = position_of_name(name)
            if start >= 0 and _is_none(files, path, folder in segments.folders, report):
                continue
            if start < 0:
                report.append(f"{path!r} is not a commit log segment; it is ignored.")
                continue
            length = files.size(path)
            if start % segments.size or length > segments.size:
                raise StoreError(
                    f"{path} ({length} bytes) does not fit mappedFileSizeCommitLog, "
                    f"which is {segments.size}."
                )
            if start in found:
                raise StoreError(
                    f"The log has two files of one position, {found[start]} and "
                    f"{path}. Both may have messages: keep one, and move the other out "
                    "of the directories of the log."
                )
            found[start] = path
    return found


def _is_none(files: IFiles, path: str, is_ours: bool, report: list[str]) -> bool:
    """Whether something with the name of a segment is none.

    A directory would be in the way of one that is to come. A link that leads nowhere
    may lead to a disk that is not mounted, and is to stay.
    """
    if is_ours and files.is_dir(path):
        try:
            report.append(f"{path} is no file; it is now {set_aside(files, path)}.")
        except OSError:
            report += clear_for_file(files, path)
        return True
    if is_no_file(files, path):
        report.append(f"{path} is no file, or leads to none; it is ignored.")
        return True
    return False


def _open(segment: Segment, segments: Segments) -> IFile:
    """Open a segment.

    Nothing is written to an old one; its file system may be one that cannot be.
    """
    if os.path.dirname(segment.path) in segments.read_only:
        return segment.file
    return segments.open_files.get(segment, segment.path)


# Missing segments.


def _stand_in(size: int) -> bytes:
    """How a stand-in begins; the rest is zeros."""
    return FILLER.pack(size, MAGIC_BLANK)


def _bridge(
    segments: Segments, opened: list[Segment], until: int, report: list[str]
) -> list[Segment]:
    """Go on at a position behind segments: with stand-ins for those between, or, if
    there are too many, without the segments before."""
    end = opened[-1].end
    sentence = f"Segments are missing between {end} and {until}; "
    if until - end <= MAX_MISSING * segments.size:
        report.append(sentence + "their messages cannot be read until they are back.")
        return opened + _stand_ins(segments, end, until)
    for segment in opened:
        segment.close()
    report.append(sentence + "messages before them cannot be read.")
    return []


def _stand_ins(segments: Segments, first: int, end: int) -> list[Segment]:
    """As many as are missing between two positions."""
    content = _stand_in(segments.size)
    return [
        segments.stand_in(start, content) for start in range(first, end, segments.size)
    ]


def extend(segments: Segments, position: int, end: int) -> list[str]:
    """Put stand-ins behind the last segment.

    @param position: the end of the part that can be read.
    @param end: where the log ended, as far as known.
    @return: sentences about it.
    """
    size = segments.size
    first = segments.all[-1].end
    sentence = (
        f"The log ended at position {end} or behind it; now its files end at {first}."
    )
    if position < first or end - first > MAX_MISSING_BEHIND * size:
        # Not a disk that is away: queues were flushed, and the log was not.
        return [sentence]
    segments.all = segments.all + _stand_ins(segments, first, end)
    return [f"{sentence} New messages go behind the segments that are missing."]
