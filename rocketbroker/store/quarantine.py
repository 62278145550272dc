# -*- test-case-name: tests.store.commitlog.test_loading -*-
"""The quarantine: keeps damaged files that are taken out of a store.

A file of a queue that the disk cannot read is bad as a whole: its entries can be made
again from the log. A start that comes upon one sets it aside, puts an empty one in its
place, and makes the queues again. While a broker runs, reads of such a file fail, as to
pass over its entries would be to lose messages; the next start then makes the queues
again.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, final

from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.files.os_errors import ReadError, located, reason
from rocketbroker.store.file_names import beside

#: Behind the name of a directory: the name of the one beside it for such files.
QUARANTINE: Final = "given-up"


def set_aside(files: IFiles, path: str, folder: str = "") -> str:
    """I{Blocking.} Take a segment out of the log, or a file out of its queue, and keep
    it.

    @param folder: where; by default beside the directory that it is in.
    @return: where it is.
    @raise OSError: it cannot be kept there.
    """
    folder = folder or beside(os.path.dirname(path), QUARANTINE)
    files.make_dirs(folder)
    name = kept = os.path.join(folder, os.path.basename(path))
    number = 1
    while files.exists(kept):
        kept = f"{name}.{number}"
        number += 1
    files.rename(path, kept)
    files.sync_dir(folder)
    return kept


def kept_beside(path: str) -> str:
    """The directory where a file of a queue is kept: beside that of all queues."""
    folder, number = os.path.split(os.path.dirname(path))
    parent, topic = os.path.split(folder)
    return os.path.join(beside(parent, QUARANTINE), topic, number)


@final
class QueueQuarantine:
    """The files of queues of one store that the disk cannot read.

    @ivar distrust: called before a file is set aside, so that no queue is trusted by
        this start or the next.
    @ivar is_starting: whether the queues can be made again now.
    @ivar report: sentences about files that a start has set aside.
    @ivar replaced: the paths of files that were set aside.
    """

    def __init__(self, files: IFiles, count: Callable[[str], None]) -> None:
        """
        @param count: called with a sentence about each such file that is found while
            the broker runs.
        """
        self._files = files
        self._count = count
        self._refused: set[str] = set()
        self.distrust: Callable[[], None] = lambda: None
        self.is_starting = True
        self.report: list[str] = []
        self.replaced: set[str] = set()

    def refused(self, path: str, error: OSError, at: int) -> ReadError:
        """The error for a reader of a file, which is counted once.

        @param at: the byte that could not be read.
        """
        found = located(error, path, at)
        if path not in self._refused:
            self._refused.add(path)
            self._count(
                f"A consume queue cannot be read: {reason(found)}. Its readers are "
                "refused; the next start makes it again from the log."
            )
            self.distrust()
        return found

    def replace(self, path: str, size: int, error: OSError) -> IFile:
        """I{Blocking.} Set a file aside.

        @return: an empty one of a size, in its place.
        @raise OSError: the disk refused, or cannot read the new one either.
        """
        if path in self.replaced:
            raise error
        self.distrust()
        self.replaced.add(path)
        try:
            kept = set_aside(self._files, path, kept_beside(path))
        except OSError as other:
            # The directory of all queues may be a file system of its own.
            self._files.remove(path)
            kept = f"removed, as it cannot be kept elsewhere: {other.strerror}"
        file = self._files.open(path, create=True)
        file.truncate(size)
        if self.is_starting:
            why = reason(located(error, path, 0))
            self.report.append(
                f"A consume queue cannot be read: {why}. The file is now {kept}; its "
                "entries are made again from the log."
            )
        return file
