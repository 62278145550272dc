# -*- test-case-name: tests.storetools.repair.test_stopgaps -*-
"""Files for the place of such of the log that are gone for good.

A start goes on without them (L{rocketbroker.store.commitlog.loading}), and so does the
reference; but both count on it that they come back, or pass over what led into them one
message after the other, and a start of the reference after a crash may end the log
before the gap. Who has given them up wants a log that is whole. So between others, and
at the end, where a clean stop tells that there were more, each gets a new file, which
is filled like all that cannot be read: messages that queues know keep their places,
without bodies. What is missing at the beginning stays away: then the log begins behind
it, as after cleaning.

Until it is full, a file is in a directory of its own inside that of the log: zeros in
the middle of a log would end it for the reference. Both pass over directories there;
what an interrupted repair has left in one is removed by the next.

They are sparse: of what no message stood in only heads are written.

The store sheet, sections 2.2 and 15.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, final

from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.storetools.repair.backup import Backup

#: The directory with files that are not full yet.
UNFINISHED: Final = "unfinished-by-repair"


@final
class StopGaps:
    """Those of one repair."""

    def __init__(self, files: IFiles, size: int) -> None:
        """
        @param size: how long each is.
        """
        self._files = files
        self._size = size
        self._paths: dict[str, str] = {}

    def make(self, gaps: Sequence[tuple[int, int, str]]) -> None:
        """I{Blocking.} Make them, not in their places yet.

        @param gaps: from where to where files are missing, and the directory that they
            belong to.
        @raise OSError: the disk refused.
        """
        for folder in sorted({folder for _, _, folder in gaps}):
            self._clear(os.path.join(folder, UNFINISHED))
        for first, end, folder in gaps:
            unfinished = os.path.join(folder, UNFINISHED)
            make_lasting(self._files, unfinished)
            for start in range(first, end, self._size):
                path = os.path.join(unfinished, segment_name(start))
                self._paths[path] = os.path.join(folder, segment_name(start))
                file = self._files.open(path, create=True)
                try:
                    file.truncate(self._size)
                    file.datasync()
                finally:
                    file.close()

    @property
    def folders(self) -> list[str]:
        """Where those are that are not in their places."""
        return sorted({os.path.dirname(path) for path in self._paths})

    @property
    def regions(self) -> set[tuple[int, int]]:
        """From where to where each goes."""
        starts = [position_of_name(os.path.basename(path)) for path in self._paths]
        return {(start, start + self._size) for start in starts}

    def is_new(self, path: str) -> bool:
        """Whether a file is one of these."""
        return path in self._paths

    def place_of(self, path: str) -> str:
        """Where a file will be; of any other, where it is."""
        return self._paths.get(path, path)

    def put(self, copies: Backup) -> None:
        """I{Blocking.} Move them to their places: what is in them is on the disk.

        @raise OSError: the disk refused.
        """
        folders = self.folders
        for place in self._paths.values():
            copies.made(place, self._size)
        copies.sync()
        for path, place in self._paths.items():
            self._files.rename(path, place)
        self._paths.clear()
        for folder in folders:
            self._files.sync_dir(os.path.dirname(folder))
            self._clear(folder)

    def drop(self) -> None:
        """I{Blocking.} Remove those that are not in their places.

        @raise OSError: the disk refused.
        """
        folders = self.folders
        self._paths.clear()
        for folder in folders:
            self._clear(folder)

    def _clear(self, folder: str) -> None:
        if self._files.exists(folder):
            for name in self._files.list(folder):
                self._files.remove(os.path.join(folder, name))
            self._files.remove_dir(folder)
