"""A store in memory that others have joined, and one that dies."""

from __future__ import annotations

from mmap import mmap
from typing import cast

from rocketbroker.files.interfaces import IFile
from rocketbroker.records.record import decode_all
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.message_store import Store
from rocketbroker.store.shared_positions import AsWords, in_words
from rocketbroker.store.sharing.append_lock import APPEND_NAME
from rocketbroker.store.sharing.joined_store import JoinedStore
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.processes import GivenProcesses
from tests.store.stores import STORE_HOST, Wall, options

#: The version of what others were told.
TOLD = 7


class Shared:
    """An owner and the processes that have joined its store.

    @ivar owner: the store of the owner.
    @ivar processes: those of the machine.
    """

    def __init__(
        self,
        disk: MemoryDisk | None = None,
        processes: GivenProcesses | None = None,
        **changes: object,
    ) -> None:
        self.processes = processes if processes is not None else GivenProcesses()
        self.disk = disk if disk is not None else MemoryDisk()
        self.changes = changes
        self.wall = Wall()
        self.owner = Store(
            self.disk,
            options(**changes),
            self.wall,
            STORE_HOST,
            is_shared=True,
            memory_bytes=1 << 40,
            processes=self.processes,
        )
        self.owner.open()
        self.owner.sharing.let_append(TOLD)

    def join(self, as_words: AsWords = in_words) -> JoinedStore:
        """One more process.

        @param as_words: shows it what is shared.
        """
        return JoinedStore(
            self.disk, options(**self.changes), self.wall, STORE_HOST, as_words
        )

    def hang(self, process: int) -> IFile:
        """Let one more process hang while it has the append lock.

        @return: its opening of the file of the lock, which is closed when it is killed.
        """
        own, self.disk.process = self.disk.process, process
        file = self.disk.open(f"{self.owner._root}/{APPEND_NAME}")
        self.disk.process = own
        assert file.lock_alone(0)
        self.processes.running[process] = f"boot/{process}"

        def ended(killed: int) -> None:
            if killed == process:
                file.close()

        self.processes.watch = ended
        return file

    def queue(self, topic: str = "T", queue_id: int = 0) -> Queue:
        """The owner's handle of a queue."""
        return self.owner.queue(topic, queue_id)

    def theirs(self, joined: JoinedStore, queue: Queue) -> Queue:
        """That of another process."""
        return joined.queue(queue.topic, queue.queue_id, queue.slot)

    def dispatch(self) -> None:
        """Enter all."""
        while self.owner.dispatch(1000):
            pass

    def stored(self, queue: IQueue) -> list[tuple[int, bytes]]:
        """Queue offset and body of what a reader gets."""
        self.dispatch()
        if queue.max_offset == queue.min_offset:
            return []
        got = self.owner.read(queue, queue.min_offset, 10_000, 1 << 20, None)
        records = b"".join(got.records)
        return [(each.queue_offset, each.body) for each in decode_all(records)]

    def behind(self) -> bytes:
        """What stands behind the published position, in its segment."""
        position = self.owner.published_position
        segment = options(**self.changes).mapped_file_size_commit_log
        start = position - position % segment
        found = self.disk.read(f"/store/commitlog/{start:020d}")
        return found[position - start :]


class Killed(BaseException):
    """The process ends here."""


class Mortal:
    """Lets a process end at one of its writes.

    @ivar left: before so many more of them; negative for never.
    @ivar writes: how many there were.
    """

    def __init__(self, disk: MemoryDisk) -> None:
        self.left = -1
        self.writes = 0
        self._disk = disk

    def begin(self, left: int) -> None:
        """Count the writes from now on, and end before one of them.

        @param left: before so many more; negative for never.
        """
        self.left = left
        self.writes = 0
        self._disk.watch = self._watch

    def end(self) -> None:
        """Count no more: it has died, or lives on."""
        self.left = -1
        self._disk.watch = None

    def count(self) -> None:
        """Another write."""
        if self.left == 0:
            raise Killed
        self.left -= 1
        self.writes += 1

    def _watch(self, call: str) -> None:
        if call in ("pwrite", "truncate"):
            self.count()

    def as_words(self, mapped: mmap) -> memoryview:
        """Let the writes of a process to what is shared be such, too."""
        return cast(memoryview, Words(self, in_words(mapped)))


class Words:
    """Shared words: a write may be the last."""

    def __init__(self, mortal: Mortal, words: memoryview) -> None:
        self._mortal = mortal
        self._words = words

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, at: int) -> int:
        return int(self._words[at])

    def __setitem__(self, at: int, number: int) -> None:
        self._mortal.count()
        self._words[at] = number
