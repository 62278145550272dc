"""First files of a log that were lost, and such that were removed by age."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY, FILLED_SIZE, SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.storetools.verify.files import is_begin_lost, raw_queues
from rocketbroker.testing.files import MemoryDisk

PER_FILE = 10
LOWEST = 10_000


class BeginTests(SynchronousTestCase):
    """A queue of files with ten entries each."""

    def is_lost(self, *places: tuple[int, int]) -> bool:
        """Whether files are held to be lost, with a queue of these entries: how many,
        and from which position on, a hundred bytes each; before 0 they are fillers."""
        disk = MemoryDisk()
        folder = os.path.join("/s", "consumequeue", "T", "0")
        disk.make_dirs(folder)
        entries = []
        for count, position in places:
            for number in range(count):
                size = FILLED_SIZE if position < 0 else 100
                at = max(position, 0) + number * (size if size == 100 else 0)
                entries.append(ENTRY.pack(at, size, 0))
        for first in range(0, len(entries), PER_FILE):
            content = b"".join(entries[first : first + PER_FILE])
            path = os.path.join(folder, segment_name(first * SIZE))
            file = disk.open(path, create=True)
            file.pwrite(content.ljust(PER_FILE * SIZE, b"\0"), 0)
            file.close()
        return is_begin_lost(raw_queues(disk, "/s").values(), 5_000, LOWEST)

    def test_wholeFile(self) -> None:
        """They are where the whole first file of a queue leads into what is missing."""
        self.assertTrue(self.is_lost((10, 6_000), (5, LOWEST)))

    def test_part(self) -> None:
        """Nothing tells where a file leads behind that, too, or is the last one."""
        self.assertFalse(self.is_lost((9, 6_000), (10, LOWEST)))
        self.assertFalse(self.is_lost((10, 6_000)))
        self.assertFalse(self.is_lost((3, 6_000)))
        self.assertFalse(self.is_lost((15, LOWEST)))
        self.assertFalse(self.is_lost())

    def test_oneEntry(self) -> None:
        """One entry alone may be corrupt."""
        self.assertFalse(self.is_lost((9, LOWEST), (1, 6_000), (5, LOWEST)))

    def test_before(self) -> None:
        """A file that leads before what was there, or nowhere, tells nothing."""
        self.assertFalse(self.is_lost((10, 1_000), (5, LOWEST)))
        self.assertFalse(self.is_lost((10, -1), (5, LOWEST)))
