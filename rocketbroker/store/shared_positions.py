# -*- test-case-name: tests.store.test_shared_positions -*-
"""The shared positions: the numbers that all processes on one store must agree on.

They are in a shared mapping of the file C{rocketbroker.words} in the store's root, one
aligned native word each, written and read through C{memoryview.cast("q")} and nothing
else: another process may see a number torn that is packed byte by byte. The file is
made anew by each start and removed by each clean stop; nothing in it needs to survive.

The words::

    =======  ================================================================
    word     meaning
    =======  ================================================================
    0        MAGIC
    1        the process that owns the store, as in its abort file
    2        when that abort file was written, in ms: another owner's differs
    3        the start of the oldest segment
    4        published: the end of the log
    5        flushed: all before is on the disk
    6        dispatched: all before is in the consume queues
    7        whether an append is between reserving and publishing: 1 the owner's, 2
             that of another process (store.sharing.append_journal)
    8        how many queues have slots
    9        what other processes may append by: the version of all that the owner has
             told them. It differs after each change; 0: they may append nothing
    10       the same of what they may read; 0: nothing
    16...    of each queue 4 words: next offset, max offset, min offset, and of a
             batch queue the byte behind its last unit
    =======  ================================================================

This is the one file that is written through a mapping. A write to a mapped page kills
the process where the page needs a block that the disk does not have, or a change of the
file system's own records that it refuses, as it has become read-only. Neither is needed
here: blocks are reserved and written with zeros before the file is mapped, and its
pages are touched all the time. (Tried on ext4, with C{mount -o remount,abort} and with
C{EXT4_IOC_SHUTDOWN}, on pages that were written, synced, and never touched.)

The file C{rocketbroker.queues} names the queue of each slot: one line C{topic/queueId}
for each, in order; a line that is not terminated does not count.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from array import array
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, final

from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.store.disk_usage import NO_ROOM

POSITIONS_NAME: Final = "rocketbroker.words"
QUEUES_NAME: Final = "rocketbroker.queues"

MAGIC: Final = int.from_bytes(b"rbwords1", "big")

OWNER: Final = 1
ABORT_MS: Final = 2
MIN_POSITION: Final = 3
PUBLISHED: Final = 4
FLUSHED: Final = 5
DISPATCHED: Final = 6
APPENDING: Final = 7
QUEUES: Final = 8
VERSION: Final = 9
READ_VERSION: Final = 10

#: Who is between reserving and publishing.
OWNER_APPENDS: Final = 1
OTHER_APPENDS: Final = 2

#: The first slot, how many words each has, and the number of each word in it.
FIRST_SLOT: Final = 16
SLOT_WORDS: Final = 4
NEXT: Final = 0
MAX: Final = 1
MIN: Final = 2
END: Final = 3

#: The file begins with room for some 2000 queues, and doubles.
FIRST_SIZE: Final = 1 << 16

#: In memory they have room for two million; pages that are not touched cost nothing.
MEMORY_SIZE: Final = 64 << 20


def in_words(mapped: mmap.mmap) -> memoryview:
    """The words of a mapping."""
    return memoryview(mapped).cast("q")


#: Shows a mapping as words: L{in_words}, or a test's that counts what is written.
AsWords: TypeAlias = Callable[[mmap.mmap], memoryview]


class Positions(Protocol):
    """The shared positions of a store, in one of the processes that write to them."""

    @property
    def view(self) -> memoryview:
        """The words."""


@final
class SharedPositions:
    """The mapping. C{view} is replaced when it grows: take it anew in each step.

    A store whose disk is full when it starts has to start all the same. Then the
    positions are in memory of this process alone, as are those that grow beyond their
    file while it starts; readers in other processes do without, as with RocketMQ's
    stores.

    @ivar left: for each topic and queue id the lowest offset and the end that an
        earlier process has left there; empty after a clean stop, and after the start.
        After a power failure they may be any numbers.
    @ivar is_shared: whether other processes can see them.
    """

    __slots__ = (
        "_file",
        "_files",
        "_map",
        "_names",
        "_names_size",
        "_new_names",
        "_root",
        "_starting",
        "is_shared",
        "left",
        "view",
    )

    def __init__(self, files: IFiles, root: str) -> None:
        """Make both files, empty."""
        self._files = files
        self._root = root
        self._starting = True
        self.left = _left(files, root)
        for name in (POSITIONS_NAME, QUEUES_NAME):
            if files.exists(os.path.join(root, name)):
                files.remove(os.path.join(root, name))
        self._names: IFile | None = None
        self._names_size = 0
        self._new_names: list[str] = []
        self._file: IFile | None = None
        self.is_shared = True
        try:
            self._names = files.open(os.path.join(root, QUEUES_NAME), create=True)
            file = files.open(os.path.join(root, POSITIONS_NAME), create=True)
            self._file = file
            _reserve(file, 0, FIRST_SIZE)
            self._map = file.map(FIRST_SIZE, True)
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._map = mmap.mmap(-1, MEMORY_SIZE)
            self._leave_disk()
        self.view: memoryview = memoryview(self._map).cast("q")
        self.view[0] = MAGIC

    def name_queues(self) -> None:
        """Write the names of the queues that a start has found, in one write.

        @raise OSError: the disk refused, and not for want of room.
        """
        try:
            self._write_names()
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self._move_to_memory()

    def started(self) -> None:
        """End the start: from now on others use the positions, and they do not move."""
        assert not self._new_names, "the queues are named first"
        self._starting = False
        self.left.clear()

    def add_queue(self, topic: str, queue_id: int) -> int:
        """Give a queue a slot.

        @param topic: a name on one line; empty for a queue that nothing is stored in.
        @return: the index of its first word.
        @raise OSError: the disk is full, and there was no room left.
        """
        count = self.view[QUEUES]
        first = FIRST_SLOT + count * SLOT_WORDS
        try:
            if first + SLOT_WORDS > len(self.view):
                self._grow()
            self._new_names.append(f"{topic}/{queue_id}\n")
            if not self._starting:
                self._write_names()
        except OSError as error:
            if not self._starting or not self.is_shared or error.errno not in NO_ROOM:
                raise
            self._move_to_memory()
        self.view[QUEUES] = count + 1
        return first

    def _write_names(self) -> None:
        names, self._new_names = self._new_names, []
        if self._names is not None and names:
            lines = "".join(names).encode()
            self._names.pwrite(lines, self._names_size)
            self._names_size += len(lines)

    def _grow(self) -> None:
        size = len(self.view) * 8
        if self._file is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        _reserve(self._file, size, size)
        # The old mapping goes when the last step that still uses its view ends.
        self._map = self._file.map(size * 2, True)
        self.view = memoryview(self._map).cast("q")

    def _move_to_memory(self) -> None:
        found = mmap.mmap(-1, MEMORY_SIZE)
        found[: len(self.view) * 8] = self.view.tobytes()
        # Readers that have the files open are not to believe them any more.
        self.view[0] = 0
        self._map = found
        self.view = memoryview(found).cast("q")
        self._leave_disk()

    def _leave_disk(self) -> None:
        self.is_shared = False
        self.close()
        self._names = self._file = None
        for name in (POSITIONS_NAME, QUEUES_NAME):
            with contextlib.suppress(OSError):
                self._files.remove(os.path.join(self._root, name))

    def close(self) -> None:
        """Close the files, and keep them."""
        for file in (self._names, self._file):
            if file is not None:
                file.close()

    def remove(self) -> None:
        """Remove the files, after a clean stop."""
        if self.is_shared:
            for name in (POSITIONS_NAME, QUEUES_NAME):
                self._files.remove(os.path.join(self._root, name))


def _reserve(file: IFile, position: int, size: int) -> None:
    """Give a part of a file blocks, not a hole, and zeros in them: touching a hole of a
    full disk kills the process.

    @raise OSError: there is no room.
    """
    file.allocate(position, size)
    file.pwrite(bytes(size), position)


def _left(files: IFiles, root: str) -> dict[tuple[str, int], tuple[int, int]]:
    """See L{SharedPositions.left}."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    if not files.exists(os.path.join(root, POSITIONS_NAME)):
        return found
    with contextlib.suppress(OSError, ValueError):
        words = array("q", files.read(os.path.join(root, POSITIONS_NAME)))
        names = files.read(os.path.join(root, QUEUES_NAME)).decode()
        for number, line in enumerate(names.split("\n")[:-1]):
            topic, _, queue_id = line.rpartition("/")
            slot = FIRST_SLOT + number * SLOT_WORDS
            if slot + SLOT_WORDS > len(words):
                break
            found[topic, int(queue_id)] = words[slot + MIN], words[slot + MAX]
    return found


@final
class JoinedPositions:
    """The shared positions of a running broker, for another process that appends to its
    store.

    @ivar view: the words; another object after L{reach}.
    """

    __slots__ = ("_as_words", "_file", "_map", "view")

    def __init__(self, file: IFile, as_words: AsWords = in_words) -> None:
        """
        @param file: open for writing.
        @param as_words: shows its mapping as words.
        @raise OSError: there are no positions in it.
        """
        self._file = file
        self._as_words = as_words
        self._map_all()

    def _map_all(self) -> None:
        size = self._file.size() // 8 * 8
        if size < 8 * FIRST_SLOT:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        self._map = self._file.map(size, True)
        self.view: memoryview = self._as_words(self._map)

    def reach(self, slot: int) -> None:
        """See to it that a queue's words are among those mapped.

        @raise OSError: the file has none for it.
        """
        if slot + SLOT_WORDS > len(self.view):
            self._map_all()
        if not FIRST_SLOT <= slot <= len(self.view) - SLOT_WORDS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    def close(self) -> None:
        """Forget the mapping."""
        self.view.release()
        self._map.close()
        self._file.close()


@final
class ReadOnlyPositions:
    """The shared positions of a running broker, for another process that only reads."""

    __slots__ = ("_file", "_map", "view")

    def __init__(self, file: IFile) -> None:
        self._file = file
        size = file.size() // 8 * 8
        self._map: mmap.mmap | None = None
        self.view: memoryview = memoryview(bytes(8 * FIRST_SLOT)).cast("q")
        if size >= 8 * FIRST_SLOT:
            self._map = file.map(size, False)
            self.view = memoryview(self._map).cast("q")

    def belongs_to(self, owner: int, abort_ms: int) -> bool:
        """Whether they belong to the broker that wrote this C{abort} file."""
        view = self.view
        return view[0] == MAGIC and view[OWNER] == owner and view[ABORT_MS] == abort_ms

    def close(self) -> None:
        """Forget the mapping."""
        self.view.release()
        if self._map is not None:
            self._map.close()
        self._file.close()
