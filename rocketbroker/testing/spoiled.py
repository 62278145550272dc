# -*- test-case-name: tests.files.test_memory -*-
"""Ranges of a file in memory that cannot be read, as on a bad disk."""

from __future__ import annotations

import errno
import os
from typing import NoReturn, final

from rocketbroker.files.blocks import BLOCK


def _refuse() -> NoReturn:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


@final
class SpoiledRanges:
    """Of one file.

    @ivar ranges: the first byte of each, and the one behind the last.
    """

    def __init__(self) -> None:
        self.ranges: list[tuple[int, int]] = []

    def read(self, start: int, end: int) -> None:
        """Somebody reads.

        @raise OSError: one of these bytes cannot be read.
        """
        if any(first < end and start < behind for first, behind in self.ranges):
            _refuse()

    def overwrite(self, start: int, end: int) -> None:
        """Somebody writes: what he writes anew can be read, as the disk takes another
        place for it. But who writes a part of a block has to read it first.

        @raise OSError: that cannot be read.
        """
        left = []
        for first, behind in self.ranges:
            low, high = first // BLOCK * BLOCK, -(-behind // BLOCK) * BLOCK
            if end <= low or high <= start:
                left.append((first, behind))
                continue
            if (start % BLOCK and low < start) or (end % BLOCK and end < high):
                _refuse()
            if low < start:
                left.append((first, start))
            if end < high:
                left.append((end, behind))
        self.ranges = left

    def cut(self, size: int) -> None:
        """Somebody cuts the file, and has to read the block that he cuts.

        @raise OSError: that cannot be read.
        """
        left = []
        for first, behind in self.ranges:
            low, high = first // BLOCK * BLOCK, -(-behind // BLOCK) * BLOCK
            if low < size < high and size % BLOCK:
                _refuse()
            if first < size:
                left.append((first, min(behind, size)))
        self.ranges = left
