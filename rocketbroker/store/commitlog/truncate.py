# -*- test-case-name: tests.store.recovery.test_recovery -*-
"""Truncation: bytes behind the end of the log are discarded when a start has found the
end.

Zeros are put in place of a torn tail: else a record behind it, which was never
acknowledged, could come back when the log has grown up to it again. A whole segment of
records is set aside.

Bytes that the disk refuses to read may be acknowledged messages, which it can perhaps
read another time. So nothing is written there, and the log goes on with the next
segment.
"""

from __future__ import annotations

import os
from typing import Final, final

from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.commitlog.scanner import NOTHING, Scan
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.quarantine import set_aside

#: How far behind the end discarded bytes are counted for the report.
LOOK_BEHIND: Final = 16 << 20

#: So much of it is read at once.
_PIECE: Final = 1 << 20


@final
class LogEnd:
    """The end of a log, and the discarding of all bytes behind it.

    @ivar report: a sentence for each thing that was not right.
    @ivar zeroed: whether zeros alone stand behind the log's end.
    @ivar discarded_bytes: how many bytes were discarded.
    """

    def __init__(self, files: IFiles, segments: Segments, zeroed: bool) -> None:
        self._files = files
        self._segments = segments
        self.zeroed = zeroed
        self.report: list[str] = []
        self.discarded_bytes = 0

    def cut(self, scan: Scan, clean: bool) -> int:
        """Discard the bytes behind the end.

        @param scan: it stands there, or where its segment ends.
        @param clean: whether the last stop was a clean one, and all fits.
        @return: where the log goes on.
        """
        end = scan.position
        nothing = scan.broken in ("", NOTHING)
        segment = self._segments.find(end)
        if segment is None:
            self.zeroed = True
        elif not (clean and nothing):
            rest, refused = self._rest(segment, end)
            if scan.is_refused or refused:
                self.discarded_bytes += rest
                self.report.append(
                    f"The log ends at position {end}: {refused or scan.broken}. As the "
                    f"disk may have more of it, it goes on at {segment.end}."
                )
                end = segment.end
            else:
                self._zero(segment, end, rest, "" if nothing else scan.broken)
        self._keep_until(end)
        return end

    def _zero(self, segment: Segment, end: int, rest: int, broken: str) -> None:
        if rest or broken:
            self.discarded_bytes += rest
            self.report.append(
                f"The log ends at position {end}: {broken or NOTHING}. "
                f"{rest} bytes that follow it are discarded."
            )
        segment.cut(end)
        # Or a crash soon after could bring back the bytes that were cut.
        segment.file.datasync()
        self.zeroed = True

    def _rest(self, segment: Segment, end: int) -> tuple[int, str]:
        """How many bytes behind the end are not zeros, as far as L{LOOK_BEHIND}; and
        the disk's error if it cannot read some of them."""
        last = end
        refusal = ""
        stop = min(segment.end, end + LOOK_BEHIND)
        zeros = bytes(_PIECE)
        for start in range(end, stop, _PIECE):
            size = min(_PIECE, stop - start)
            at = start - segment.start
            content, refused = self._segments.before_bad(segment, size, at)
            if refused:
                refusal = refusal or refused
                content = self._segments.around_bad(segment, size, at)
            if content != zeros:
                written = len(content.rstrip(b"\0"))
                last = start + written if written else last
        return last - end, refusal

    def _keep_until(self, end: int) -> None:
        keep = 0
        while keep < len(self._segments.all) and (
            self._segments.all[keep].start < end or keep == 0
        ):
            keep += 1
        gone = self._segments.all[keep:]
        self._segments.all = self._segments.all[:keep]
        for segment in gone:
            self._set_aside(segment)
            self._files.sync_dir(os.path.dirname(segment.path))

    def _set_aside(self, segment: Segment) -> None:
        """Remove a segment behind the end, or keep it elsewhere if it has records."""
        content, refused = self._segments.before_bad(segment, 8, 0)
        segment.close()
        if segment.is_missing:
            return
        if not any(content) and not refused:
            self._files.remove(segment.path)
            return
        try:
            path = set_aside(self._files, segment.path)
        except OSError as error:
            # A log's directory may be a file system of its own.
            self._files.remove(segment.path)
            path = f"removed, as it cannot be kept beside it: {error.strerror}"
        self.discarded_bytes += segment.end - segment.start
        self.report.append(f"The segment from {segment.start} on is now {path}.")
