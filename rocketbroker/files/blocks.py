# -*- test-case-name: tests.files.test_blocks -*-
"""Reading around bad blocks of a disk.

A disk that has lost some blocks refuses each read that has a byte in one of them, and
may take seconds for that. So where a large read was refused, it is done again block by
block: each bad one is tried once more, and no larger read twice.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Final

from rocketbroker.files.interfaces import IFile

#: What the kernel reads at once at least; where one byte cannot be read, nor can all of
#: these.
BLOCK: Final = 4096

#: What a system says of a place of a disk that cannot be read: of the medium, or of
#: what a file system's own checksums tell. Others are about the file, or the process.
UNREADABLE: Final = frozenset(
    {errno.EIO, errno.EILSEQ, errno.EBADMSG}
    | {getattr(errno, name, errno.EIO) for name in ("ENODATA", "EUCLEAN")}
)


def blocks(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a range that are in one block each: from where to where."""
    while start < end:
        behind = min(end, (start // BLOCK + 1) * BLOCK)
        yield start, behind
        start = behind


def pieces(
    file: IFile, size: int, position: int
) -> Iterator[tuple[int, bytes, OSError | None]]:
    """The bytes of a range of a file, up to its end, in order.

    @return: the position of each piece, and it; of a block that cannot be read as many
        zeros, and the error of the system.
    @raise OSError: it is not that some blocks cannot be read.
    """
    try:
        yield position, file.pread(size, position), None
        return
    except OSError as error:
        if error.errno not in UNREADABLE:
            raise
    for start, end in blocks(position, min(position + size, file.size())):
        try:
            yield start, file.pread(end - start, start), None
        except OSError as error:
            if error.errno not in UNREADABLE:
                raise
            yield start, bytes(end - start), error


def around(file: IFile, size: int, position: int) -> bytes:
    """The bytes of a range of a file, up to its end; zeros where they cannot be read.

    @raise OSError: it is not that some blocks cannot be read.
    """
    return b"".join(piece for _, piece, _ in pieces(file, size, position))


def is_bad(file: IFile, size: int, position: int) -> bool:
    """Whether a block with one of these bytes cannot be read: then who writes a part of
    it is refused, as he has to read it."""
    start = position // BLOCK * BLOCK
    end = -(-(position + size) // BLOCK) * BLOCK
    return any(error for _, _, error in pieces(file, end - start, start))
