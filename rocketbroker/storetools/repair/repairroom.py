# -*- test-case-name: tests.storetools.repair.test_repairroom -*-
"""How much room on the disk a repair needs, found out before it changes anything.

What is moved away needs none, but what is made again in its place does. The files of
the log need none, even if the start of the store would reserve blocks ahead of its
writer: it starts on a full disk, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rocketbroker.storetools.repair.stopgaps import StopGaps

#: What cannot be known before: the words that processes share, the checkpoint, a queue
#: that had no files, blocks of directories.
RESERVE: Final = 16 << 20

#: So long is a line in the list of changes, about.
LINE: Final = 256

#: What a file system writes at least.
_BLOCK: Final = 4096


def room_of_patches(patches: Sequence[tuple[int, bytes]], gaps: StopGaps) -> int:
    """For copies of what is changed in the log, and for what is written where no file
    was.

    @param patches: position and new bytes.
    @param gaps: the new files, sparse until then.
    """
    size = 0
    blocks = set()
    starts = sorted(gaps.regions)
    at = 0
    for position, data in patches:
        while at < len(starts) and starts[at][1] <= position:
            at += 1
        if at < len(starts) and starts[at][0] <= position:
            blocks.add(position // _BLOCK)
            blocks.add((position + len(data)) // _BLOCK)
        else:
            size += len(data) + LINE
    return size + len(blocks) * _BLOCK
