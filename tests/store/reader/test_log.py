"""The files of a log that is only read."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.log import LogFiles, size_of_files
from rocketbroker.store.reader.unreadable import Unreadable
from rocketbroker.testing.files import MemoryDisk


class SizeTests(SynchronousTestCase):
    """The size that files should have, by names and lengths."""

    def test_all(self) -> None:
        """What all have is right, whatever the settings say."""
        self.assertEqual(size_of_files({0: 100, 100: 100, 200: 100}, 300), 100)
        self.assertEqual(size_of_files({0: 100, 500: 100}, 500), 100)
        self.assertEqual(size_of_files({0: 100}), 100)
        self.assertEqual(size_of_files({}), 0)
        self.assertEqual(size_of_files({0: 0}, 100), 0)

    def test_one(self) -> None:
        """Of a single file the settings say it."""
        self.assertEqual(size_of_files({0: 80}, 100), 100)
        self.assertEqual(size_of_files({200: 80}, 300), 80)

    def test_odd(self) -> None:
        """One that is longer or shorter than the others has not their say."""
        for length in (0, 1, 50, 94, 101, 200):
            for at in (0, 100, 200):
                lengths = {0: 100, 100: 100, 200: 100, at: length}
                self.assertEqual(size_of_files(lengths), 100, lengths)
        self.assertEqual(size_of_files({0: 50, 100: 100}), 100)
        self.assertEqual(size_of_files({0: 100, 100: 50, 200: 50}), 100)
        self.assertEqual(size_of_files({0: 101, 100: 99, 200: 98}), 100)

    def test_missing(self) -> None:
        """Where others are missing, the distance says nothing."""
        self.assertEqual(size_of_files({0: 100, 200: 100, 400: 100}), 100)
        self.assertEqual(size_of_files({0: 100, 200: 100, 400: 30}), 100)


class LogFilesTests(SynchronousTestCase):
    """A directory of such files."""

    def setUp(self) -> None:
        """Make it."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/log")

    def make(self, **lengths: int) -> LogFiles:
        """Make files of some lengths, by C{at<position>}, and open them."""
        for name, length in lengths.items():
            path = os.path.join("/log", segment_name(int(name[2:])))
            file = self.disk.open(path, create=True)
            file.truncate(0)
            file.pwrite(b"x" * length, 0)
            file.close()
        return LogFiles(self.disk, ["/log"], 0, Unreadable())

    def test_odd(self) -> None:
        """All are read: a short one as zeros behind its end, a long one to where the
        next begins; both are reported."""
        log = self.make(at0=90, at100=100, at200=101, at300=100)
        self.assertEqual([each.start for each in log.segments], [0, 100, 200, 300])
        self.assertEqual({each.end - each.start for each in log.segments}, {100})
        self.assertEqual(
            [(odd.start, odd.length) for odd in log.odd], [(0, 90), (200, 101)]
        )
        self.assertEqual(log.segments[0].pread(20, 85), b"x" * 5 + bytes(10))
        self.assertEqual(log.segments[1].pread(200, 90), b"x" * 10)
        self.assertEqual((log.gaps(), log.astray), ([], []))
        log.close()

    def test_empty(self) -> None:
        """An empty one at the end is just being made; elsewhere it is reported.
        Where all are empty there is no log."""
        log = self.make(at0=100, at100=0, at200=100, at300=0)
        self.assertEqual([odd.start for odd in log.odd], [100])
        self.assertEqual([each.start for each in log.segments], [0, 100, 200])
        log = self.make(at0=0, at100=0, at200=0)
        self.assertEqual((log.size, log.segments), (0, []))

    def test_gap(self) -> None:
        """What is missing is reported, and no position in it is found."""
        log = self.make(at0=100, at300=100, at400=100)
        path = os.path.join("/log", segment_name(100))
        self.assertEqual(log.gaps(), [(100, 300, path)])
        found = [log.find(at) for at in (-1, 0, 99, 100, 299, 300, 499, 500)]
        starts = [None if each is None else each.start for each in found]
        self.assertEqual(starts, [None, 0, 0, None, None, 300, 400, None])

    def test_astray(self) -> None:
        """One that begins within another is not read, and reported; a directory is not
        read either."""
        self.disk.make_dirs(os.path.join("/log", segment_name(300)))
        log = self.make(at0=100, at100=100, at200=100, at150=100)
        self.assertEqual([each.start for each in log.segments], [0, 100, 200])
        self.assertEqual([each.start for each in log.astray], [150])

    def test_again(self) -> None:
        """Files that came meanwhile are found."""
        log = self.make(at0=100)
        self.assertIsNone(log.find(150))
        self.make(at100=100).close()
        found = log.again().find(150)
        assert found is not None
        self.assertEqual(found.start, 100)
