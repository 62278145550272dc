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
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import final

from zope.interface import implementer

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.interfaces import FOLDER, IFile, IFiles
from rocketbroker.testing.node import Node

#: The directory of a path. All paths are asked for theirs again and again.
parent = lru_cache(1 << 16)(os.path.dirname)


@final
@implementer(IFile)
class MemoryFile:
    """An open file of a L{MemoryDisk}.

    @ivar process: the id of the process that has opened it.
    """

    _node: Node | None = None
    reads_ahead = True

    def __init__(self, disk: MemoryDisk, node: Node, writable: bool) -> None:
        self.process = disk.process
        self._disk = disk
        self._life = disk.crashes
        self._writable = writable
        if disk.max_open is not None and disk.open_files >= disk.max_open:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        disk.open_files += 1
        self._node = node

    def _open(self, call: str) -> Node:
        self._disk.count(call)
        if self._node is None or self._life != self._disk.crashes:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._node

    def _open_writable(self, call: str) -> Node:
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
        node.write(data[:size], position)
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
        node.resize(size)

    def size(self) -> int:
        """See L{IFile.size}."""
        return self._open("size").size

    def is_hole(self, position: int) -> bool:
        """See L{IFile.is_hole}."""
        node = self._open("is_hole")
        return all((number + 1) * BLOCK <= position for number in node.allocated)

    def read_ahead(self, is_wanted: bool) -> None:
        """See L{IFile.read_ahead}."""
        self.reads_ahead = is_wanted

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
        return self._open_writable("lock").lock(self)

    def record_lock_holder(self) -> int:
        """See L{IFile.record_lock_holder}: that of an opening."""
        holder = self._open("record_lock_holder").locked_by
        return holder.process if isinstance(holder, MemoryFile) else 0

    def lock_alone(self, seconds: float) -> bool:
        """See L{IFile.lock_alone}. Nobody waits here."""
        return self._open_writable("lock_alone").lock_alone(self)

    def lock_holder(self) -> int:
        """See L{IFile.lock_holder}: each opening has the id of its own process."""
        holder = self._open("lock_holder").alone
        return holder.process if isinstance(holder, MemoryFile) else 0

    def unlock(self) -> None:
        """See L{IFile.unlock}."""
        self._open_writable("unlock").unlock(self)

    def close(self) -> None:
        """See L{IFile.close}."""
        node, self._node = self._node, None
        if node is not None:
            if self._life == self._disk.crashes:
                self._disk.open_files -= 1
            node.left_by(self)

    def __del__(self) -> None:
        self.close()


@final
@implementer(IFiles)
class MemoryDisk:
    """A file system in memory.

    @ivar capacity: how many bytes of blocks it holds; C{None}: as many as asked for.
    @ivar calls: how often each call was made, by name.
    @ivar crashes: how often it has crashed.
    @ivar watch: told of each call before it is made.
    @ivar open_files: how many files are open.
    @ivar max_open: with so many no other is opened; C{None}: as many as asked for.
    @ivar syncs: whether it can be synced as a whole.
    @ivar process: the id of the process that opens files from now on.
    @ivar now_ms: what is taken as the time of a change; advances by one each time.
    """

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.calls: dict[str, int] = {}
        self.crashes = 0
        self.watch: Callable[[str], None] | None = None
        self.open_files = 0
        self.max_open: int | None = None
        self.syncs = True
        self.process = os.getpid()
        self.now_ms = 1
        self.secret: set[str] = set()
        self._failures: list[tuple[str, int, int, int]] = []
        self._forbidden: dict[str, bool] = {}
        #: What is there now, and what a crash leaves; None is a directory.
        self._names: dict[str, Node | None] = {"/": None}
        self._kept_names: dict[str, Node | None] = {"/": None}
        #: When the names in a directory have changed last.
        self._renamed: dict[str, int] = {}
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
        self.open_files = 0
        left = self.image(luck, keep_all)
        self.discard()
        self._names = left._names
        self._kept_names = left._kept_names
        self._removed_dirs = left._removed_dirs
        self._renamed = left._renamed

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
        replaced: dict[int, Node] = {}

        def survivors(names: dict[str, Node | None]) -> dict[str, Node | None]:
            found: dict[str, Node | None] = {}
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
            left._renamed = dict(self._renamed)
            left._kept_names = survivors(self._kept_names)
            left._removed_dirs = {k: set(v) for k, v in self._removed_dirs.items()}
        return left

    def discard(self) -> None:
        """Nobody uses this disk any more: give back what it has of this process, even
        if something still holds it. What is mapped stays."""
        for node in {*self._names.values(), *self._kept_names.values()} - {None}:
            assert node is not None
            node.close()

    def _some_names(self, luck: random.Random) -> dict[str, Node | None]:
        every = {**self._names, **self._kept_names}
        folders = {
            path: luck.random() < 0.5 for path in sorted(set(map(parent, every)))
        }
        names: dict[str, Node | None] = {"/": None}
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

    def take(self, node: Node, position: int, size: int) -> tuple[int, int]:
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

    def changed(self, node: Node) -> None:
        """Note when a file was changed."""
        self.now_ms += 1
        node.modified_ms = self.now_ms

    def _rename(self, *folders: str) -> None:
        """Note that the names in directories have changed."""
        self.now_ms += 1
        self._renamed.update(dict.fromkeys(folders, self.now_ms))

    # IFiles.

    def open(self, path: str, create: bool = False) -> MemoryFile:
        """See L{IFiles.open}."""
        self.count("open")
        if create and path not in self._names:
            self._parent(path)
            self._rename(parent(path))
            self._names[path] = Node(self.now_ms)
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

    def stamp(self, path: str) -> int:
        """See L{IFiles.stamp}."""
        self.count("stamp")
        if not self.is_dir(path):
            return self._file(path).modified_ms
        return self._renamed.get(path, 0)

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

    def lengths(self, path: str) -> Sequence[tuple[str, int]]:
        """See L{IFiles.lengths}."""
        found = []
        self._permit(path, names=True)
        for name in self.list(path):
            node = self._names[os.path.join(path, name)]
            found.append((name, FOLDER if node is None else node.size))
        return found

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
        if missing:
            self._rename(path, *missing)
        self._names.update(dict.fromkeys(missing))

    def remove(self, path: str) -> None:
        """See L{IFiles.remove}."""
        self.count("remove")
        self._file(path)
        self._rename(parent(path))
        del self._names[path]

    def remove_dir(self, path: str) -> None:
        """See L{IFiles.remove_dir}."""
        self.count("remove_dir")
        if not self.is_dir(path):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self.list(path):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        self._rename(parent(path))
        del self._names[path]
        self._removed_dirs.setdefault(parent(path), set()).add(path)

    def rename(self, old: str, new: str) -> None:
        """See L{IFiles.rename}."""
        self.count("rename")
        self._parent(new)
        self._rename(parent(old), parent(new))
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
            self._rename(new + path[len(old) :])
        self._removed_dirs.setdefault(parent(old), set()).add(old)

    def copy_mode(self, path: str, other: str) -> None:
        """See L{IFiles.copy_mode}; there are no permissions here."""
        self.count("copy_mode")
        self._file(path)
        self._file(other)

    def restrict(self, path: str) -> None:
        """See L{IFiles.restrict}; what is secret is kept."""
        self.count("restrict")
        self._file(path)
        self.secret.add(path)

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

    def sync(self, path: str) -> bool:
        """See L{IFiles.sync}."""
        self.count("sync")
        if not self.is_dir(path):
            raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if self.syncs:
            for node in self._names.values():
                if node is not None:
                    node.sync()
            self._kept_names = dict(self._names)
            self._removed_dirs.clear()
        return self.syncs

    def read(self, path: str) -> bytes:
        """See L{IFiles.read}."""
        self.count("read")
        file = MemoryFile(self, self._file(path), False)
        try:
            return file.pread(self.size(path), 0)
        finally:
            file.close()

    def usage(self, path: str) -> tuple[int, int]:
        """See L{IFiles.usage}."""
        self.count("usage")
        total = self.capacity if self.capacity is not None else 1 << 40
        return total, total - self.used()

    def _file(self, path: str) -> Node:
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
