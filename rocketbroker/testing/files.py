# -*- test-case-name: tests.files.test_memory -*-
"""A disk in memory that can be full, fail, and lose what was not synced.

Files live in anonymous memory files of the kernel, so that mappings of them are real
ones. Beside each stands what a crash would leave: blocks reach it by C{datasync}, names
by C{sync_dir}. That is stricter than most file systems, on purpose.
"""

from __future__ import annotations

import errno
import mmap
import os
import random
import tempfile
import weakref
from collections.abc import Callable
from functools import lru_cache
from typing import final

from zope.interface import implementer

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.testing.spoiled import Spoiled

#: The directory of a path. All paths are asked for theirs again and again.
parent = lru_cache(1 << 16)(os.path.dirname)


def _anonymous() -> int:
    """A descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rocketbroker")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@final
class _Node:
    """A file, named or not.

    @ivar size: its length now.
    @ivar allocated: the blocks that it takes from the disk.
    @ivar unsynced: the blocks written since the last sync.
    @ivar kept: the content of the blocks that a crash leaves.
    @ivar kept_size: the length that a crash leaves.
    @ivar spoiled: what cannot be read.
    """

    def __init__(self, now_ms: int) -> None:
        self.fd = _anonymous()
        weakref.finalize(self, os.close, self.fd)
        self.size = 0
        self.allocated: set[int] = set()
        self.unsynced: set[int] = set()
        self.kept: dict[int, bytes] = {}
        self.kept_size = 0
        self.modified_ms = now_ms
        self.locked_by: object = None
        self.spoiled = Spoiled()

    def block(self, number: int) -> bytes:
        """The content of a block now."""
        return os.pread(self.fd, BLOCK, number * BLOCK)

    def resize(self, size: int) -> None:
        """Cut or extend."""
        os.ftruncate(self.fd, size)
        if size < self.size:
            self.allocated = {n for n in self.allocated if n * BLOCK < size}
            gone = range(size // BLOCK, -(-self.size // BLOCK))
            self.unsynced.update(n for n in gone if n in self.kept)
        self.size = size

    def sync(self) -> None:
        """Let a crash leave what is there now."""
        for number in self.unsynced:
            self.kept[number] = self.block(number)
        self.unsynced.clear()
        self.kept_size = self.size

    def survivor(self, luck: random.Random | None, keep_all: bool) -> _Node:
        """The file as it is after a crash."""
        new = _Node(self.modified_ms)
        new.spoiled.ranges = list(self.spoiled.ranges)
        blocks = dict(self.kept)
        size = self.size if keep_all else self.kept_size
        if luck is not None and luck.random() < 0.5:
            size = self.size
        for number in sorted(self.unsynced):
            if keep_all or (luck is not None and luck.random() < 0.5):
                blocks[number] = self.block(number)
        os.ftruncate(new.fd, size)
        for number, content in blocks.items():
            os.pwrite(new.fd, content[: max(0, size - number * BLOCK)], number * BLOCK)
        new.size = size
        new.allocated = {n for n in self.allocated if n * BLOCK < size}
        if keep_all:
            # The system still has it, and nothing more of it is on the disk.
            new.unsynced = set(self.unsynced)
            new.kept = dict(self.kept)
            new.kept_size = self.kept_size
            return new
        new.unsynced = {n for n in blocks if n * BLOCK < size}
        new.sync()
        return new


@final
@implementer(IFile)
class MemoryFile:
    """An open file of a L{MemoryDisk}."""

    def __init__(self, disk: MemoryDisk, node: _Node, writable: bool) -> None:
        self._disk = disk
        self._node: _Node | None = node
        self._life = disk.crashes
        self._writable = writable

    def _open(self, call: str) -> _Node:
        self._disk.count(call)
        if self._node is None or self._life != self._disk.crashes:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._node

    def _open_writable(self, call: str) -> _Node:
        node = self._open(call)
        if not self._writable:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return node

    def pread(self, size: int, position: int) -> bytes:
        """See L{IFile.pread}."""
        node = self._open("pread")
        node.spoiled.read(position, position + size)
        return os.pread(node.fd, size, position)

    def pwrite(self, data: bytes, position: int) -> int:
        """See L{IFile.pwrite}."""
        node = self._open_writable("pwrite")
        self._disk.changed(node)
        room, error = self._disk.take(node, position, len(data))
        size = room if error else len(data)
        node.spoiled.overwrite(position, position + size)
        os.pwrite(node.fd, data[:size], position)
        node.size = max(node.size, position + size)
        node.unsynced.update(range(position // BLOCK, -(-(position + size) // BLOCK)))
        if error:
            raise OSError(error, os.strerror(error))
        return size

    def allocate(self, position: int, size: int) -> None:
        """See L{IFile.allocate}."""
        node = self._open_writable("allocate")
        _, error = self._disk.take(node, position, size)
        if error:
            raise OSError(error, os.strerror(error))
        if node.size < position + size:
            node.resize(position + size)

    def truncate(self, size: int) -> None:
        """See L{IFile.truncate}."""
        node = self._open_writable("truncate")
        self._disk.changed(node)
        if size < node.size:
            node.spoiled.cut(size)
        node.resize(size)

    def size(self) -> int:
        """See L{IFile.size}."""
        return self._open("size").size

    def datasync(self) -> None:
        """See L{IFile.datasync}."""
        self._open("datasync").sync()

    def map(self, size: int, writable: bool) -> mmap.mmap:
        """See L{IFile.map}. What is written to a mapping does not survive a crash."""
        node = self._open_writable("map") if writable else self._open("map")
        protection = mmap.PROT_READ | (mmap.PROT_WRITE if writable else 0)
        return mmap.mmap(node.fd, size, mmap.MAP_SHARED, protection)

    def lock(self) -> bool:
        """See L{IFile.lock}. Each open file stands for a process of its own."""
        node = self._open_writable("lock")
        if node.locked_by not in (None, self):
            return False
        node.locked_by = self
        return True

    def close(self) -> None:
        """See L{IFile.close}."""
        if self._node is not None and self._node.locked_by is self:
            self._node.locked_by = None
        self._node = None


@final
@implementer(IFiles)
class MemoryDisk:
    """A file system in memory.

    @ivar capacity: how many bytes of blocks it holds; L{None}: as many as asked for.
    @ivar calls: how often each call was made, by name.
    @ivar crashes: how often it has crashed.
    @ivar watch: told of each call before it is made.
    @ivar now_ms: what is taken as the time of a change; advances by one each time.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.calls: dict[str, int] = {}
        self.crashes = 0
        self.watch: Callable[[str], None] | None = None
        self.now_ms = 1
        self._failures: list[tuple[str, int, int, int]] = []
        self._forbidden: dict[str, bool] = {}
        #: What is there now, and what a crash leaves; None is a directory.
        self._names: dict[str, _Node | None] = {"/": None}
        self._kept_names: dict[str, _Node | None] = {"/": None}
        #: Directories that were removed, by those they were in, if that is not synced.
        self._removed_dirs: dict[str, set[str]] = {}

    # Faults.

    def fail(self, call: str, error: int, after: int = 0, times: int = 1) -> None:
        """Let C{call} fail with an errno.

        @param after: how many of the coming calls still succeed.
        @param times: how many fail then.
        """
        first = self.calls.get(call, 0) + after + 1
        self._failures.append((call, first, first + times, error))

    def spoil(self, path: str, start: int, end: int) -> None:
        """Let nobody read a range of a file: whoever reads one byte of it gets EIO,
        until whole blocks of it are written again, as a disk then takes another place
        for them. Who writes or cuts within a block gets EIO, too."""
        self._file(path).spoiled.ranges.append((start, end))

    def forbid(self, path: str, names: bool = False) -> None:
        """Let nobody list a directory.

        @param names: its names can be had, but nobody can tell what they are.
        """
        self._forbidden[path] = names

    def _permit(self, path: str, names: bool) -> None:
        """Raise if a directory, or what its names are, cannot be looked at."""
        if self._forbidden.get(path) is names:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    def heal(self) -> None:
        """Let nothing fail any more."""
        self._failures.clear()
        self._forbidden.clear()
        for node in self._names.values():
            if node is not None:
                node.spoiled.ranges.clear()

    def crash(self, luck: random.Random | None = None, keep_all: bool = False) -> None:
        """The machine stops: open files are gone, and what was not synced with them.

        @param luck: if given, each block that was not synced is kept or lost by it, and
            so are the names of each directory.
        @param keep_all: only the processes died; all that was written stays, and what
            was not synced is not, if the machine stops then.
        """
        self.crashes += 1
        left = self.image(luck, keep_all)
        self._names = left._names
        self._kept_names = left._kept_names
        self._removed_dirs = left._removed_dirs

    def image(
        self,
        luck: random.Random | None = None,
        keep_all: bool = False,
        keep_names: bool | None = None,
    ) -> MemoryDisk:
        """The disk that a crash would leave now, as another one; this one goes on.

        @param luck: see L{crash}.
        @param keep_all: see L{crash}.
        @param keep_names: whether all names stay, or those that were synced, whatever
            becomes of the data.
        """
        names = self._names
        if luck is not None and not keep_all and keep_names is None:
            names = self._some_names(luck)
        elif not (keep_all if keep_names is None else keep_names):
            names = dict(self._kept_names)
        replaced: dict[int, _Node] = {}

        def survivors(names: dict[str, _Node | None]) -> dict[str, _Node | None]:
            found: dict[str, _Node | None] = {}
            for path, node in sorted(names.items()):
                if path != "/" and parent(path) not in found:
                    continue
                if node is not None and id(node) not in replaced:
                    replaced[id(node)] = node.survivor(luck, keep_all)
                found[path] = None if node is None else replaced[id(node)]
            return found

        left = MemoryDisk(self.capacity)
        left.now_ms = self.now_ms
        left._names = survivors(names)
        left._kept_names = dict(left._names)
        if keep_names is False:
            for node in replaced.values():
                node.sync()
        elif keep_all:
            left._kept_names = survivors(self._kept_names)
            left._removed_dirs = {k: set(v) for k, v in self._removed_dirs.items()}
        return left

    def _some_names(self, luck: random.Random) -> dict[str, _Node | None]:
        every = {**self._names, **self._kept_names}
        folders = {
            path: luck.random() < 0.5 for path in sorted(set(map(parent, every)))
        }
        names: dict[str, _Node | None] = {"/": None}
        for source, lucky in ((self._kept_names, False), (self._names, True)):
            for path, node in source.items():
                if path != "/" and folders[parent(path)] is lucky:
                    names[path] = node
        return names

    def paths(self) -> list[str]:
        """All files."""
        return [path for path, node in self._names.items() if node is not None]

    def used(self) -> int:
        """How many bytes of blocks are taken."""
        nodes = {id(node): node for node in self._names.values() if node is not None}
        return BLOCK * sum(len(node.allocated) for node in nodes.values())

    # What the files tell.

    def count(self, call: str) -> None:
        """Note a call; raise if it is to fail."""
        if self.watch is not None:
            self.watch(call)
        number = self.calls[call] = self.calls.get(call, 0) + 1
        for name, first, end, error in self._failures:
            if name == call and first <= number < end:
                raise OSError(error, os.strerror(error))

    def take(self, node: _Node, position: int, size: int) -> tuple[int, int]:
        """Give a file blocks for a range.

        @return: how many bytes of it have blocks, and an errno, 0 if all have.
        """
        wanted = range(position // BLOCK, -(-(position + size) // BLOCK))
        missing = [number for number in wanted if number not in node.allocated]
        if self.capacity is not None:
            room = max(0, (self.capacity - self.used()) // BLOCK)
            if room < len(missing):
                node.allocated.update(missing[:room])
                return max(0, missing[room] * BLOCK - position), errno.ENOSPC
        node.allocated.update(missing)
        return size, 0

    def changed(self, node: _Node) -> None:
        """Note when a file was changed."""
        self.now_ms += 1
        node.modified_ms = self.now_ms

    # IFiles.

    def open(self, path: str, create: bool = False) -> MemoryFile:
        """See L{IFiles.open}."""
        self.count("open")
        if create and path not in self._names:
            self._parent(path)
            self.now_ms += 1
            self._names[path] = _Node(self.now_ms)
        return MemoryFile(self, self._file(path), True)

    def open_readonly(self, path: str) -> MemoryFile:
        """See L{IFiles.open_readonly}."""
        self.count("open_readonly")
        return MemoryFile(self, self._file(path), False)

    def exists(self, path: str) -> bool:
        """See L{IFiles.exists}."""
        return path in self._names

    def size(self, path: str) -> int:
        """See L{IFiles.size}."""
        return self._file(path).size

    def modified_ms(self, path: str) -> int:
        """See L{IFiles.modified_ms}."""
        return self._file(path).modified_ms

    def list(self, path: str) -> list[str]:
        """See L{IFiles.list}."""
        if not self.is_dir(path):
            return []
        self._permit(path, names=False)
        return sorted(
            os.path.basename(name)
            for name in self._names
            if name != "/" and parent(name) == path
        )

    def is_dir(self, path: str) -> bool:
        """See L{IFiles.is_dir}."""
        self._permit(parent(path), names=True)
        return path in self._names and self._names[path] is None

    def make_dirs(self, path: str) -> None:
        """See L{IFiles.make_dirs}."""
        self.count("make_dirs")
        missing = []
        while path not in self._names:
            missing.append(path)
            path = parent(path)
        if self._names[path] is not None:
            raise OSError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._names.update(dict.fromkeys(missing))

    def remove(self, path: str) -> None:
        """See L{IFiles.remove}."""
        self.count("remove")
        self._file(path)
        del self._names[path]

    def remove_dir(self, path: str) -> None:
        """See L{IFiles.remove_dir}."""
        self.count("remove_dir")
        if not self.is_dir(path):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        del self._names[path]
        self._removed_dirs.setdefault(parent(path), set()).add(path)

    def rename(self, old: str, new: str) -> None:
        """See L{IFiles.rename}."""
        self.count("rename")
        self._parent(new)
        if self.is_dir(old):
            self._move_dir(old, new)
            return
        node = self._file(old)
        del self._names[old]
        self._names[new] = node

    def _move_dir(self, old: str, new: str) -> None:
        """Rename a directory to a name that nothing has."""
        assert new not in self._names, "nobody puts one in the place of another"
        for path in [p for p in self._names if f"{p}/".startswith(f"{old}/")]:
            self._names[new + path[len(old) :]] = self._names.pop(path)
        self._removed_dirs.setdefault(parent(old), set()).add(old)

    def sync_dir(self, path: str) -> None:
        """See L{IFiles.sync_dir}."""
        self.count("sync_dir")
        if not self.is_dir(path):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        # What was in a directory that is gone stays gone.
        self._removed_dirs.get(parent(path), set()).discard(path)
        gone = tuple(f"{each}/" for each in self._removed_dirs.pop(path, ()))
        kept = {
            name: node
            for name, node in self._kept_names.items()
            if name == "/" or (parent(name) != path and not name.startswith(gone))
        }
        for name in (os.path.join(path, each) for each in self.list(path)):
            kept[name] = self._names[name]
        self._kept_names = kept

    def read(self, path: str) -> bytes:
        """See L{IFiles.read}."""
        self.count("read")
        return MemoryFile(self, self._file(path), False).pread(self.size(path), 0)

    def usage(self, path: str) -> tuple[int, int]:
        """See L{IFiles.usage}."""
        self.count("usage")
        total = self.capacity if self.capacity is not None else 1 << 40
        return total, total - self.used()

    def _file(self, path: str) -> _Node:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        node = self._names[path]
        if node is None:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return node

    def _parent(self, path: str) -> None:
        folder = parent(path)
        if folder not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self._names[folder] is not None:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
