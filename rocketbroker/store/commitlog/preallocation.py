# -*- test-case-name: tests.store.commitlog.test_preallocation -*-
"""Preallocation of disk space for the log ahead of its writer: blocks, the next segment
and its pages.

All of it is done in a thread and without the append lock, long before an append needs
it; an append that comes all the same makes its segment itself.

Pages are written ahead only when warmMapedFileEnable says so, into the segment that is
made ahead, where nobody else writes. To write them ahead of every append does not pay:
the first touch of a page costs C{pwrite} a microsecond, which ten messages share, and
to touch it before costs half of that on the same processor. (Through a mapping, as
RocketMQ writes, it costs a page fault each.) To read them ahead makes small appends
dearer. RocketMQ also locks such pages in memory; C{pwrite} gains nothing from that.

C{docs/facts/store.md} 2.6.
"""

from __future__ import annotations

import contextlib
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.store.commitlog.segment import ALLOCATION
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.shared_positions import PUBLISHED, Positions

#: So close to where others append nothing is reserved: they may get there before. Where
#: a file system cannot reserve blocks, the C library reads a byte of each and writes it
#: back, which would undo what an append has written between.
MARGIN: Final = 4 << 20

#: With less room than this nothing is appended before there is more: an append writes
#: as much at once.
LEAST: Final = 4 << 20


@final
class Preallocation:
    """Makes room ahead of the writer."""

    def __init__(
        self,
        segments: Segments,
        positions: Positions,
        options: StoreOptions,
        elsewhere: bool = False,
    ) -> None:
        """
        @param elsewhere: whether another process makes room, and this one does nothing.
        """
        self._elsewhere = elsewhere
        self._segments = segments
        self._positions = positions
        self.configure(options)

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._warms = options.warm_maped_file_enable
        self._sync_pages = 0
        if options.flush_disk_type == "SYNC_FLUSH":
            self._sync_pages = options.flush_least_pages_when_warm_maped_file

    def is_scarce(self) -> bool:
        """Whether the writer comes close to what is reserved, or to the end of the last
        segment while there is no next one."""
        position: int = self._positions.view[PUBLISHED] + ALLOCATION // 2
        segment = self._segments.all[-1]
        if segment.start + segment.allocated < segment.end:
            return position > segment.start + segment.allocated
        return position > segment.end and not self._segments.is_prepared

    def make(self, needs_segment: bool = False, alone: bool = False) -> bool:
        """Reserve blocks ahead of the writer, make the next segment, and write some of
        its pages.

        @param needs_segment: whether an append has failed for want of the next segment;
            if not, the append that will need it reports that it cannot be made.
        @param alone: whether nobody appends meanwhile; then no pages are written.
        @return: whether there was anything to do.
        @raise OSError: there is no room in the last segment, or for the next.
        """
        if self._elsewhere:
            return False
        position = self._positions.view[PUBLISHED]
        wanted = position + ALLOCATION
        segment = self._segments.all[-1]
        done = False
        if segment.start + segment.allocated < min(wanted, segment.end):
            after = 0 if alone else position + min(MARGIN, self._segments.size // 16)
            try:
                done = segment.allocate(wanted + ALLOCATION, after)
            except OSError:
                room = segment.start + segment.allocated - position
                if room < min(LEAST, segment.end - position):
                    raise
        if wanted >= segment.end:
            try:
                done = self._segments.prepare() or done
            except OSError:
                if needs_segment:
                    raise
        if self._warms and not alone:
            # Pages that cannot be written ahead are written when they are needed.
            with contextlib.suppress(OSError):
                done = self._segments.warm(ALLOCATION, self._sync_pages) or done
        return done
