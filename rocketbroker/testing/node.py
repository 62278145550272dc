# -*- test-case-name: tests.files.test_memory -*-
"""One file of a disk in memory, and what a crash leaves of it."""

from __future__ import annotations

import os
import random
import tempfile
import weakref
from typing import final

from rocketbroker.files.blocks import BLOCK
from rocketbroker.testing.spoiled import SpoiledRanges


def _anonymous() -> int:
    """A descriptor of a new file without a name."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("rocketbroker")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


@final
class Node:
    """A file, named or not.

    @ivar size: its length now.
    @ivar allocated: the blocks that it takes from the disk.
    @ivar unsynced: the blocks written since the last sync.
    @ivar kept: the content of the blocks that a crash leaves.
    @ivar kept_size: the length that a crash leaves.
    @ivar spoiled: what cannot be read.
    @ivar close: gives its descriptor back, which else its end does.
    """

    def __init__(self, now_ms: int) -> None:
        self.fd = _anonymous()
        self.close = weakref.finalize(self, os.close, self.fd)
        self.size = 0
        self.allocated: set[int] = set()
        self.unsynced: set[int] = set()
        self.kept: dict[int, bytes] = {}
        self.kept_size = 0
        self.modified_ms = now_ms
        self.locked_by: object = None
        self.alone: object = None
        self.spoiled = SpoiledRanges()

    def lock(self, file: object) -> bool:
        """Lock it for an open file, if no other has done that."""
        self.locked_by = self.locked_by or file
        return self.locked_by is file

    def lock_alone(self, file: object) -> bool:
        """The same with the other lock."""
        self.alone = self.alone or file
        return self.alone is file

    def unlock(self, file: object) -> None:
        """Release the other lock."""
        if self.alone is file:
            self.alone = None

    def left_by(self, file: object) -> None:
        """An open file is closed."""
        self.unlock(file)
        if self.locked_by is file:
            self.locked_by = None

    def block(self, number: int) -> bytes:
        """The content of a block now."""
        return os.pread(self.fd, BLOCK, number * BLOCK)

    def write(self, data: bytes, position: int) -> None:
        """Write; a crash may lose it."""
        end = position + len(data)
        self.spoiled.overwrite(position, end)
        os.pwrite(self.fd, data, position)
        self.size = max(self.size, end)
        self.unsynced.update(range(position // BLOCK, -(-end // BLOCK)))

    def resize(self, size: int) -> None:
        """Cut or extend."""
        if size < self.size:
            # It raises if it cuts within a block that cannot be read.
            self.spoiled.cut(size)
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

    def survivor(self, luck: random.Random | None, keep_all: bool) -> Node:
        """The file as it is after a crash."""
        new = Node(self.modified_ms)
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
