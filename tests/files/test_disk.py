"""The real disk."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from threading import Thread

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk, as_stamp
from rocketbroker.files.interfaces import NOTHING, IFiles
from rocketbroker.testing.contracts.files import FilesContract


class DiskTests(FilesContract, SynchronousTestCase):
    """The contract, in a directory of trial's."""

    def make(self) -> tuple[IFiles, str]:
        """A directory for this test."""
        root = os.path.abspath(self.mktemp())
        os.makedirs(root)
        return Disk(), root

    def modes_of(self, umask: int) -> list[int]:
        """The permissions of two directories and of a file that are made."""
        files, root = self.make()
        self.addCleanup(os.umask, os.umask(umask))
        files.make_dirs(f"{root}/a/b")
        files.make_dirs(f"{root}/a/b/")
        files.open(f"{root}/a/b/c", create=True).close()
        paths = (f"{root}/a", f"{root}/a/b", f"{root}/a/b/c")
        return [stat.S_IMODE(os.stat(path).st_mode) for path in paths]

    def test_othersHaveNoPermission(self) -> None:
        """What is made is for its user and the group, or less if the umask says so."""
        self.assertEqual(self.modes_of(0o000), [0o750, 0o750, 0o640])
        self.assertEqual(self.modes_of(0o022), [0o750, 0o750, 0o640])
        self.assertEqual(self.modes_of(0o077), [0o700, 0o700, 0o600])

    def test_whatIsThereKeepsItsPermissions(self) -> None:
        """Neither a directory nor a file that is there is changed."""
        files, root = self.make()
        os.mkdir(f"{root}/a")
        for path, mode in ((f"{root}/a", 0o755), (f"{root}/a/c", 0o644)):
            if path.endswith("c"):
                os.close(os.open(path, os.O_CREAT))
            os.chmod(path, mode)
        files.make_dirs(f"{root}/a")
        files.open(f"{root}/a/c", create=True).close()
        self.assertEqual(stat.S_IMODE(os.stat(f"{root}/a").st_mode), 0o755)
        self.assertEqual(stat.S_IMODE(os.stat(f"{root}/a/c").st_mode), 0o644)

    def test_fileInThePlaceOfADirectory(self) -> None:
        """A file is no directory, nor can there be one below it."""
        files, root = self.make()
        files.open(f"{root}/a", create=True).close()
        self.assertRaises(FileExistsError, files.make_dirs, f"{root}/a")
        self.assertRaises(OSError, files.make_dirs, f"{root}/a/b")

    def test_holderOfJavasLock(self) -> None:
        """Of a record lock, as Java takes it, the kernel tells the process."""
        files, root = self.make()
        file = files.open(f"{root}/lock", create=True)
        with open(f"{root}/lock", "r+b") as taken:
            fcntl.lockf(taken, fcntl.LOCK_EX, 1, 0)
            self.assertFalse(file.lock())
            self.assertEqual(file.record_lock_holder(), os.getpid())

    def test_lock(self) -> None:
        """The lock is one that a process may take twice, and needs writing."""
        files, root = self.make()
        file = files.open(f"{root}/lock", create=True)
        self.assertTrue(file.lock())
        self.assertTrue(file.lock())
        file.close()

    def test_waitForLock(self) -> None:
        """Who wants a lock that another opening has gets it when that one gives it up:
        in the main thread, and in another one, which gets no alarm."""
        files, root = self.make()
        one, two = (files.open(f"{root}/a", create=True) for _ in range(2))
        one.lock_alone(0)
        other = Thread(target=one.unlock)
        other.start()
        self.assertTrue(two.lock_alone(60))
        other.join()
        got: list[bool] = []
        other = Thread(target=lambda: got.append(one.lock_alone(60)))
        other.start()
        two.close()
        other.join()
        self.assertEqual(got, [True])
        one.close()

    def test_cannotReserve(self) -> None:
        """Where the system cannot reserve blocks (as it says of a range of nothing)
        that is no error: what is missing is written, and what is there is left."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        file.pwrite(b"abc", 0)
        file.allocate(1, 0)
        self.assertEqual(files.read(f"{root}/a"), b"abc")
        file.close()

    def cannot(self, fd: int, position: int, size: int) -> None:
        """A system that cannot reserve blocks."""
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    def test_reservedByWriting(self) -> None:
        """Without such a call, or where it refuses, what is reserved has blocks all the
        same, holes as well, and what is there stays."""
        _, root = self.make()
        mib = 1 << 20
        for number, reserve in enumerate((None, self.cannot)):
            file = Disk(reserve).open(f"{root}/{number}", create=True)
            file.truncate(3 * mib)
            file.pwrite(b"a" * 5000, 2 * mib - 100)
            file.allocate(mib + 10, 3 * mib)
            self.assertEqual(file.size(), 4 * mib + 10)
            self.assertEqual(file.pread(5100, 2 * mib - 200).strip(b"\0"), b"a" * 5000)
            self.assertEqual(file.pread(4 * mib + 10, 0).count(0), 4 * mib - 4990)
            blocks = os.stat(f"{root}/{number}").st_blocks * 512
            self.assertTrue(3 * mib <= blocks <= 3 * mib + (64 << 10), blocks)
            file.pwrite(b"end", 4 * mib + 10)
            file.allocate(4 * mib, 100)
            self.assertEqual(file.size(), 4 * mib + 100)
            self.assertEqual(file.pread(3, 4 * mib + 10), b"end")
            file.close()

    def test_linkToNothing(self) -> None:
        """A link that leads nowhere has no length; all else in its directory has."""
        files, root = self.make()
        files.open(f"{root}/a", create=True).truncate(7)
        os.symlink(f"{root}/none", f"{root}/b")
        self.assertEqual(files.lengths(root), [("a", 7), ("b", NOTHING)])

    def test_wholeSeconds(self) -> None:
        """A file system that counts in seconds has no stamps."""
        files, root = self.make()
        self.assertEqual(files.stamp(root), os.stat(root).st_ctime_ns)
        self.assertEqual(as_stamp(7_000_000_001), 7_000_000_001)
        error = self.assertRaises(OSError, as_stamp, 7_000_000_000)
        self.assertEqual(error.errno, errno.ENOTSUP)

    def test_reserveFails(self) -> None:
        """What a system that can reserve blocks refuses is an error."""

        def full(fd: int, position: int, size: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        _, root = self.make()
        file = Disk(full).open(f"{root}/a", create=True)
        error = self.assertRaises(OSError, file.allocate, 0, 100)
        self.assertEqual(error.errno, errno.ENOSPC)
        self.assertEqual(file.size(), 0)
        file.close()

    def test_forgotten(self) -> None:
        """A file that nobody closed is closed when it is forgotten."""
        files, root = self.make()
        file = files.open(f"{root}/a", create=True)
        self.assertIn("a", repr(file))
        before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 1
        del file
        after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc") else 0
        self.assertEqual(after, before - 1)
