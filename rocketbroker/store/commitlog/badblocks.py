# -*- test-case-name: tests.store.recovery.test_bad_log -*-
"""Bad blocks: reading the log where the disk cannot read some of its blocks.

Records in such a block are lost, like corrupt ones; their neighbours are not. A scan
reads up to the block; a search behind it sees zeros there; a read of one record with a
byte in it finds none. Nothing is written over it: the disk may be able to read it
another time.

Where there are many of them, it is not some blocks but the disk that is bad, or away.
Then reading fails: a start that took all of the log for lost would go on without
messages that another start can read.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.files.blocks import BLOCK, pieces
from rocketbroker.files.interfaces import IFile
from rocketbroker.files.os_errors import located, reason

#: So many blocks that cannot be read are passed over: 4 MiB. With more of them, the
#: disk is taken for bad.
MAX_BAD: Final = 1024


@final
class BadBlocks:
    """The bad blocks of one log that reads have come upon so far."""

    def __init__(self) -> None:
        self._known: set[int] = set()

    def before(
        self, file: IFile, path: str, start: int, size: int, at: int
    ) -> tuple[bytes, str]:
        """Bytes of a segment up to the first that cannot be read.

        @param start: the position in the log where the segment begins.
        @param at: the first byte in the segment.
        @return: the bytes, and why there are no more; empty if nothing was refused.
        @raise OSError: the disk is bad.
        """
        found: list[bytes] = []
        for where, piece, error in pieces(file, size, at):
            if error is not None:
                return b"".join(found), self._note(path, start, where, error)
            found.append(piece)
        return b"".join(found), ""

    def around(self, file: IFile, path: str, start: int, size: int, at: int) -> bytes:
        """Bytes of a segment, zeros where they cannot be read.

        @raise OSError: the disk is bad.
        """
        found: list[bytes] = []
        for where, piece, error in pieces(file, size, at):
            if error is not None:
                self._note(path, start, where, error)
            found.append(piece)
        return b"".join(found)

    def _note(self, path: str, start: int, at: int, error: OSError) -> str:
        block = at // BLOCK * BLOCK
        refusal = located(error, path, block)
        self._known.add(start + block)
        if len(self._known) > MAX_BAD:
            raise refusal from error
        return reason(refusal)
