# -*- test-case-name: tests.files.test_open_files -*-
"""The open files of a store: those used last stay open, up to a bound.

A store has thousands of files of queues, and many segments, and a process not as many
descriptors. So none of them is open for ever: with one more than the bound, the one
that was used longest ago is let go. It is closed when the last thread that reads it is
done. A pull does not count as use (L{OpenFiles.opened}): a file that is only pulled
from is opened again after so many others were.

A file with bytes that are not on the disk yet is let go like any other. C{fdatasync}
writes the pages of the inode, whichever descriptor they were written by. An error that
the kernel meets while it writes them without being asked is kept with the inode, and
the next C{fdatasync} gets it, on a new descriptor, too, if nobody has had it (Linux
4.17). It is lost only if memory was so short that the kernel has dropped the inode,
which it may once nobody has it open. Then entries of a queue are missing after a power
failure, on a disk that was failing before. A start finds the gap when it enters the
next record, and makes the queues again from the log.

A segment of the log is among these when it is full and on the disk. Until then it stays
open: its bytes were acknowledged.
"""

from __future__ import annotations

import errno
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, final

from rocketbroker.files.interfaces import IFile, IFiles

#: The bound where nobody gives one: for tools, and what else opens a store for a while.
DEFAULT_BOUND: Final = 256

#: Of so many descriptors of a process one is for these files; connections have three
#: of four, and what is left is for mapped segments and all else.
SHARE: Final = 8

#: With fewer, each use of a queue would open a file.
MIN_BOUND: Final = 16

#: With more nothing is faster, and each costs the kernel a kilobyte.
MAX_BOUND: Final = 16384

#: The process, or the system, has as many files open as it may.
EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE)


def bound_of(limit: int) -> int:
    """How many of these files are open at once.

    @param limit: the limit of descriptors; negative for none.
    """
    if limit < 0:
        return MAX_BOUND
    return max(MIN_BOUND, min(limit // SHARE, MAX_BOUND))


@final
class OpenFiles:
    """The files that are open, by their owners. Several threads may use them.

    @ivar files: the file system.
    @ivar bound: how many are open at once.
    @ivar opened: given an owner, its file if that is open.
    @ivar random_paths: of what begins so the system does not read ahead.
    """

    def __init__(self, files: IFiles, bound: int = DEFAULT_BOUND) -> None:
        self.files = files
        self.bound = bound
        self.random_paths: tuple[str, ...] = ()
        self._open: OrderedDict[object, IFile] = OrderedDict()
        self.opened: Callable[[object], IFile | None] = self._open.get

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    def get(self, owner: object, path: str) -> IFile:
        """The file of an owner, opened for reading and writing if it is not open.

        @raise OSError: it cannot be opened.
        """
        file = self._open.get(owner)
        if file is None:
            file = self.open(path)
            self.put(owner, file)
            return file
        try:
            self._open.move_to_end(owner)
        except KeyError:
            # Another thread has let it go just now; its user here keeps it open.
            return file
        return file

    def get_to_read(self, owner: object, path: str) -> IFile:
        """The file of an owner, which may be one that can only be read, where the file
        system was made read-only meanwhile.

        @raise OSError: it cannot be opened.
        """
        try:
            return self.get(owner, path)
        except OSError as error:
            if error.errno != errno.EROFS:
                raise
        # Not kept: it could not be written to when the file system can be again.
        return self.files.open_readonly(path)

    def open(self, path: str, create: bool = False) -> IFile:
        """Open a file that has no owner yet; see L{IFiles.open}."""
        try:
            file = self.files.open(path, create)
        except OSError as error:
            if error.errno not in EXHAUSTED or not self._open:
                raise
            # Others have taken the descriptors: half of these will do.
            self._let_go(len(self._open) // 2)
            file = self.files.open(path, create)
        if self.is_random(path):
            file.read_ahead(False)
        return file

    def is_random(self, path: str) -> bool:
        """Whether the system does not read ahead in a file."""
        return path.startswith(self.random_paths)

    def put(self, owner: object, file: IFile) -> None:
        """Keep a file that was just opened, in the place of the owner's other one."""
        self._open[owner] = file
        self._let_go(self.bound)

    def drop(self, owner: object) -> None:
        """Let an owner's file go, if it is open; running reads of it go on."""
        self._open.pop(owner, None)

    def _let_go(self, left: int) -> None:
        """Let those go that were used longest ago.

        @param left: how many stay.
        """
        try:
            while len(self._open) > left:
                self._open.popitem(last=False)
        except KeyError:
            # Another thread was faster.
            return
