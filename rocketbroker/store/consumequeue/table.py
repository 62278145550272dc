# -*- test-case-name: tests.store.consumequeue.test_table -*-
"""The table of all consume queues of a store, by topic and queue id.

A handle is made with its first use; files come with the first entry. The topic decides
the kind of a queue as long as it has no files: a topic may be deleted and made again
with another kind.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import FOLDER as FOLDER_LENGTH
from rocketbroker.files.misplaced_files import ASIDE, clear_for_folder
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.names import is_lmq
from rocketbroker.records.queueunits import BATCH_SIZE
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCH_FOLDER
from rocketbroker.store.consumequeue.batch_queue import BatchUnits
from rocketbroker.store.consumequeue.deferred_writes import DeferredWrites
from rocketbroker.store.consumequeue.extension import FOLDER as EXTENSION_FOLDER
from rocketbroker.store.consumequeue.extension import Extension
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.consumequeue.loading import QueueLoading
from rocketbroker.store.consumequeue.queue import Queue, is_usable
from rocketbroker.store.file_names import beside, position_of_name
from rocketbroker.store.quarantine import QueueQuarantine
from rocketbroker.store.shared_positions import SharedPositions

FOLDER = "consumequeue"

#: Beside each directory of queues: those of topics that were deleted.
DELETED = "deleted"

#: From so many queues on that wait for a flush the file system is flushed first.
MANY: Final = 1000


@final
class QueueTable:
    """The handles of all queues.

    @ivar is_batch: whether a topic has batch queues.
    @ivar lmq_count: how many LMQs there are.
    @ivar max_lmqs: how many clients may have.
    """

    def __init__(
        self,
        open_files: OpenFiles,
        options: StoreOptions,
        positions: SharedPositions,
        store_host_v6: bool,
        deferred_writes: DeferredWrites | None = None,
        is_batch: Callable[[str], bool] | None = None,
        quarantine: QueueQuarantine | None = None,
    ) -> None:
        """
        @param open_files: opens the files of all queues.
        @param options: sizes of files are rounded up to whole entries.
        @param deferred_writes: counts the bytes that the disk has no room for; without
            it that is an error.
        @param is_batch: None: those topics that have a directory for such queues.
        @param quarantine: takes the files that the disk cannot read; the same.
        """
        self._quarantine = quarantine
        self._open_files = open_files
        self._files = open_files.files
        root = options.store_path_root_dir
        self._folder = os.path.join(root, FOLDER)
        self._extension_folder = os.path.join(root, EXTENSION_FOLDER)
        self._batch_folder = os.path.join(root, BATCH_FOLDER)
        self._parents = self._folder, self._batch_folder, self._extension_folder
        #: Those of them that are there; they stay.
        self._present = set(filter(self._files.is_dir, self._parents))
        self._extension_size = options.mapped_file_size_consume_queue_ext
        self._extends = options.enable_consume_queue_ext
        self.max_lmqs = options.max_lmq_consume_queue_num
        self.lmq_count = 0
        self._deferred_writes = deferred_writes
        batch_size = options.mapper_file_size_batch_consume_queue
        self._batch_file_size = -(-batch_size // BATCH_SIZE) * BATCH_SIZE
        self.is_batch = is_batch if is_batch is not None else self._has_batch_folder
        self._file_size = -(-options.mapped_file_size_consume_queue // SIZE) * SIZE
        self._positions = positions
        self._store_host_v6 = store_host_v6
        self._allow_v2 = options.auto_message_version_on_topic_len
        self._queues: dict[tuple[str, int], Queue] = {}
        #: Held by the one thread that removes discarded files.
        self._removing = threading.Lock()

    def get_for_client(self, topic: str, queue_id: int) -> Queue:
        """The handle of a queue that a client has named.

        Any client can name LMQs that do not exist, and each costs memory and a file, so
        their number is limited; LMQs of messages in the log may exceed it.

        @raise OSError: there is no room for the numbers of another queue.
        @raise SystemFailure: it would be one LMQ too many.
        """
        if (
            self.lmq_count >= self.max_lmqs
            and is_lmq(topic)
            and (topic, queue_id) not in self._queues
        ):
            raise SystemFailure(
                "[LMQ_CONSUME_QUEUE_NUM_EXCEEDED]there are "
                f"{self.max_lmqs} light message queues, as many as "
                "maxLmqConsumeQueueNum allows"
            )
        return self.get(topic, queue_id)

    def get(self, topic: str, queue_id: int) -> Queue:
        """The handle of a queue.

        @raise OSError: there is no room for the numbers of another queue.
        """
        queue = self._queues.get((topic, queue_id))
        if queue is None:
            # A topic that cannot be stored has no directory, whatever it is called.
            name = topic if is_usable(topic) else "unusable"
            folder = f"{self._folder}/{name}/{queue_id}"
            queue = Queue(
                topic,
                queue_id,
                self._positions,
                self._positions.add_queue(topic if is_usable(topic) else "", queue_id),
                QueueFiles(
                    self._open_files,
                    folder,
                    self._file_size,
                    deferred_writes=self._deferred_writes,
                    quarantine=self._quarantine,
                ),
                self._store_host_v6,
                self._allow_v2,
            )
            if queue.storable and (self._extends or self._is_extended(queue)):
                queue.extension = self._extension(queue)
            self._queues[topic, queue_id] = queue
            self.lmq_count += is_lmq(topic)
        if self.is_batch(topic) != (queue.batch is not None) and not queue.has_files:
            queue.set_batch(None if queue.batch is not None else self._units(queue))
        return queue

    def _units(self, queue: Queue) -> BatchUnits | None:
        """The files of a batch queue; None if there can be none."""
        if not queue.storable:
            return None
        self._make(self._batch_folder)
        folder = os.path.join(self._batch_folder, queue.topic, str(queue.queue_id))
        files = QueueFiles(
            self._open_files,
            folder,
            self._batch_file_size,
            "mapperFileSizeBatchConsumeQueue",
            self._deferred_writes,
            self._quarantine,
        )
        return BatchUnits(self._positions, queue.slot, files)

    def _is_extended(self, queue: Queue) -> bool:
        """Whether a queue has an extension from a time when that was switched on."""
        return self._extension_folder in self._present and self._files.is_dir(
            self._extension_path(queue)
        )

    def _extension_path(self, queue: Queue) -> str:
        return os.path.join(self._extension_folder, queue.topic, str(queue.queue_id))

    def _extension(self, queue: Queue) -> Extension:
        self._make(self._extension_folder)
        return Extension(
            QueueFiles(
                self._open_files,
                self._extension_path(queue),
                self._extension_size,
                "mappedFileSizeConsumeQueueExt",
                self._deferred_writes,
                self._quarantine,
            )
        )

    def _has_batch_folder(self, topic: str) -> bool:
        """Whether a topic seems to have batch queues, where its kind is not known."""
        return is_usable(topic) and self._files.is_dir(
            os.path.join(self._batch_folder, topic)
        )

    def _make(self, folder: str) -> None:
        """Make a directory for queues of another kind, if it is not there."""
        if folder not in self._present:
            make_lasting(self._files, folder)
            self._present.add(folder)

    def get_by_bytes(self, topic: bytes, queue_id: int) -> Queue | None:
        """The handle of the queue that a record names; None if it cannot be one."""
        try:
            text = topic.decode()
        except UnicodeDecodeError:
            return None
        if not is_usable(text) or queue_id < 0:
            return None
        return self.get(text, queue_id)

    @property
    def replaced(self) -> int:
        """How many files were replaced, as the disk could not read them."""
        return len(self._quarantine.replaced) if self._quarantine is not None else 0

    def has(self, topic: str, queue_id: int) -> bool:
        """Whether a queue has a handle."""
        return (topic, queue_id) in self._queues

    def all(self) -> list[Queue]:
        """All handles."""
        return list(self._queues.values())

    def last_positions(self) -> list[int]:
        """Positions of the records that the last two entries of each queue, or its last
        unit, lead to."""
        found = []
        for queue in self.all():
            first, end = queue.min_offset, queue.max_offset
            if first < end:
                found.append(queue.last_place()[0])
                if queue.batch is None and end - first > 1:
                    found.append(ENTRY.unpack(queue.read(end - 2, 1))[0])
        return found

    def load(
        self,
        clean: bool,
        distrust: Callable[[], None],
        restore: Callable[[Queue], None],
    ) -> list[str]:
        """Make a handle for each queue that has a directory, and open its files.

        @param clean: see L{QueueLoading}.
        @param distrust: the same.
        @param restore: called after a clean stop for each queue with ordinary files;
            may give it files that are as they were.
        @return: sentences about what was not right.
        @raise StoreError: they were made for another size.
        """
        if self._quarantine is not None:
            self._quarantine.distrust = distrust
        loading = QueueLoading(self._open_files, clean, distrust)
        queues = self._find(self._folder, False, loading.report, distrust)
        others = self._find(self._batch_folder, True, loading.report, distrust)
        if clean:
            for queue in queues:
                restore(queue)
        loading.load(
            [
                ([each.files for each in queues], SIZE),
                ([each.extension.files for each in queues if each.extension], 1),
                ([each.batch.files for each in others if each.batch], BATCH_SIZE),
            ]
        )
        return loading.report

    def _find(
        self,
        parent: str,
        is_batch: bool,
        report: list[str],
        distrust: Callable[[], None],
    ) -> list[Queue]:
        """The queues of one kind."""
        found = []
        for topic, length in self._files.lengths(parent):
            folder = f"{parent}/{topic}"
            if topic.endswith(ASIDE) and length != FOLDER_LENGTH:
                # An earlier start has reported it.
                continue
            if length != FOLDER_LENGTH or not is_usable(topic):
                report.append(f"{folder!r} is not a topic's directory; it is ignored.")
                continue
            if self.is_batch(topic) != is_batch:
                report.append(
                    f"{folder} is not for queues of that topic; it is ignored."
                )
                continue
            for name, length in self._files.lengths(folder):
                path = f"{folder}/{name}"
                if name.endswith(ASIDE):
                    continue
                number = name.isascii() and name.isdigit() and int(name) < 1 << 31
                number = number and str(int(name)) == name
                if number and length != FOLDER_LENGTH:
                    distrust()
                    report += clear_for_folder(self._files, path)
                elif not number:
                    report.append(
                        f"{path!r} is not a queue's directory; it is ignored."
                    )
                else:
                    found.append(self.get(topic, int(name)))
        return found

    def flush(self, least_pages: int = 0, many: int = MANY) -> None:
        """I{Blocking.} Put all queues on the disk.

        Thousands take tens of seconds, one by one. So where many wait, the whole file
        system is put on the disk first, in large pieces. The sync of each file, which
        alone tells errors, finds nothing left to write then.

        @param least_pages: only those to which so many pages came since the last flush.
        @param many: so many are many.
        @raise OSError: the disk refused.
        """
        queues = self.all()
        if not least_pages and sum(each.is_unsynced for each in queues) >= many:
            self._sync(queues)
        for queue in queues:
            queue.flush(least_pages)

    def _sync(self, queues: list[Queue]) -> None:
        """Put the file system on the disk; then the names of files are there, too."""
        rows = [each.files for each in queues if each.files.forget_names()]
        done = False
        try:
            done = all(map(self._files.sync, sorted(self._present)))
        finally:
            if not done:
                for row in rows:
                    row.mark_dir_unsynced()

    def of_topic(self, topic: str) -> list[Queue]:
        """All handles of a topic."""
        return [queue for queue in self.all() if queue.topic == topic]

    def discard(self, topic: str) -> None:
        """Move the directories of a topic out of the way, for L{remove_discarded}.

        That costs one rename each, however many files there are. Where the system
        refuses it, they are removed at once.

        @raise OSError: that is refused, too.
        """
        for parent in self._parents:
            folder = os.path.join(parent, topic)
            if not is_usable(topic) or not self._files.is_dir(folder):
                continue
            aside = beside(parent, DELETED)
            try:
                self._files.make_dirs(aside)
                names = self._files.list(aside)
                numbers = (n for n in range(len(names) + 1) if str(n) not in names)
                self._files.rename(folder, os.path.join(aside, str(next(numbers))))
            except OSError:
                self._remove(folder)

    def remove_discarded(self) -> None:
        """I{Blocking.} Remove directories that L{discard} has moved away, now or before
        a crash.

        @raise OSError: the system refuses; the next call goes on.
        """
        with self._removing:
            for parent in self._parents:
                aside = beside(parent, DELETED)
                if self._files.is_dir(aside):
                    self._files.sync_dir(parent)
                    for name in self._files.list(aside):
                        self._remove(os.path.join(aside, name))

    def _remove(self, folder: str) -> None:
        """Remove the files of queues from a directory, then the empty directories."""
        for name in self._files.list(folder):
            path = os.path.join(folder, name)
            if self._files.is_dir(path):
                self._remove(path)
            elif position_of_name(name) >= 0:
                self._files.remove(path)
        if not self._files.list(folder):
            self._files.remove_dir(folder)

    def close(self) -> None:
        """Close all files."""
        for queue in self.all():
            queue.close()
