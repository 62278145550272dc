# -*- test-case-name: tests.files -*-
"""The contract of disks: what every IFiles does, the real disk and one in memory."""

from __future__ import annotations

import errno
import mmap
import os

from zope.interface.verify import verifyObject

from rocketbroker.files.interfaces import FOLDER, IFile, IFiles
from rocketbroker.testing.contracts.case import Contract


class FilesContract(Contract):
    """The suite of L{IFiles}; a test class says what to test with L{make}."""

    def make(self) -> tuple[IFiles, str]:
        """
        @return: new files, and the path of an empty directory of them.
        """
        raise AssertionError("a test class makes its own files")

    def test_interfaces(self) -> None:
        """Files and a file provide what they promise."""
        files, root = self.make()
        verifyObject(IFiles, files)
        file = files.open(f"{root}/a", create=True)
        verifyObject(IFile, file)
        file.close()

    def test_writeAndRead(self) -> None:
        """What was written at a position is read there, by other openings too."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        self.assertEqual(file.pwrite(b"hello", 3), 5)
        self.assertEqual(file.size(), 8)
        again = files.open_readonly(f"{root}/a")
        self.assertEqual(again.pread(100, 0), b"\0\0\0hello")
        self.assertEqual(again.pread(2, 4), b"el")
        self.assertEqual(again.pread(2, 100), b"")
        self.assertEqual(files.read(f"{root}/a"), b"\0\0\0hello")
        self.assertEqual(files.size(f"{root}/a"), 8)
        file.datasync()
        file.close()
        again.close()

    def test_largeWrite(self) -> None:
        """A large write arrives whole, and is read whole."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        content = bytes(range(256)) * 4096
        self.assertEqual(file.pwrite(content, 1), len(content))
        self.assertEqual(file.pread(len(content), 1), content)
        file.close()

    def test_lockAlone(self) -> None:
        """The lock is another one than that of the whole file, and who has it may take
        it again; it goes with the opening that has it. Another one waits for a bounded
        time, and may ask who has it."""
        files, root = self.make()
        one, two = (files.open(f"{root}/a", create=True) for _ in range(2))
        self.assertEqual(two.lock_holder(), 0)
        self.assertTrue(one.lock_alone(0))
        self.assertTrue(one.lock_alone(0))
        self.assertTrue(two.lock())
        for seconds in (0, 0.001):
            self.assertFalse(two.lock_alone(seconds))
        self.assertEqual(two.lock_holder(), os.getpid())
        two.unlock()
        self.assertFalse(two.lock_alone(0))
        one.unlock()
        self.assertTrue(two.lock_alone(0.001))
        two.close()
        self.assertTrue(one.lock_alone(0))
        one.close()

    def test_recordLockHolder(self) -> None:
        """Who is refused the lock of the whole file may ask who has it."""
        files, root = self.make()
        one, two = (files.open(f"{root}/a", create=True) for _ in range(2))
        self.assertEqual(two.record_lock_holder(), 0)
        self.assertTrue(one.lock())
        self.assertFalse(two.lock())
        self.assertEqual(two.record_lock_holder(), os.getpid())
        one.close()
        self.assertEqual(two.record_lock_holder(), 0)
        two.close()

    def test_missing(self) -> None:
        """A missing file is not opened, read, asked or removed; a missing directory
        lists nothing."""
        files, root = self.make()
        path = f"{root}/a"
        for call in (files.open, files.open_readonly, files.size, files.read):
            self.assertRaises(FileNotFoundError, call, path)
        self.assertRaises(FileNotFoundError, files.remove, path)
        self.assertRaises(FileNotFoundError, files.modified_ms, path)
        self.assertFalse(files.exists(path))
        self.assertFalse(files.is_dir(path))
        self.assertEqual(files.list(path), [])

    def test_missingDirectory(self) -> None:
        """No file is made in a directory that is not there, or in a file."""
        files, root = self.make()
        self.assertRaises(FileNotFoundError, files.open, f"{root}/d/a", True)
        files.open(f"{root}/f", create=True).close()
        self.assertRaises(NotADirectoryError, files.open, f"{root}/f/a", True)
        self.assertEqual(files.list(f"{root}/f"), [])

    def test_readonly(self) -> None:
        """An opening for reading cannot write."""
        files, root = self.make()
        files.open(f"{root}/a", create=True).close()
        file = files.open_readonly(f"{root}/a")
        self.assertRaises(OSError, file.pwrite, b"a", 0)
        file.close()

    def test_truncate(self) -> None:
        """Cut and extended, a file has zeros where it was cut."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.pwrite(b"x" * 10000, 0)
        file.truncate(5)
        self.assertEqual(file.size(), 5)
        file.truncate(10000)
        self.assertEqual(file.pread(20000, 0), b"x" * 5 + bytes(9995))
        file.close()

    def test_lengths(self) -> None:
        """The names in a directory come with the lengths of its files; of one that is
        missing, or none, there are none."""
        files, root = self.make()
        file = files.open(f"{root}/b", create=True)
        file.truncate(5000)
        file.close()
        files.make_dirs(f"{root}/a")
        self.assertEqual(files.lengths(root), [("a", FOLDER), ("b", 5000)])
        self.assertEqual(files.lengths(f"{root}/b"), [])
        self.assertEqual(files.lengths(f"{root}/c"), [])

    def test_hole(self) -> None:
        """Behind the last block that was written there is a hole; where the system
        does not know, it does not say so."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.truncate(1 << 20)
        file.pwrite(b"x", 5000)
        self.assertFalse(file.is_hole(0))
        self.assertFalse(file.is_hole(5000))
        if file.is_hole(1 << 19):
            file.pwrite(b"x", (1 << 20) - 1)
            self.assertFalse(file.is_hole(1 << 19))
        file.close()

    def test_sync(self) -> None:
        """A file system can be put on the disk as a whole, if the system can."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.pwrite(b"x", 0)
        self.assertIn(files.sync(root), (False, True))
        self.assertEqual(file.pread(9, 0), b"x")
        file.close()
        self.assertRaises(OSError, files.sync, f"{root}/b")

    def test_allocate(self) -> None:
        """Blocks reserved behind the end let the file grow, and keep what is there."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.pwrite(b"ab", 0)
        file.allocate(0, 5000)
        self.assertEqual(file.size(), 5000)
        file.allocate(0, 100)
        self.assertEqual(file.pread(6000, 0), b"ab" + bytes(4998))
        file.close()

    def test_map(self) -> None:
        """A mapping shows what is written to the file, before or after it was made."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.truncate(8192)
        shown = file.map(8192, False)
        file.pwrite(b"new", 4095)
        self.assertEqual(shown[4094:4099], b"\0new\0")
        written = file.map(8192, True)
        assert isinstance(written, mmap.mmap)
        written[0:2] = b"up"
        self.assertEqual(shown[0:3], b"up\0")
        self.assertEqual(file.pread(3, 0), b"up\0")
        for view in (shown, written):
            assert isinstance(view, mmap.mmap)
            view.close()
        file.close()

    def test_closed(self) -> None:
        """A closed file can be closed again and nothing else."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.close()
        file.close()
        error = self.assertRaises(OSError, file.pread, 1, 0)
        self.assertEqual(error.errno, errno.EBADF)

    def test_directories(self) -> None:
        """Directories are made with those above, listed in order, removed empty."""
        files, root = self.make()
        files.make_dirs(f"{root}/d/e")
        files.make_dirs(f"{root}/d/e")
        self.assertTrue(files.is_dir(f"{root}/d"))
        self.assertTrue(files.exists(f"{root}/d/e"))
        for name in "cab":
            files.open(f"{root}/d/{name}", create=True).close()
        files.sync_dir(f"{root}/d")
        self.assertEqual(files.list(f"{root}/d"), ["a", "b", "c", "e"])
        self.assertFalse(files.is_dir(f"{root}/d/a"))
        self.assertRaises(OSError, files.remove_dir, f"{root}/d")
        files.remove_dir(f"{root}/d/e")
        self.assertFalse(files.exists(f"{root}/d/e"))

    def test_copyMode(self) -> None:
        """A file can be given the permissions of another; both have to be there."""
        files, root = self.make()
        for name in "ab":
            files.open(f"{root}/{name}", create=True).close()
        files.copy_mode(f"{root}/a", f"{root}/b")
        for pair in ("ac", "ca"):
            self.assertRaises(
                FileNotFoundError, files.copy_mode, *(f"{root}/{name}" for name in pair)
            )

    def test_rename(self) -> None:
        """A file takes another name, and the place of what had it."""
        files, root = self.make()
        for name in "ab":
            file = files.open(f"{root}/{name}", create=True)
            file.pwrite(name.encode(), 0)
            file.close()
        files.rename(f"{root}/a", f"{root}/b")
        self.assertEqual(files.list(root), ["b"])
        self.assertEqual(files.read(f"{root}/b"), b"a")
        self.assertRaises(FileNotFoundError, files.rename, f"{root}/a", f"{root}/c")

    def test_renameFolder(self) -> None:
        """So does a directory, with all that is in it."""
        files, root = self.make()
        files.make_dirs(f"{root}/a/within")
        files.open(f"{root}/a/file", create=True).close()
        files.rename(f"{root}/a", f"{root}/b")
        self.assertEqual(files.list(root), ["b"])
        self.assertEqual(files.list(f"{root}/b"), ["file", "within"])
        self.assertRaises(FileNotFoundError, files.rename, f"{root}/a", f"{root}/c")
        self.assertRaises(OSError, files.rename, f"{root}/b", f"{root}/none/b")

    def test_removeOpen(self) -> None:
        """A file that is removed while open can still be read."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.pwrite(b"still", 0)
        files.remove(f"{root}/a")
        self.assertFalse(files.exists(f"{root}/a"))
        self.assertEqual(file.pread(5, 0), b"still")
        file.close()

    def test_usage(self) -> None:
        """The disk says how large it is and what of it can be used."""
        files, root = self.make()
        total, usable = files.usage(root)
        self.assertTrue(0 <= usable <= total)

    def test_modified(self) -> None:
        """The time of a change does not go back."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        before = files.modified_ms(f"{root}/a")
        file.pwrite(b"a", 0)
        self.assertTrue(files.modified_ms(f"{root}/a") >= before)
        file.close()

    def test_stamp(self) -> None:
        """Who looks at a file or a directory does not change its stamp, and no change
        takes it back; without it there is none."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        stamps = files.stamp(root), files.stamp(f"{root}/a")
        files.open(f"{root}/a").pread(1, 0)
        files.list(root)
        self.assertEqual((files.stamp(root), files.stamp(f"{root}/a")), stamps)
        file.pwrite(b"a", 0)
        file.truncate(0)
        self.assertTrue(files.stamp(f"{root}/a") >= stamps[1])
        files.remove(f"{root}/a")
        self.assertTrue(files.stamp(root) >= stamps[0])
        self.assertRaises(FileNotFoundError, files.stamp, f"{root}/a")
        file.close()

    def test_pathsAreAsGiven(self) -> None:
        """A name with any character but the separator is taken as it is."""
        files, root = self.make()
        name = "%RETRY%g é"
        files.open(os.path.join(root, name), create=True).close()
        self.assertEqual(files.list(root), [name])
