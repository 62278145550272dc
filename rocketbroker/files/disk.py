# -*- test-case-name: tests.files.test_disk -*-
"""The real disk: files as the operating system has them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import signal
import stat
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias, final

from zope.interface import classImplements

from rocketbroker.files.interfaces import FOLDER, NOTHING, IFile, IFiles
from rocketbroker.files.os_errors import located

#: The command for a lock of the open file; None where the system has none.
_OPEN_FILE_LOCK: int | None = getattr(fcntl, "F_OFD_SETLK", None)

#: The command that asks who has it.
_ASK_FOR_LOCK: int | None = getattr(fcntl, "F_OFD_GETLK", None)

#: A lock, as the kernel takes it.
_RECORD_LOCK = struct.Struct(
    "h"  # l_type
    "h"  # l_whence
    "q"  # l_start
    "q"  # l_len
    "i"  # l_pid
    "4x"
)

#: An exclusive lock of byte 0.
_FIRST_BYTE = _RECORD_LOCK.pack(
    fcntl.F_WRLCK,  # l_type
    os.SEEK_SET,  # l_whence
    0,  # l_start
    1,  # l_len
    0,  # l_pid, which has to be 0
)

#: The errors of some C libraries for a file system that cannot reserve blocks.
_CANNOT_RESERVE = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)

#: Where C{posix_fallocate} is missing, or cannot do it, blocks are reserved by writing
#: so many zeros at a time: enough to be quick, not enough to be felt in memory. Some C
#: libraries do the same by themselves.
_ZEROS = 1 << 20

#: Reading does not write the time of the reading to the disk: a start that reads once
#: in each of thousands of files would change them all.
_NO_ACCESS_TIME: int = getattr(os, "O_NOATIME", 0)

#: A hole is at least as large as the block of a file system.
_BLOCK = 4096

#: Finds the next bytes that are not in a hole; negative where the system does not.
_SEEK_DATA: int = getattr(os, "SEEK_DATA", -1)

#: Puts a file system on the disk; None where the system has no such call.
_SYNCFS: Callable[[int], int] | None = getattr(ctypes.CDLL(None), "syncfs", None)

_flock = fcntl.flock
_LOCK_NOW = fcntl.LOCK_EX | fcntl.LOCK_NB
_UNLOCK = fcntl.LOCK_UN

#: The pause between two attempts of a thread to get a lock, in s.
_PAUSE = 0.001

#: All locks of files, by the Linux kernel.
_LOCKS = "/proc/locks"

#: Reserves blocks of a descriptor: position, size.
Reserve: TypeAlias = Callable[[int, int, int], None]

_RESERVE: Reserve | None = getattr(os, "posix_fallocate", None)


#: The permissions of a store: its messages are for the broker's user, and for a group
#: that may read them, as for a backup.
STORE_FILE_MODE: Final = 0o640
STORE_DIRECTORY_MODE: Final = 0o750


def as_stamp(changed_ns: int) -> int:
    """The stamp for a time of a change.

    @raise OSError: the file system counts in seconds: too much can happen in one.
    """
    if not changed_ns % 1_000_000_000:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))
    return changed_ns


def _take(fd: int) -> bool:
    """Take the lock of an opening if no other one has it."""
    try:
        _flock(fd, _LOCK_NOW)
    except BlockingIOError:
        return False
    return True


def _locked_inodes(process: str) -> set[int]:
    """The inodes of files that a process has open with a lock of that opening; none if
    it has ended, or is another user's."""
    found = set()
    with suppress(OSError):
        for number in os.listdir(f"/proc/{process}/fdinfo"):
            with open(f"/proc/{process}/fdinfo/{number}", "rb") as lines:
                for line in lines:
                    # "lock:", number, kind, advisory, WRITE, -1, device and inode.
                    words = line.split()
                    if words[:1] == [b"lock:"] and words[2] == b"OFDLCK":
                        found.add(int(words[6].rpartition(b":")[2]))
    return found


def _who_has_open(inode: int) -> int:
    """The process that has a file open with a lock of that opening; 0: not known."""
    for process in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        if inode in _locked_inodes(process):
            return int(process)
    return 0


@final
class _Alarm:
    """Lets the main thread wait for a lock for a bounded time.

    The system wakes those who wait, at once, but knows no bound: an alarm interrupts
    the call. (To ask again and again takes a tenth more of a core, and those who take
    turns starve whoever does.) An alarm that comes just before the call does not
    interrupt it, so it comes again. Its handler stays, as to set it takes longer than
    most waits.
    """

    def __init__(self) -> None:
        self._is_handled = False
        self._is_awaited = False

    def take(self, fd: int, seconds: float) -> bool:
        """Take the lock of an opening, if it can be had in so many seconds."""
        if not self._is_handled:
            self._is_handled = True
            signal.signal(signal.SIGALRM, self._rings)
        self._is_awaited = True
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
            _flock(fd, fcntl.LOCK_EX)
            self._is_awaited = False
            return True
        except TimeoutError:
            # It may have been taken at the last moment.
            return _take(fd)
        finally:
            self._is_awaited = False
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _rings(self, number: int, frame: object) -> None:
        if self._is_awaited:
            self._is_awaited = False
            raise TimeoutError


_ALARM = _Alarm()


def _ask_again(fd: int, seconds: float) -> bool:
    """Wait for the lock of an opening, in another thread, which gets no alarm."""
    latest = time.monotonic() + seconds
    while not _take(fd):
        if time.monotonic() >= latest:
            return False
        time.sleep(_PAUSE)
    return True


@final
class DiskFile:
    """An open file: a descriptor."""

    __slots__ = ("_fd", "_path", "_reserve")

    def __init__(self, fd: int, path: str, reserve: Reserve | None) -> None:
        self._fd = fd
        self._path = path
        self._reserve = reserve

    def __repr__(self) -> str:
        return f"<DiskFile {self._path!r}>"

    def pread(self, size: int, position: int) -> bytes:
        """See L{IFile.pread}."""
        got = 0
        try:
            data = os.pread(self._fd, size, position)
            if len(data) == size or not data:
                return data
            pieces = [data]
            got = len(data)
            while got < size:
                data = os.pread(self._fd, size - got, position + got)
                if not data:
                    break
                pieces.append(data)
                got += len(data)
        except OSError as error:
            raise located(error, self._path, position + got) from error
        return b"".join(pieces)

    def pwrite(self, data: bytes, position: int) -> int:
        """See L{IFile.pwrite}."""
        size = len(data)
        done = os.pwrite(self._fd, data, position)
        while done < size:
            done += os.pwrite(self._fd, data[done:], position + done)
        return size

    def allocate(self, position: int, size: int) -> None:
        """See L{IFile.allocate}."""
        if self._reserve is not None:
            try:
                self._reserve(self._fd, position, size)
                return
            except OSError as error:
                if error.errno not in _CANNOT_RESERVE:
                    raise
        end = position + size
        for start in range(position, end, _ZEROS):
            self._fill(start, min(_ZEROS, end - start))

    def _fill(self, start: int, size: int) -> None:
        """Write zeros where nothing is, and where zeros are, which may be a hole."""
        zeros = bytes(size)
        there = self.pread(size, start)
        if there == zeros[: len(there)]:
            self.pwrite(zeros, start)
            return
        for at in range(0, size, _BLOCK):
            block = there[at : at + _BLOCK]
            missing = min(_BLOCK, size - at) - len(block)
            if block == zeros[: len(block)]:
                self.pwrite(zeros[: len(block) + missing], start + at)
            elif missing:
                self.pwrite(zeros[:missing], start + at + len(block))

    def truncate(self, size: int) -> None:
        """See L{IFile.truncate}."""
        os.ftruncate(self._fd, size)

    def size(self) -> int:
        """See L{IFile.size}."""
        return os.fstat(self._fd).st_size

    def is_hole(self, position: int) -> bool:
        """See L{IFile.is_hole}. Not every file system knows."""
        try:
            return _SEEK_DATA >= 0 > os.lseek(self._fd, position, _SEEK_DATA)
        except OSError as error:
            return error.errno == errno.ENXIO

    def read_ahead(self, is_wanted: bool) -> None:
        """See L{IFile.read_ahead}."""
        if hasattr(os, "posix_fadvise"):
            advice = os.POSIX_FADV_NORMAL if is_wanted else os.POSIX_FADV_RANDOM
            os.posix_fadvise(self._fd, 0, 0, advice)

    def datasync(self) -> None:
        """See L{IFile.datasync}."""
        if hasattr(os, "fdatasync"):
            os.fdatasync(self._fd)
        else:
            os.fsync(self._fd)

    def map(self, size: int, writable: bool) -> mmap.mmap:
        """See L{IFile.map}."""
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        return mmap.mmap(self._fd, size, mmap.MAP_SHARED, protection)

    def lock(self) -> bool:
        """See L{IFile.lock}.

        Where there is one, a lock of the open file: it excludes, and is excluded by,
        the record locks of Java and others, but a process that is forked off to work
        on in the background keeps it.
        """
        try:
            if _OPEN_FILE_LOCK is None:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            else:
                fcntl.fcntl(self._fd, _OPEN_FILE_LOCK, _FIRST_BYTE)
        except (BlockingIOError, PermissionError):
            return False
        return True

    def record_lock_holder(self) -> int:
        """See L{IFile.record_lock_holder}.

        The kernel knows whose a record lock is. A lock of an open file is nobody's:
        then whoever has that open file is meant.
        """
        if _ASK_FOR_LOCK is None:
            return 0
        with suppress(OSError):
            found = fcntl.fcntl(self._fd, _ASK_FOR_LOCK, _FIRST_BYTE)
            kind, _, _, _, process = _RECORD_LOCK.unpack(found)
            if kind != fcntl.F_UNLCK:
                return (
                    process if process > 0 else _who_has_open(os.fstat(self._fd).st_ino)
                )
        return 0

    def lock_alone(self, seconds: float) -> bool:
        """See L{IFile.lock_alone}."""
        try:
            # As nearly all do.
            _flock(self._fd, _LOCK_NOW)
            return True
        except BlockingIOError:
            if seconds <= 0:
                return False
        if threading.current_thread() is threading.main_thread():
            return _ALARM.take(self._fd, seconds)
        return _ask_again(self._fd, seconds)

    def lock_holder(self) -> int:
        """See L{IFile.lock_holder}.

        The device is not compared: where a file system has volumes, the kernel's list
        of locks has another one than C{stat}.
        """
        with suppress(OSError), open(_LOCKS, encoding="ascii") as lines:
            inode = str(os.fstat(self._fd).st_ino)
            for line in lines:
                # Number, kind, advisory, WRITE, process, device and inode, range. A
                # process that waits has an arrow behind the number.
                words = line.split()
                if words[1] == "FLOCK" and words[5].rpartition(":")[2] == inode:
                    return int(words[4])
        return 0

    def unlock(self) -> None:
        """See L{IFile.unlock}."""
        _flock(self._fd, _UNLOCK)

    def close(self) -> None:
        """See L{IFile.close}."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def __del__(self) -> None:
        self.close()


@final
class Disk:
    """The file systems of this machine."""

    def __init__(
        self,
        reserve: Reserve | None = _RESERVE,
        file_mode: int = STORE_FILE_MODE,
        directory_mode: int = STORE_DIRECTORY_MODE,
    ) -> None:
        """
        @param reserve: the system's call; None where it has none.
        @param file_mode: the permissions of files that are made here, unless the umask
            is stricter; those that are there keep theirs.
        @param directory_mode: the same of directories.
        """
        self._reserve = reserve
        self._file_mode = file_mode
        self._directory_mode = directory_mode

    def open(self, path: str, create: bool = False) -> DiskFile:
        """See L{IFiles.open}."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            fd = os.open(path, flags | _NO_ACCESS_TIME, self._file_mode)
        except PermissionError:
            # As for a file of another owner.
            fd = os.open(path, flags, self._file_mode)
        return DiskFile(fd, path, self._reserve)

    def open_readonly(self, path: str) -> DiskFile:
        """See L{IFiles.open_readonly}."""
        return DiskFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC), path, self._reserve)

    def exists(self, path: str) -> bool:
        """See L{IFiles.exists}."""
        return os.path.exists(path)

    def size(self, path: str) -> int:
        """See L{IFiles.size}."""
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        """See L{IFiles.modified_ms}."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def stamp(self, path: str) -> int:
        """See L{IFiles.stamp}: the time of the last change of the inode, which the
        system alone sets, in ns. It has ticks of 10 ms at the most."""
        return as_stamp(os.stat(path).st_ctime_ns)

    def list(self, path: str) -> list[str]:
        """See L{IFiles.list}."""
        try:
            return sorted(os.listdir(path))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def lengths(self, path: str) -> Sequence[tuple[str, int]]:
        """See L{IFiles.lengths}."""
        found = []
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_dir():
                        found.append((entry.name, FOLDER))
                        continue
                    try:
                        found.append((entry.name, entry.stat().st_size))
                    except OSError:
                        found.append((entry.name, NOTHING))
        except (FileNotFoundError, NotADirectoryError):
            return []
        found.sort()
        return found

    def is_dir(self, path: str) -> bool:
        """See L{IFiles.is_dir}."""
        try:
            return stat.S_ISDIR(os.stat(path).st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def make_dirs(self, path: str) -> None:
        """See L{IFiles.make_dirs}."""
        # os.makedirs gives no permissions to those above.
        above = os.path.dirname(path)
        if above and not os.path.isdir(above):
            self.make_dirs(above)
        try:
            os.mkdir(path, self._directory_mode)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def remove(self, path: str) -> None:
        """See L{IFiles.remove}."""
        os.unlink(path)

    def remove_dir(self, path: str) -> None:
        """See L{IFiles.remove_dir}."""
        os.rmdir(path)

    def rename(self, old: str, new: str) -> None:
        """See L{IFiles.rename}."""
        os.replace(old, new)

    def copy_mode(self, path: str, other: str) -> None:
        """See L{IFiles.copy_mode}."""
        found = os.stat(path)
        # The owner first: another one's file may not get its permissions.
        with suppress(PermissionError):
            os.chown(other, found.st_uid, found.st_gid)
        os.chmod(other, stat.S_IMODE(found.st_mode))

    def restrict(self, path: str) -> None:
        """See L{IFiles.restrict}."""
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)

    def sync_dir(self, path: str) -> None:
        """See L{IFiles.sync_dir}."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync(self, path: str) -> bool:
        """See L{IFiles.sync}: C{syncfs} of Linux, which C{os} does not have."""
        if _SYNCFS is None:
            return False
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return bool(_SYNCFS(fd) == 0)
        finally:
            os.close(fd)

    def read(self, path: str) -> bytes:
        """See L{IFiles.read}."""
        with open(path, "rb") as file:
            try:
                return file.read()
            except OSError as error:
                raise located(error, path, 0) from error

    def usage(self, path: str) -> tuple[int, int]:
        """See L{IFiles.usage}."""
        found = os.statvfs(path)
        used = found.f_blocks - found.f_bfree
        return (used + found.f_bavail) * found.f_frsize, found.f_bavail * found.f_frsize


classImplements(DiskFile, IFile)
classImplements(Disk, IFiles)
