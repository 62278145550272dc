# -*- test-case-name: tests.store.test_checkpoint -*-
"""Up to which time the log and the queues are on the disk.

    ======  ========================  =====================================
    offset  field                     meaning
    ======  ========================  =====================================
    0       physic time stamp         store time of a flushed record
    8       logics time stamp         the same, of one whose entry is flushed
    16      index time stamp          the same, of one that is in the index
    24      master flushed offset     of a slave; kept as found
    32      confirm offset            of a controller's broker; kept as found
    ======  ========================  =====================================

All are i64, in a file of 4096 bytes. After an unclean stop the queues are built again
from the last segment that begins before these times; so they may say too little, never
too much.

The store sheet, section 14.
"""

from __future__ import annotations

import os
import struct
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


@final
class Checkpoint:
    """The file, and what stands in it.

    @ivar is_doubted: whether it is to vouch for nothing of log and queues from now on,
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
        self.is_doubted = False

    def load(self) -> None:
        """Read it; a missing or short one says nothing."""
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

    @property
    def safe_ms(self) -> int:
        """What was stored up to then is in the log and in the queues on the disk."""
        return max(0, min(self.physic_ms, self.logics_ms) - MARGIN_MS)

    def doubt(self) -> None:
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
        content = _FIELDS.pack(
            0 if self.is_doubted else self.physic_ms,
            0 if self.is_doubted else self.logics_ms,
            self.index_ms,
            self.master_flushed,
            self.confirm,
        )
        # The whole block: if it cannot be read, no part of it can be written.
        file.pwrite(content.ljust(SIZE, b"\0"), 0)
        file.datasync()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
