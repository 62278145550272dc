# -*- test-case-name: tests.store.commitlog.test_checkpoint -*-
"""The checkpoint file: the store time up to which log and queues are on the disk.

Layout::

    ======  ========================  =====================================
    offset  field                     meaning
    ======  ========================  =====================================
    0       physic time stamp         store time of a flushed record
    8       logics time stamp         the same, of one whose entry is flushed
    16      index time stamp          the same, of one that is in the index
    24      master flushed offset     of a slave: IRawLog.master_flushed
    32      confirm offset            of a controller's broker; kept as found
    ======  ========================  =====================================

All are i64, in a file of 4096 bytes. After an unclean stop the queues are built again
from the last segment that begins before these times; so they may be too early, never
too late.

When the clock is set back, the times are too late: a record that is stored then has an
earlier time than one that was flushed before. So there is a mark behind them, where
RocketMQ neither reads nor writes, but in the same sector of the disk::

    ======  ========================  =====================================
    offset  field                     meaning
    ======  ========================  =====================================
    256     three time stamps         those above; if they are others by now,
                                      RocketMQ wrote them, and the mark is void
    280     position                  all before it is on the disk, of the log
                                      and of the queues
    288     index position            the last record of the last file of the
                                      index that is on the disk
    296     CRC-32                    u32, of the fields before it in the mark
    ======  ========================  =====================================

A segment is safe only if position and times agree. (Times that do not go back were no
way out: delays are counted from them, and consumers are shown them.)

C{docs/facts/store.md} 14.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Final, final

from rocketbroker.files.interfaces import IFile, IFiles

NAME: Final = "checkpoint"
SIZE: Final = 4096

#: Clocks and flushes are not believed to a finer grain, in ms.
MARGIN_MS: Final = 3000

_FIELDS: Final = struct.Struct(
    ">"
    "q"  # physic time stamp
    "q"  # logics time stamp
    "q"  # index time stamp
    "q"  # master flushed offset
    "q"  # confirm offset
)

MARK_AT: Final = 256

_MARK: Final = struct.Struct(
    ">"
    "q"  # physic time stamp
    "q"  # logics time stamp
    "q"  # index time stamp
    "q"  # position
    "q"  # index position
)

_CRC: Final = struct.Struct(">I")

#: Positions where there is no mark.
UNKNOWN: Final = -1


@final
class Checkpoint:
    """The checkpoint file and its fields.

    @ivar position: up to where log and queues are on the disk; L{UNKNOWN} if only the
        times are known.
    @ivar index_position: the last record of the index that is, or L{UNKNOWN}.
    @ivar is_distrusted: whether it is to vouch for nothing of log and queues any more,
        whatever their times are.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        self._files = files
        self._path = os.path.join(root, NAME)
        self._file: IFile | None = None
        self.physic_ms = 0
        self.logics_ms = 0
        self.index_ms = 0
        self.master_flushed = 0
        self.confirm = 0
        self.position = UNKNOWN
        self.index_position = UNKNOWN
        self.is_distrusted = False
        self._kept = 0

    def load(self) -> None:
        """Read it; a missing or short one leaves all fields unknown."""
        if not self._files.exists(self._path):
            return
        content = self._files.read(self._path)
        if len(content) >= _FIELDS.size:
            (
                self.physic_ms,
                self.logics_ms,
                self.index_ms,
                self.master_flushed,
                self.confirm,
            ) = _FIELDS.unpack_from(content)
            self._kept = self.master_flushed
        self.position, self.index_position = self._positions(content[MARK_AT:])

    def _positions(self, mark: bytes) -> tuple[int, int]:
        """Those of the mark, if it belongs to the times."""
        data = mark[: _MARK.size]
        if mark[_MARK.size : _MARK.size + _CRC.size] != _CRC.pack(zlib.crc32(data)):
            return UNKNOWN, UNKNOWN
        *times, position, index_position = _MARK.unpack(data)
        if times != [self.physic_ms, self.logics_ms, self.index_ms]:
            return UNKNOWN, UNKNOWN
        return position, index_position

    @property
    def safe_ms(self) -> int:
        """Records stored up to this time are in the log and the queues on the disk."""
        return max(0, min(self.physic_ms, self.logics_ms) - MARGIN_MS)

    def has_before(self, start: int, ms: int) -> bool:
        """Whether log and queues are on the disk up to the start of a segment.

        @param ms: the store time of its first record.
        """
        if self.position != UNKNOWN and start > self.position:
            return False
        return 0 < ms <= self.safe_ms

    def has_index_file(self, end_ms: int, end_position: int) -> bool:
        """Whether a full file of the index is on the disk.

        @param end_ms: the store time of its last record.
        @param end_position: where that is.
        """
        if self.index_position != UNKNOWN and end_position > self.index_position:
            return False
        return end_ms <= self.index_ms

    def update(self, times: tuple[int, int, int], positions: tuple[int, int]) -> None:
        """I{Blocking.} Write times, positions and the master's, if they have changed.

        @param times: the three time stamps.
        @param positions: that of log and queues, and that of the index.
        @raise OSError: the disk refused.
        """
        saved = self.physic_ms, self.logics_ms, self.index_ms
        same = (times, positions) == (saved, (self.position, self.index_position))
        if not same or self.master_flushed != self._kept:
            self.physic_ms, self.logics_ms, self.index_ms = times
            self.position, self.index_position = positions
            self.save()

    def forget_times(self) -> None:
        """I{Blocking.} Vouch for nothing of log and queues any more.

        @raise OSError: the disk refused.
        """
        if self.safe_ms:
            self.physic_ms = self.logics_ms = 0
            self.save()

    def save(self) -> None:
        """I{Blocking.} Write and sync it."""
        file = self._file
        if file is None:
            fresh = not self._files.exists(self._path)
            file = self._file = self._files.open(self._path, create=True)
            if file.size() != SIZE:
                file.truncate(SIZE)
            if fresh:
                self._files.sync_dir(os.path.dirname(self._path))
        physic_ms = 0 if self.is_distrusted else self.physic_ms
        logics_ms = 0 if self.is_distrusted else self.logics_ms
        times = physic_ms, logics_ms, self.index_ms
        content = _FIELDS.pack(*times, self.master_flushed, self.confirm)
        mark = _MARK.pack(*times, self.position, self.index_position)
        content = content.ljust(MARK_AT, b"\0") + mark + _CRC.pack(zlib.crc32(mark))
        # The whole block: if it cannot be read, no part of it can be written.
        file.pwrite(content.ljust(SIZE, b"\0"), 0)
        file.datasync()
        self._kept = self.master_flushed

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
