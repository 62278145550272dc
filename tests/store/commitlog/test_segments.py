"""The files of the log."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.files.interfaces import IFile
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.file_names import position_of_name, segment_name
from rocketbroker.testing.files import MemoryDisk

SIZE = 8192


class NameTests(SynchronousTestCase):
    """Names of files."""

    def test_names(self) -> None:
        """A name is the position in 20 digits; others tell no position."""
        self.assertEqual(segment_name(1 << 30), "00000000001073741824")
        self.assertEqual(position_of_name("00000000001073741824"), 1 << 30)
        for other in ("", "1073741824", "0000000000107374182x", "\u0660" * 20):
            self.assertEqual(position_of_name(other), -1)


class SegmentsTests(SynchronousTestCase):
    """Making, finding and reading segments."""

    def setUp(self) -> None:
        """A log without segments."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/log")
        self.segments = Segments(OpenFiles(self.disk), ["/log"], SIZE)

    def test_roll(self) -> None:
        """Segments follow each other, of full length, with blocks."""
        first = self.segments.roll()
        second = self.segments.roll()
        self.assertEqual((first.start, first.end), (0, SIZE))
        self.assertEqual((second.start, second.end), (SIZE, 2 * SIZE))
        self.assertEqual(self.disk.size(second.path), SIZE)
        self.assertEqual(self.disk.used(), 2 * SIZE)
        self.assertEqual(second.path, "/log/00000000000000008192")

    def test_find(self) -> None:
        """A position is in one segment, or in none."""
        self.assertIsNone(self.segments.find(0))
        segments = [self.segments.roll() for _ in range(3)]
        self.assertIs(self.segments.find(0), segments[0])
        self.assertIs(self.segments.find(SIZE - 1), segments[0])
        self.assertIs(self.segments.find(SIZE), segments[1])
        self.assertIs(self.segments.find(3 * SIZE - 1), segments[2])
        self.assertIsNone(self.segments.find(3 * SIZE))
        self.assertIsNone(self.segments.find(-1))

    def test_read(self) -> None:
        """Hot and cold, the same bytes are read, to the end of the segment."""
        segment = self.segments.roll()
        segment.file.pwrite(b"hello", 100)
        segment.file.pwrite(b"end", SIZE - 3)
        for cold in (False, True):
            self.assertEqual(self.segments.read(100, 5, cold), b"hello")
            self.assertEqual(self.segments.read(SIZE - 3, 100, cold), b"end")
            self.assertEqual(self.segments.read(SIZE, 100, cold), b"")

    def test_readOnly(self) -> None:
        """Where the file system can only be read any more, a segment that was opened to
        be written, and was not mapped before, can be read all the same."""
        segment = self.segments.roll()
        segment.file.pwrite(b"hello", 100)
        self.disk.fail("map", errno.EROFS)
        self.assertEqual(self.segments.read(100, 5, cold=False), b"hello")
        segment.let_go()
        segment.close()
        self.disk.fail("open", errno.EROFS)
        self.assertEqual(self.segments.read(100, 5, cold=True), b"hello")
        self.disk.fail("map", errno.EIO)
        self.assertRaises(OSError, self.segments.read, 100, 5, False)

    def test_letGo(self) -> None:
        """One that is full and on the disk is opened when it is read; one that is
        removed then has no bytes."""
        segment = self.segments.roll()
        self.segments.roll()
        segment.let_go()
        opens = self.disk.calls["open"]
        for _ in range(2):
            self.assertEqual(self.segments.read(100, 5, cold=True), bytes(5))
        self.assertEqual(self.disk.calls["open"], opens)
        self.segments.open_files.drop(segment)
        self.assertEqual(self.segments.read(100, 5, cold=True), bytes(5))
        self.assertEqual(self.disk.calls["open"], opens + 1)
        self.segments.open_files.drop(segment)
        self.disk.remove(segment.path)
        for cold in (True, False):
            self.assertEqual(self.segments.read(100, 5, cold), b"")

    def test_keepOpen(self) -> None:
        """The last one, which a start has found, stays open, however many others are
        used; not in a directory in which nothing is written."""
        self.segments.roll()
        for read_only, is_kept in ((["/log"], False), ([], True)):
            open_files = OpenFiles(self.disk)
            segments = Segments(open_files, ["/log"], SIZE, read_only)
            segment = Segment(0, SIZE, f"/log/{segment_name(0)}", open_files)
            segments.all = [segment]
            file = segment.file
            segments.keep_last_open()
            open_files.drop(segment)
            self.assertEqual(segment.file is file, is_kept)

    def test_prepare(self) -> None:
        """The next segment is made where nobody looks, and moved when needed."""
        self.segments.roll()
        self.assertTrue(self.segments.prepare())
        self.assertFalse(self.segments.prepare())
        self.assertEqual(self.disk.list("/log"), [segment_name(0)])
        self.assertEqual(self.disk.list("/log.ahead"), [segment_name(SIZE)])
        opens = self.disk.calls["open"]
        segment = self.segments.roll()
        self.assertEqual(self.disk.calls["open"], opens)
        self.assertEqual(segment.start, SIZE)
        self.assertEqual(self.disk.list("/log.ahead"), [])
        self.assertEqual(self.disk.list("/log"), [segment_name(0), segment_name(SIZE)])

    def test_name(self) -> None:
        """A new segment survives a crash once it has been named."""
        self.disk.sync_dir("/")
        segment = self.segments.roll()
        self.assertFalse(segment.is_dir_synced)
        self.segments.sync_dir_of(segment)
        self.assertTrue(segment.is_dir_synced)
        self.disk.crash()
        self.assertIn(segment_name(0), self.disk.list("/log"))

    def test_noRoom(self) -> None:
        """When there is no room nothing is left behind, and it works later."""
        self.segments.roll()
        self.disk.capacity = SIZE + 4096
        for call in (self.segments.prepare, self.segments.roll):
            error = self.assertRaises(OSError, call)
            self.assertEqual(error.errno, errno.ENOSPC)
            self.assertEqual(self.disk.list("/log.ahead"), [])
        self.assertEqual(len(self.segments.all), 1)
        self.disk.capacity = 2 * SIZE
        self.segments.roll()

    def test_renameFails(self) -> None:
        """A segment that cannot be moved to its place is made again."""
        self.disk.fail("rename", errno.EIO)
        self.assertRaises(OSError, self.segments.roll)
        self.assertEqual(self.segments.all, [])
        self.segments.roll()
        self.assertEqual(self.disk.size(f"/log/{segment_name(0)}"), SIZE)

    def test_otherFileSystem(self) -> None:
        """Where what is made beside the log cannot be moved into it, or cannot be made,
        the next segment is made inside."""
        self.disk.fail("rename", errno.EXDEV)
        segment = self.segments.roll()
        self.assertEqual(self.disk.list("/log"), [segment_name(0), "ahead"])
        segment.file.pwrite(b"x", 0)
        self.segments.prepare()
        self.assertEqual(self.disk.list("/log/ahead"), [segment_name(SIZE)])
        self.segments.close()
        self.assertEqual(self.disk.list("/log"), [segment_name(0)])
        self.assertEqual(self.disk.list("/"), ["log"])
        segments = Segments(OpenFiles(self.disk), ["/log"], SIZE)
        self.disk.fail("make_dirs", errno.EACCES)
        segments.prepare()
        self.assertEqual(self.disk.list("/log/ahead"), [segment_name(0)])

    def test_cut(self) -> None:
        """What is cut reads as zeros."""
        segment = self.segments.roll()
        segment.file.pwrite(b"x" * SIZE, 0)
        segment.cut(5000)
        self.assertEqual(segment.allocated, 5000)
        self.assertEqual(segment.file.pread(SIZE, 0), b"x" * 5000 + bytes(SIZE - 5000))
        self.assertEqual(segment.view()[4999:5001], b"x\0")

    def test_allocate(self) -> None:
        """Blocks are reserved once, and never beyond the end."""
        segment = self.segments.roll()
        segment.cut(0)
        self.assertTrue(segment.allocate(100))
        self.assertFalse(segment.allocate(50))
        self.assertTrue(segment.allocate(10 * SIZE))
        self.assertEqual(segment.allocated, SIZE)
        self.assertFalse(segment.allocate(10 * SIZE))

    def test_folders(self) -> None:
        """With several directories each gets every so many segments, in the
        order of their names."""
        self.disk.make_dirs("/b")
        segments = Segments(OpenFiles(self.disk), ["/log", "/b"], SIZE)
        paths = [segments.roll().path for _ in range(3)]
        self.assertEqual(
            paths,
            [
                f"/b/{segment_name(0)}",
                f"/log/{segment_name(SIZE)}",
                f"/b/{segment_name(2 * SIZE)}",
            ],
        )

    def test_standIn(self) -> None:
        """What stands in for a missing segment is read like one, and not written; the
        file that it would have is somebody else's."""
        segment = self.segments.stand_in(2 * SIZE, b"begin")
        verifyObject(IFile, segment.file)
        whole = b"begin" + bytes(SIZE - 5)
        self.assertEqual((segment.start, segment.end), (2 * SIZE, 3 * SIZE))
        self.assertEqual(segment.file.pread(2 * SIZE, 0), whole)
        self.assertEqual(segment.file.pread(SIZE, 3), whole[3:])
        self.assertEqual(segment.view()[:], whole)
        self.assertEqual(segment.file.size(), SIZE)
        self.assertRaises(OSError, segment.file.pwrite, b"x", 0)
        segment.cut(2 * SIZE)
        segment.let_go()
        self.assertTrue(segment.is_missing)
        self.assertTrue(segment.allocate(3 * SIZE))
        self.assertTrue(segment.file.lock())
        segment.file.datasync()
        segment.close()
        self.assertEqual(segment.file.pread(SIZE, 0), whole)
        self.assertFalse(self.disk.exists(segment.path))

    def test_removeFirst(self) -> None:
        """The new begin of the log is announced before the segment is gone: nobody asks
        for what cannot be found."""
        first, second = self.segments.roll(), self.segments.roll()
        first.let_go()
        begins: list[tuple[int, Segment | None]] = []
        self.segments.remove_first(
            lambda begin: begins.append((begin, self.segments.find(0)))
        )
        self.assertEqual(begins, [(SIZE, first)])
        self.assertEqual(self.segments.all, [second])
        self.assertEqual(len(self.segments.open_files), 0)

    def test_closeWhileRead(self) -> None:
        """Who has a part of a mapping still has it when the segment is closed."""
        segment = self.segments.roll()
        segment.file.pwrite(b"record", 5)
        part = segment.pages()[5:11]
        self.segments.close()
        self.assertEqual(bytes(part), b"record")

    def test_close(self) -> None:
        """What was prepared and not used is removed, also that of a process before."""
        segment = self.segments.roll()
        segment.view()
        self.segments.prepare()
        self.segments.close()
        self.assertEqual(self.disk.list("/log"), [segment_name(0)])
        for folder in ("/log/ahead", "/log.ahead"):
            self.disk.make_dirs(folder)
            self.disk.open(f"{folder}/x", create=True)
        self.segments.remove_ahead()
        self.assertEqual(self.disk.list("/"), ["log"])
        self.assertEqual(self.disk.list("/log"), [segment_name(0)])
