# -*- test-case-name: tests.store.consumequeue.test_badqueues -*-
"""Files of queues of which the disk cannot read some blocks.

The log has all that stands in them. So a start that comes upon one puts a copy in its
place, with nothing where it could not be read, keeps the file itself, and makes all
queues again.

While a broker runs, who reads there is refused: to pass over entries whose records are
good would be to lose these. The next start then believes no queue, comes upon the
block, and does as above. What is written to such a block needs another place at once:
here, too, a copy takes the place of the file, and who reads what it lacks is refused.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import final

from rocketbroker.files.blocks import BLOCK, pieces
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.files.reasons import ReadError, located, reason
from rocketbroker.store.disk_usage import NO_ROOM
from rocketbroker.store.quarantine import kept_beside, set_aside


@final
class BadQueues:
    """Those of one store.

    @ivar doubt: called before something is changed: no queue is to be believed, by
        this start or the next.
    @ivar is_starting: whether the queues can be made again now.
    @ivar said: sentences about what a start has replaced.
    @ivar replaced: the paths of copies.
    """

    def __init__(self, files: IFiles, count: Callable[[str], None]) -> None:
        """
        @param count: told, in a sentence, of what is found while the broker runs.
        """
        self._files = files
        self._count = count
        self._noted: set[tuple[str, int]] = set()
        self.doubt: Callable[[], None] = lambda: None
        self.is_starting = True
        self.said: list[str] = []
        self.replaced: set[str] = set()

    def refused(self, path: str, file: IFile, size: int, at: int) -> ReadError:
        """A reader cannot have some bytes; each block is told of once.

        @return: what to raise.
        """
        block, why = at // BLOCK * BLOCK, OSError(errno.EIO, os.strerror(errno.EIO))
        for where, _, error in pieces(file, size, at):
            if error is not None:
                block, why = where // BLOCK * BLOCK, error
                break
        found = located(why, path, block)
        if (path, block) not in self._noted:
            self._noted.add((path, block))
            self._count(
                f"A consume queue cannot be read: {reason(found)}. Who asks for what "
                "stands there is refused; the next start makes it again from the log."
            )
            self.doubt()
        return found

    def replace(
        self, path: str, file: IFile, size: int
    ) -> tuple[IFile, list[tuple[int, int]]]:
        """I{Blocking.} Put a copy in the place of a file, and keep that.

        @param size: how long it should be.
        @return: the copy, and what of it is nothing as it could not be read.
        @raise OSError: the disk refused.
        """
        self.doubt()
        self.replaced.add(path)
        content: list[bytes] = []
        lost: list[tuple[int, int]] = []
        why = ""
        for where, piece, error in pieces(file, size, 0):
            if error is not None:
                lost.append((where, where + len(piece)))
                why = why or reason(located(error, path, where))
            content.append(piece)
        try:
            kept = set_aside(self._files, path, kept_beside(path))
        except OSError as error:
            # The directory of all queues may be a file system of its own.
            self._files.remove(path)
            kept = f"removed, as it cannot be kept elsewhere: {error.strerror}"
        copy = self._files.open(path, create=True)
        copy.truncate(size)
        try:
            copy.pwrite(b"".join(content), 0)
        except OSError as error:
            # What is entered again finds room later, or is kept in memory.
            if error.errno not in NO_ROOM:
                raise
            lost = [(0, size)]
        if self.is_starting:
            self.said.append(
                f"A consume queue cannot be read: {why or 'Input/output error'}. The "
                f"file is now {kept}; what stood there is made again from the log."
            )
        return copy, lost


def lacking(path: str, at: int) -> OSError:
    """What a reader is told of bytes that a copy lacks."""
    return located(OSError(errno.EIO, os.strerror(errno.EIO)), path, at)
