# -*- test-case-name: tests.store.test_consumequeue -*-
"""One consume queue: where the messages of one queue of a topic are in the log.

Files of 300000 entries of 20 bytes (L{rocketbroker.records.entries}), named by their
first byte; the entry of queue offset C{n} stands at byte C{20 * n}. A queue whose first
record is not number 0 begins in the middle of its first file; the entries before are
filled with (0, 0x7FFFFFFF, 0), which nobody may read.

The three numbers of a queue live in its slot of the shared words. Behind C{max_offset}
stand zeros, or what a dispatch that failed has left, and nobody looks.

The store sheet, section 7.
"""

from __future__ import annotations

import os
from typing import Final, final

from zope.interface import classImplements

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFile, IFiles
from rocketbroker.records.entries import FILLED, SIZE
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.segments import position_of_name, segment_name
from rocketbroker.store.words import MAX, MIN, NEXT, Words

#: Bytes of a record that are not body, topic or properties, both hosts IPv4.
RECORD_BYTES: Final = 91
MAGIC_V1: Final = -626843481
MAGIC_V2: Final = -626843477

#: A longer topic cannot stand in a record of version 1.
MOST_TOPIC_V1: Final = 127

#: No topic may be longer (the store sheet, 3.7).
MOST_TOPIC: Final = 255


@final
class Queue:
    """A handle on one consume queue. What the hot path needs is an attribute.

    @ivar usable: whether a topic of that name can be stored at all.
    @ivar slot: the index of its first shared word.
    @ivar magic: the magic number of its records.
    @ivar topic_field: the topic as it stands in a record, with its length.
    @ivar record_bytes: the size of its records but for body and properties.
    @ivar max_position: the end of the last record entered: one that ends at or before
        it is entered already.
    @ivar from_position: records before it belong to a topic of that name that was
        deleted.
    @ivar pending: entries of the dispatch step that is running.
    @ivar pending_codes: their tag codes.
    @ivar pending_offset: the queue offset of the first of them.
    @ivar pending_end: the end of the last one's record.
    """

    __slots__ = (
        "files",
        "from_position",
        "magic",
        "max_position",
        "pending",
        "pending_codes",
        "pending_end",
        "pending_offset",
        "queue_id",
        "record_bytes",
        "slot",
        "topic",
        "topic_bytes",
        "topic_field",
        "usable",
        "words",
    )

    def __init__(
        self,
        topic: str,
        queue_id: int,
        words: Words,
        files: QueueFiles,
        store_host_v6: bool,
        allow_v2: bool,
    ) -> None:
        encoded = topic.encode("utf-8", "surrogatepass")
        size = len(encoded)
        self.topic = topic
        self.topic_bytes = encoded
        self.queue_id = queue_id
        self.words = words
        self.slot = words.add_queue(topic, queue_id)
        self.files = files
        self.usable = is_usable(topic) and 0 <= queue_id < 1 << 31
        if size <= MOST_TOPIC_V1:
            self.magic = MAGIC_V1
            self.topic_field = size.to_bytes(1, "big") + encoded
        else:
            self.magic = MAGIC_V2
            self.usable = self.usable and size <= MOST_TOPIC and allow_v2
            self.topic_field = min(size, 0x7FFF).to_bytes(2, "big") + encoded
        self.record_bytes = RECORD_BYTES - 1 + len(self.topic_field)
        if store_host_v6:
            self.record_bytes += 12
        self.max_position = 0
        self.from_position = 0
        self.pending: list[bytes] = []
        self.pending_codes: list[int] = []
        self.pending_offset = 0
        self.pending_end = 0

    def __repr__(self) -> str:
        return f"<Queue {self.topic}/{self.queue_id}>"

    @property
    def min_offset(self) -> int:
        """See L{IQueue}."""
        return int(self.words.view[self.slot + MIN])

    @property
    def max_offset(self) -> int:
        """See L{IQueue}."""
        return int(self.words.view[self.slot + MAX])

    @property
    def next_offset(self) -> int:
        """See L{IQueue}."""
        return int(self.words.view[self.slot + NEXT])

    def set_offsets(self, first: int, end: int) -> None:
        """Say what can be read, and let the next message follow it."""
        view = self.words.view
        view[self.slot + MIN] = first
        view[self.slot + MAX] = end
        view[self.slot + NEXT] = end

    def enter(self) -> None:
        """Write the pending entries and show them.

        As a rule they stand at the end. Beyond it, if what was before is lost: then the
        gap is filled. Before it, if the log holds a topic of that name that was deleted
        and made again: then the queue ends with them.

        @raise OSError: the disk refused; nothing is shown, and it can be tried again.
        """
        offset = self.pending_offset
        entries = self.pending
        view = self.words.view
        slot = self.slot
        there = view[slot + MAX]
        if offset > there:
            self._fill(there, offset)
        elif offset < there:
            self.files.cut(offset * SIZE)
        self.files.write(offset * SIZE, b"".join(entries))
        view[slot + MAX] = after = offset + len(entries)
        if view[slot + NEXT] < after:
            view[slot + NEXT] = after
        self.max_position = self.pending_end

    def _fill(self, there: int, offset: int) -> None:
        """Mark the entries before C{offset} as those of nobody."""
        per_file = self.files.size // SIZE
        start = max(there, offset - offset % per_file)
        self.files.write(start * SIZE, FILLED * (offset - start))
        view = self.words.view
        first = view[self.slot + MIN]
        if there == first or first * SIZE < self.files.all[0].start:
            view[self.slot + MIN] = offset

    def read(self, offset: int, most: int) -> bytes:
        """Entries from C{offset} on, to the end of one file at the most."""
        return self.files.read(offset * SIZE, most * SIZE)


classImplements(Queue, IQueue)


def is_usable(topic: str) -> bool:
    """Whether a directory can have that name, and nothing outside is reached by it."""
    if topic in ("", ".", "..") or "/" in topic or "\0" in topic:
        return False
    try:
        return len(topic.encode()) <= MOST_TOPIC
    except UnicodeEncodeError:
        return False


@final
class QueueFile:
    """One file of a queue.

    Only the last one of a queue stays open, and those that wait for a flush: a store
    has thousands of queues, and a process not as many descriptors.
    """

    __slots__ = ("_file", "_files", "path", "start", "unsynced")

    def __init__(
        self, files: IFiles, start: int, path: str, file: IFile | None = None
    ) -> None:
        self._files = files
        self._file = file
        self.start = start
        self.path = path
        self.unsynced = False

    @property
    def file(self) -> IFile:
        """The open file."""
        file = self._file
        if file is None:
            file = self._file = self._files.open(self.path)
        return file

    def rest(self) -> None:
        """Let go of the file; who reads it now still can."""
        if not self.unsynced:
            self._file = None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


@final
class QueueFiles:
    """The files of one queue.

    @ivar folder: their directory.
    @ivar size: the bytes of each.
    @ivar all: those there are, by their first byte, in order and without gaps.
    """

    __slots__ = ("_files", "_reading", "_unnamed", "all", "folder", "size")

    def __init__(self, files: IFiles, folder: str, size: int) -> None:
        self._files = files
        self._reading: QueueFile | None = None
        self._unnamed = False
        self.folder = folder
        self.size = size
        self.all: list[QueueFile] = []

    def load(self) -> list[str]:
        """Open what is there.

        A file that is too short, as a crash leaves one, is extended. Of files with a
        gap between them only the last run is used.

        @return: sentences about what was not right.
        @raise StoreError: a file was made for another size.
        """
        said = []
        found: list[QueueFile] = []
        for name in self._files.list(self.folder):
            path = os.path.join(self.folder, name)
            start = position_of_name(name)
            if start < 0 or self._files.is_dir(path):
                said.append(f"{path} is not a file of a consume queue; it is ignored.")
                continue
            length = self._files.size(path)
            if start % self.size or length > self.size:
                raise StoreError(
                    f"{path} ({length} bytes) does not fit mappedFileSizeConsumeQueue, "
                    f"which is {self.size}."
                )
            queue_file = QueueFile(self._files, start, path)
            if length < self.size:
                queue_file.file.truncate(self.size)
                said.append(f"{path} had {length} bytes; it has {self.size} now.")
            if found and found[-1].start + self.size != start:
                said.append(f"Files before {path} are missing; older ones are ignored.")
                found = []
            found.append(queue_file)
        self.all = found
        return said

    def find(self, position: int) -> QueueFile | None:
        """The file that holds a byte."""
        files = self.all
        if not files or position < files[0].start:
            return None
        index = (position - files[0].start) // self.size
        return files[index] if index < len(files) else None

    def read(self, position: int, size: int) -> bytes:
        """Bytes of one file."""
        found = self._reading
        # Who reads a queue mostly reads on where it was.
        if found is None or not 0 <= position - found.start < self.size:
            found = self.find(position)
            if found is None:
                return b""
            self._turn_to(found)
        at = position - found.start
        left = self.size - at
        return found.file.pread(size if size < left else left, at)

    def _turn_to(self, found: QueueFile) -> None:
        """Let go of the file that was read before, if it is an older one.

        Who catches up reads the same one again and again, so that one stays open.
        """
        before, self._reading = self._reading, found
        if before is not None and before not in self.all[-1:]:
            before.rest()

    def write(self, position: int, content: bytes) -> None:
        """Write, over as many files as it takes."""
        at = position % self.size
        size = len(content)
        found = self.find(position) or self._add(position - at)
        if at + size <= self.size:
            found.file.pwrite(content, at)
            found.unsynced = True
            return
        done = 0
        while done < size:
            at = (position + done) % self.size
            start = position + done - at
            found = self.find(position + done) or self._add(start)
            part = content[done : done + self.size - at]
            found.file.pwrite(part, at)
            found.unsynced = True
            done += len(part)

    def _add(self, start: int) -> QueueFile:
        if self.all and self.all[-1].start + self.size != start:
            # What lies between is lost; only what follows can be read.
            self.drop(0)
        self._files.make_dirs(self.folder)
        path = os.path.join(self.folder, segment_name(start))
        file = self._files.open(path, create=True)
        file.truncate(self.size)
        added = QueueFile(self._files, start, path, file)
        added.unsynced = True
        self.all = [*self.all, added]
        self._unnamed = True
        return added

    def cut(self, position: int) -> None:
        """Let nothing follow a position: files that start there or later are removed,
        zeros follow it in its own file."""
        keep = 0
        while keep < len(self.all) and self.all[keep].start < position:
            keep += 1
        self.drop(keep)
        if keep and position < self.all[-1].start + self.size:
            last = self.all[-1]
            last.file.truncate(position - last.start)
            last.file.truncate(self.size)
            last.unsynced = True

    def drop(self, keep: int) -> None:
        """Remove all files but the first C{keep}."""
        gone, self.all = self.all[keep:], self.all[:keep]
        self._reading = None
        for file in gone:
            # Closed when the last thread that reads it lets go of it.
            self._files.remove(file.path)

    def flush(self) -> int:
        """I{Blocking.} Put them on the disk.

        @return: how many files there were to sync.
        """
        count = 0
        for file in self.all:
            if file.unsynced:
                file.unsynced = False
                try:
                    file.file.datasync()
                except OSError:
                    file.unsynced = True
                    if file in self.all:
                        raise
                count += 1
                if file not in self.all[-1:]:
                    file.rest()
        if self._unnamed:
            self._unnamed = False
            try:
                topic = os.path.dirname(self.folder)
                for folder in (self.folder, topic, os.path.dirname(topic)):
                    self._files.sync_dir(folder)
            except OSError:
                self._unnamed = True
                raise
        return count

    def close(self) -> None:
        """Close all."""
        for file in self.all:
            file.close()
        self.all = []
