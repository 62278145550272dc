"""Tests of L{rocketbroker.broker.table_files}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.table_files import TableFiles
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.threads import Threads


class TableFilesTests(SynchronousTestCase):
    """The directory of the tables."""

    def setUp(self) -> None:
        """Two files, which threads write."""
        self.threads = Threads()
        self.disk = MemoryDisk()
        self.files = TableFiles(self.disk, "/store", self.threads, Clock())
        self.one, self.two = self.files.file("one.json"), self.files.file("two.json")

    def test_filesLieInConfig(self) -> None:
        """Each file has its name, in the directory of the tables."""
        self.assertEqual(self.files.all, [self.one, self.two])
        self.assertEqual(self.one.path, "/store/config/one.json")

    def test_idleWaitsForEachFile(self) -> None:
        """It fires when the last of the files is written."""
        self.assertEqual(self.successResultOf(self.files.idle()), None)
        self.two.save_soon(dict)
        idle = self.files.idle()
        self.assertNoResult(idle)
        self.files.hurry()
        self.threads.run()
        self.successResultOf(idle)

    def test_damagedFileIsAProblem(self) -> None:
        """A file that cannot be read is named, one that can be read is not."""
        self.assertEqual(self.files.problems(), [])
        self.one.save_soon(dict)
        self.threads.run()
        self.disk.open(self.two.path, create=True).pwrite(b"{", 0)
        self.one.load()
        self.two.load()
        [sentence] = self.files.problems()
        self.assertIn(self.two.path, sentence)
