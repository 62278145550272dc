# -*- test-case-name: tests.app.test_temporary -*-
"""The directory of a store that is thrown away at the end.

A process that is killed leaves its directory behind, in a place that is often memory.
The next one removes it: a directory that has the mark of ours, and of which nobody
holds a lock, neither that of the mark nor that of a store in it. A name proves nothing,
nor does an age: a broker may run for months. The mark names the inode of its directory,
so that the copy that somebody made to look into it stays.

The mark is locked before it has its name, so that no directory is seen without a lock
whose owner is only about to open the store.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.disk import Disk
from rocketbroker.files.interfaces import IFile
from rocketbroker.store.store_lock import LOCK

#: How the names of the directories begin. It is only where to look.
PREFIX: Final = "rocketbroker-"

#: The file that says that a directory is one of ours.
MARK: Final = "rocketbroker.temporary"

#: The least size of a segment of the log. There are two at once, and both take memory.
SEGMENT: Final = 8 << 20

#: What a segment has beside the largest body: properties, the topic, the filler.
BESIDE: Final = 1 << 20

#: The index allocates its slots; 100 MB are for 20 million keys. Its entries, queue
#: files and those of timers take memory only where something is written.
INDEX: Final = {"maxHashSlotNum": "20000", "maxIndexNum": "80000"}


def small_sizes(settings: Mapping[str, str]) -> dict[str, str]:
    """The sizes of files with which a store takes little memory.

    The largest message fits.

    @param settings: of the broker.
    """
    text = settings.get("maxMessageSize", "")
    most = int(text) if text.isdigit() else StoreOptions().max_message_size
    return {"mappedFileSizeCommitLog": str(max(SEGMENT, most + BESIDE)), **INDEX}


@final
class TemporaryDirectory:
    """A directory of ours, locked as long as this process lives.

    @ivar path: where it is.
    """

    def __init__(self, parent: str) -> None:
        """
        I{Blocking.} Make it.

        @raise OSError: it cannot be made.
        """
        self.path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
        named = os.path.join(self.path, MARK)
        self._mark = Disk().open(f"{named}.new", create=True)
        self._mark.lock()
        self._mark.pwrite(_content(self.path), 0)
        os.rename(f"{named}.new", named)

    def remove(self) -> None:
        """I{Blocking.} Remove it, and all in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._mark.close()


def remove_left(parent: str, log: Logger) -> None:
    """I{Blocking.} Remove the directories that killed processes have left.

    Those of other users stay.

    @param parent: where they are.
    """
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.name.startswith(PREFIX) and _is_own(entry):
                    _remove_unheld(entry.path, log)


def _content(path: str) -> bytes:
    """What the mark of a directory contains."""
    return b"%d\n" % os.stat(path).st_ino


def _is_own(entry: os.DirEntry[str]) -> bool:
    """Whether it is a directory of this user that has the mark."""
    if (
        not entry.is_dir(follow_symlinks=False)
        or entry.stat(follow_symlinks=False).st_uid != os.geteuid()
    ):
        return False
    with open(os.path.join(entry.path, MARK), "rb") as mark:
        return mark.read(64) == _content(entry.path)


def _remove_unheld(path: str, log: Logger) -> None:
    """Remove a directory unless somebody holds one of its locks."""
    held: list[IFile] = []
    try:
        for lock in _locks(path):
            file: IFile = Disk().open(lock)
            held.append(file)
            if not file.lock():
                return
        shutil.rmtree(path, ignore_errors=True)
        log.info(
            "Removed {path}, which a standalone --temporary left that was killed.",
            path=path,
        )
    finally:
        for file in held:
            file.close()


def _locks(path: str) -> Iterator[str]:
    """The locks of a directory: the mark, and those of its stores."""
    yield os.path.join(path, MARK)
    replicas = (name for name in os.listdir(path) if name.startswith("replica-"))
    for folder in (path, *(os.path.join(path, name) for name in sorted(replicas))):
        lock = os.path.join(folder, LOCK)
        if os.path.exists(lock):
            yield lock
