# -*- test-case-name: tests.store.test_message_store -*-
"""The assembly of a store: its parts, made from the options and put together.

The services see L{rocketbroker.store.message_store.Store}, which is made of these
parts.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import final

from rocketbroker.config.levels import parse_levels
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import StoreError
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.misplaced_files import clear_for_file, clear_for_folder
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.commitlog.checkpoint import NAME as CHECKPOINT
from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.store.commitlog.encoder import HOST_V6
from rocketbroker.store.commitlog.flush import LogFlush
from rocketbroker.store.commitlog.preallocation import Preallocation
from rocketbroker.store.commitlog.raw_log import RawLog
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.writer import CommitLog, RecordForm
from rocketbroker.store.consumequeue.batch_queue import FOLDER as BATCHES
from rocketbroker.store.consumequeue.deferred_writes import DeferredWrites
from rocketbroker.store.consumequeue.extension import FOLDER as EXTENSIONS
from rocketbroker.store.consumequeue.table import FOLDER as QUEUES
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.disk_usage import DiskUsage, describe_refusal
from rocketbroker.store.dispatch.dispatcher import Dispatcher
from rocketbroker.store.dispatch.queue_flush import QueueFlush
from rocketbroker.store.index.file import FOLDER as INDEX
from rocketbroker.store.index.service import Index
from rocketbroker.store.quarantine import QueueQuarantine
from rocketbroker.store.reading.pull import Reading
from rocketbroker.store.reading.time_lookup import TimeLookup
from rocketbroker.store.recovery.clean_shutdown import NAME as CLEAN_SHUTDOWN
from rocketbroker.store.recovery.clean_shutdown import CleanShutdown
from rocketbroker.store.recovery.outcome import RecoveryOutcome, Trust
from rocketbroker.store.recovery.recovery import LastStop, Recovery
from rocketbroker.store.recovery.truncation import Truncation, TruncationNote
from rocketbroker.store.retention.cleaner import Cleaner, LocalClock, local_hour
from rocketbroker.store.running_flags import RunningFlags
from rocketbroker.store.shared_positions import MIN_POSITION, SharedPositions
from rocketbroker.store.sharing.sharing import Sharing


def physical_memory() -> int:
    """The bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@final
class Assembly:
    """The parts of a store, on files that exist already or are made.

    @ivar outcome: that of the recovery.
    """

    def __init__(
        self,
        open_files: OpenFiles,
        options: StoreOptions,
        positions: SharedPositions,
        sharing: Sharing,
        wall_ms: Callable[[], int],
        store_host: bytes,
        memory_bytes: int,
        corruption_log: CorruptionLog,
        is_batch: Callable[[str], bool] | None,
    ) -> None:
        """
        @param open_files: opens the files of queues, index and log.
        @param is_batch: whether a topic has batch queues.
        @raise OSError: a directory cannot be made.
        @raise StoreError: the settings name none for the log.
        """
        root = options.store_path_root_dir
        queues = os.path.join(root, QUEUES)
        self.outcome = RecoveryOutcome(False, Trust.NONE)
        self._open_files = open_files
        self._files = files = open_files.files
        self._report = self._clear(root)
        make_lasting(files, queues)
        self._options = options
        self._positions = positions
        self._corruption_log = corruption_log
        self.clean_shutdown = CleanShutdown(files, root)
        self._describe_refusal = partial(describe_refusal, files, queues)
        self.flags = RunningFlags()
        self.segments = self._make_segments(root)
        self.space = DiskUsage(
            files,
            options,
            self.segments.folders,
            queues,
            os.path.join(root, INDEX),
            self.flags,
            self._own_bytes,
        )
        self._quarantine = QueueQuarantine(files, corruption_log.count)
        self.table = self._make_table(len(store_host) == HOST_V6, is_batch)
        self.log = CommitLog(
            self.segments,
            positions,
            self.flags,
            sharing.append_lock,
            wall_ms,
            RecordForm(
                store_host, options.max_message_size, options.enabled_append_prop_crc
            ),
            Preallocation(self.segments, positions, options),
        )
        sharing.attach(self.log, self.segments)
        self.flushing = LogFlush(self.log, positions)
        self.search = TimeLookup(self.segments, positions, corruption_log)
        self.index = self._make_index(wall_ms)
        self.dispatcher = self._make_dispatcher()
        self.dispatcher.rereads = sharing.is_on
        self.reading = Reading(
            self.segments, positions, options, memory_bytes, corruption_log
        )
        self.checkpoint = Checkpoint(files, root)
        self.queue_flushing = self._make_queue_flushing()
        self._truncation_note = TruncationNote(files, root)
        self.raw_log = self._make_raw_log(wall_ms)
        self.cleaner = self._make_cleaner(sharing.threads, wall_ms)
        self._read_ahead(options.data_read_ahead_enable)

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self._options = options
        self.space.configure(options)
        self.table.max_lmqs = options.max_lmq_consume_queue_num
        self.log.limit(options.max_message_size)
        self.log.preallocation.configure(options)
        self.reading.configure(options)
        self.index.configure(options)
        self.cleaner.configure(options)
        self._read_ahead(options.data_read_ahead_enable)

    def _read_ahead(self, is_wanted: bool) -> None:
        """Let the system read ahead in the log, or not."""
        folders = tuple(f"{folder}/" for folder in self.segments.folders)
        self._open_files.random_paths = () if is_wanted else folders
        for segment in self.segments.all:
            segment.read_ahead(is_wanted)

    def _clear(self, root: str) -> list[str]:
        """Move away files and directories that are in the way.

        @return: a sentence on each.
        """
        report: list[str] = []
        if not self._files.exists(os.path.join(root, QUEUES)):
            # No store yet: it may be anybody's directory.
            return report
        for name in (CHECKPOINT, CLEAN_SHUTDOWN):
            report += clear_for_file(self._files, os.path.join(root, name))
        for name in (QUEUES, BATCHES):
            report += clear_for_folder(
                self._files, os.path.join(root, name), links=False
            )
        for name in (EXTENSIONS, INDEX):
            report += clear_for_folder(self._files, os.path.join(root, name))
        return report

    def _make_segments(self, root: str) -> Segments:
        """The files of the log, none of them loaded yet."""
        options = self._options
        commit_log = options.store_path_commit_log or os.path.join(root, "commitlog")
        folders = [folder for folder in commit_log.split(",") if folder]
        old = options.read_only_commit_log_store_paths or ""
        segments = Segments(
            self._open_files,
            folders,
            options.mapped_file_size_commit_log,
            [folder for folder in old.split(",") if folder],
        )
        if not segments.folders:
            raise StoreError(
                "storePathCommitLog names no directory, or only those of "
                "readOnlyCommitLogStorePaths."
            )
        for folder in segments.folders:
            make_lasting(self._files, folder)
        segments.remove_ahead()
        return segments

    def _make_table(
        self, store_host_v6: bool, is_batch: Callable[[str], bool] | None
    ) -> QueueTable:
        """All queues."""
        return QueueTable(
            self._open_files,
            self._options,
            self._positions,
            store_host_v6,
            DeferredWrites(self.flags, self._describe_refusal),
            is_batch,
            self._quarantine,
        )

    def _own_bytes(self) -> int:
        """The bytes of log and queues, at their full sizes."""
        queues = sum(
            queue.files.size * len(queue.files.all) for queue in self.table.all()
        )
        return self.segments.size * len(self.segments.all) + queues

    def _make_dispatcher(self) -> Dispatcher:
        """The dispatcher, which hands records on to the index."""
        options = self._options
        synchronous = options.flush_disk_type == "SYNC_FLUSH"
        dispatcher = Dispatcher(
            self.log,
            self._positions,
            self.flags,
            self.table.get_by_bytes,
            synchronous and not options.read_un_committed,
            parse_levels(options.message_delay_level),
            self.index.hand_over,
            self._describe_refusal,
            self._corruption_log.note,
        )
        dispatcher.extends = options.enable_consume_queue_ext
        dispatcher.multi_dispatch = options.enable_multi_dispatch
        return dispatcher

    def _make_queue_flushing(self) -> QueueFlush:
        """The flush of queues and checkpoint."""
        return QueueFlush(
            self._positions,
            self.log,
            self.flushing,
            self.table,
            self.dispatcher,
            self.index.flush,
            self.checkpoint,
        )

    def _make_raw_log(self, wall_ms: Callable[[], int]) -> RawLog:
        """The log as bytes, and its truncation."""
        truncation = Truncation(
            self._truncation_note,
            self._positions,
            self.flags,
            self.flushing,
            self.table,
            self.dispatcher,
            self.index,
            self.queue_flushing,
            self.checkpoint,
        )
        return RawLog(
            self.log,
            self._positions,
            self.flags,
            wall_ms,
            self.reading.is_far,
            truncation,
            self.checkpoint,
        )

    def _make_cleaner(self, threads: Lock, wall_ms: Callable[[], int]) -> Cleaner:
        """The cleaner of the log, the queues and the index."""
        return Cleaner(
            self._files,
            self._options,
            self.segments,
            self.table,
            self.index,
            self._positions,
            threads,
            self.space,
            LocalClock(wall_ms, local_hour),
        )

    def _make_index(self, wall_ms: Callable[[], int]) -> Index:
        """The index, which finds records in the log."""
        return Index(
            self._open_files,
            self._options,
            self.segments,
            self._positions,
            wall_ms,
            self.flags,
            self.search.record_at,
            self._corruption_log.count,
        )

    def _distrust_queues(self, mark_unclean: Callable[[], None]) -> None:
        """Let the next start make all queues again."""
        self.checkpoint.is_distrusted = True
        mark_unclean()
        with contextlib.suppress(OSError):
            self.checkpoint.save()

    def recover(
        self, clean: bool, mark_unclean: Callable[[], None], zeroed: bool
    ) -> Recovery:
        """I{Blocking.} Recover the store from the files that a stop has left.

        @param clean: whether the last stop was a clean one.
        @param mark_unclean: called after a clean one, before anything is changed.
        @param zeroed: whether no records older than the log stand behind its end.
        """
        note = self._truncation_note
        truncated_to = note.position
        if clean and truncated_to >= 0:
            mark_unclean()
            clean = False
        recovery = Recovery(
            self.segments,
            self.table,
            self._positions,
            self.checkpoint,
            self.dispatcher,
            self._options,
            self._corruption_log,
            self.clean_shutdown,
            LastStop(mark_unclean, clean, zeroed, truncated_to),
        )
        recovery.report += self._report
        self.outcome = recovery.run()
        self.segments.keep_last_open()
        recovery.report += self._quarantine.report
        self._quarantine.is_starting = False
        self._quarantine.distrust = partial(self._distrust_queues, mark_unclean)
        if recovery.begins_late:
            self.cleaner.follow_from(self._positions.view[MIN_POSITION])
        self.dispatcher.multi_dispatch = self._options.enable_multi_dispatch
        if self.outcome.records:
            ms = recovery.last_store_ms
            self.flushing.restored(ms)
            self.dispatcher.dispatched_ms = ms
        else:
            self.flushing.restored(self.checkpoint.physic_ms)
            self.dispatcher.dispatched_ms = self.checkpoint.logics_ms
        self.index.load(clean, self.checkpoint)
        if truncated_to >= 0:
            self.table.flush()
            note.remove()
        return recovery
