# -*- test-case-name: tests.store.timerwheel.test_recovery -*-
"""The checkpoint of the timers, C{config/timercheck}, and the body of request 60.

Layout::

    ======  ====================  =============================================
    offset  field                 meaning
    ======  ====================  =============================================
    0       read time             the next slot to be delivered, ms
    8       log position          all of the timer log before it is on the disk
    16      queue offset          all before it in the timer topic is in the log
    24      master's offset       the same of the master
    32      data version          state version, time, counter
    ======  ====================  =============================================

All are i64, in a file of 4096 bytes. Behind them, where RocketMQ neither reads nor
writes, there is a mark::

    ======  ====================  =============================================
    offset  field                 meaning
    ======  ====================  =============================================
    256     read time             that above; if it is another by now, RocketMQ
                                  wrote it, and the mark is void
    264     delivered from        in the commit log: copies of messages that were
                                  due from the read time on are behind it
    272     CRC-32                u32, of the mark
    ======  ====================  =============================================

C{docs/facts/transaction-timer-pop.md} B3.
"""

from __future__ import annotations

import os
import struct
import zlib
from typing import Final, NamedTuple, final

from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.store.timerwheel.units import NONE

NAME: Final = os.path.join("config", "timercheck")
SIZE: Final = 4096

_FIELDS: Final = struct.Struct(
    ">"
    "q"  # read time
    "q"  # log position
    "q"  # queue offset
    "q"  # master's offset
    "q"  # data version: state version
    "q"  # time
    "q"  # counter
)

MARK_AT: Final = 256

_MARK: Final = struct.Struct(
    ">"
    "q"  # read time
    "q"  # delivered from
)

_CRC: Final = struct.Struct(">I")


class Checkpoint(NamedTuple):
    """The content of the timer's checkpoint file.

    @ivar read_ms: the next slot to be delivered.
    @ivar log_position: up to where the timer log is on the disk, and in the wheel.
    @ivar queue_offset: up to where messages of the timer topic are in the log.
    @ivar master_queue_offset: the same of the master.
    @ivar state_version: of the data version.
    @ivar version_ms: its time.
    @ivar counter: its counter.
    """

    read_ms: int = 0
    log_position: int = 0
    queue_offset: int = 0
    master_queue_offset: int = 0
    state_version: int = 0
    version_ms: int = 0
    counter: int = 0

    def encode(self) -> bytes:
        """The 56 bytes of the file, and of the answer to request 60."""
        return _FIELDS.pack(*self)

    def next_version(self, now_ms: int) -> Checkpoint:
        """The same with a newer data version."""
        return self._replace(version_ms=now_ms, counter=self.counter + 1)

    def is_newer(self, other: Checkpoint) -> bool:
        """Whether its data version is another one than C{other}'s, and not older."""
        mine = self.state_version, self.version_ms, self.counter
        return mine > (other.state_version, other.version_ms, other.counter)


def decode(data: bytes) -> Checkpoint | None:
    """A checkpoint of at least 56 bytes; None if there are fewer."""
    if len(data) < _FIELDS.size:
        return None
    return Checkpoint(*_FIELDS.unpack_from(data))


@final
class CheckpointFile:
    """The timer's checkpoint file, written as a whole.

    @ivar found: what it said at the start; None if there was none.
    @ivar delivered_from: what its mark said; -1 if there was none.
    """

    def __init__(self, files: IFiles, root: str) -> None:
        self.found: Checkpoint | None = None
        self.delivered_from = NONE
        self._files = files
        self._path = os.path.join(root, NAME)
        self._file: IFile | None = None

    def load(self) -> None:
        """I{Blocking.} Read it.

        @raise OSError: the disk refuses.
        """
        if not self._files.exists(self._path):
            return
        content = self._files.read(self._path)
        self.found = decode(content)
        mark = content[MARK_AT : MARK_AT + _MARK.size]
        crc = content[MARK_AT + _MARK.size :][: _CRC.size]
        if self.found is not None and crc == _CRC.pack(zlib.crc32(mark)):
            read_ms, delivered_from = _MARK.unpack(mark)
            if read_ms == self.found.read_ms:
                self.delivered_from = delivered_from

    def save(self, checkpoint: Checkpoint, delivered_from: int) -> None:
        """I{Blocking.} Write it, and put it on the disk.

        @raise OSError: the disk refuses.
        """
        file = self._file
        if file is None:
            fresh = not self._files.exists(self._path)
            make_lasting(self._files, os.path.dirname(self._path))
            file = self._file = self._files.open(self._path, create=True)
            if fresh:
                self._files.sync_dir(os.path.dirname(self._path))
        mark = _MARK.pack(checkpoint.read_ms, delivered_from)
        content = checkpoint.encode().ljust(MARK_AT, b"\0")
        content += mark + _CRC.pack(zlib.crc32(mark))
        file.pwrite(content.ljust(SIZE, b"\0"), 0)
        file.datasync()

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()
            self._file = None
