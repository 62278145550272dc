# -*- test-case-name: tests.store.test_message_store -*-
"""The message store.

Its methods are documented in L{rocketbroker.store.interfaces.IStore}.

C{docs/facts/store.md} 14.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final, final

import attrs
from zope.interface import classImplements

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ServiceNotAvailable, StoreError
from rocketbroker.files.directories import make_lasting
from rocketbroker.files.interfaces import IFiles, IProcesses
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.files.os_errors import reason
from rocketbroker.store.append_lock import MAX_WAIT_SECONDS, held
from rocketbroker.store.assembly import Assembly, physical_memory
from rocketbroker.store.commitlog.raw_log import RawLog
from rocketbroker.store.commitlog.segment import ALLOCATION
from rocketbroker.store.consumequeue.extension import BitMaps
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.disk_usage import NO_ROOM, DiskUsage, describe_need
from rocketbroker.store.flush_threshold import NEVER_DUE
from rocketbroker.store.interfaces import (
    SERVICE_NOT_AVAILABLE,
    Arrival,
    Draft,
    IQueue,
    IStore,
    KeyResult,
)
from rocketbroker.store.log_tail import LogTail
from rocketbroker.store.reading.batch_pull import BatchReading
from rocketbroker.store.reads import Matches, MessageFilter, ReadResult
from rocketbroker.store.recovery.outcome import RecoveryOutcome, Trust
from rocketbroker.store.retention.cleaner import Cleaner
from rocketbroker.store.running_flags import NOT_APPENDABLE, RunningFlags
from rocketbroker.store.shared_positions import (
    DISPATCHED,
    FLUSHED,
    MIN_POSITION,
    PUBLISHED,
)
from rocketbroker.store.sharing.sharing import Sharing
from rocketbroker.store.store_lock import StoreLock

#: How many records are dispatched at once when the store is closed.
BATCH_SIZE: Final = 10_000


#: Until it is known which process it is.
_HELD: Final = "Nothing can be stored: another process holds the append lock."


@final
class Store:
    """A store in one directory.

    @ivar report: sentences about errors that the start found, and all it discarded.
    @ivar recovered: the outcome of the recovery.
    @ivar corruption_log: the corrupt records found since the start, and by it.
    @ivar raw_log: the log as bytes.
    @ivar flags: the running flags, which show what it can do at the moment.
    @ivar space: how full its disks are.
    @ivar open_files: the open files of queues, index and log.
    @ivar cleaner: removes files that are not needed any more.
    @ivar sharing: the append lock, and other processes that append.
    """

    raw_log: RawLog
    flags: RunningFlags
    space: DiskUsage
    cleaner: Cleaner

    def __init__(
        self,
        files: IFiles,
        options: StoreOptions,
        wall_ms: Callable[[], int],
        store_host: bytes,
        is_shared: bool = False,
        memory_bytes: int | None = None,
        open_files: OpenFiles | None = None,
        processes: IProcesses | None = None,
    ) -> None:
        """
        @param wall_ms: the time of day, in ms.
        @param store_host: the broker's address and port as records have them.
        @param is_shared: whether other processes may join it to append.
        @param memory_bytes: the machine's memory; messages further behind are cold.
        @param open_files: opens the files of queues, index and log; by default as
            few as tools need.
        @param processes: of this machine; None: those that joined are not known.
        """
        self._files = files
        self.open_files = open_files if open_files is not None else OpenFiles(files)
        self._options = options
        self._wall_ms = wall_ms
        self._store_host = store_host
        self._root = options.store_path_root_dir
        self.sharing = Sharing(files, self._root, is_shared, processes)
        self._memory = memory_bytes if memory_bytes is not None else physical_memory()
        self._is_batch: Callable[[str], bool] | None = None
        self._store_lock = StoreLock(files, self._root)
        self._is_open = False
        self._was_open = False
        self.report: list[str] = []
        self.recovered = RecoveryOutcome(False, Trust.NONE)
        self.corruption_log = CorruptionLog()

    # Opening and closing.

    def know_topics(self, is_batch: Callable[[str], bool]) -> None:
        """See L{IStore.know_topics}."""
        assert not self._was_open
        self._is_batch = is_batch

    def configure(self, options: StoreOptions) -> None:
        """See L{IStore.configure}."""
        self._options = options
        self._configure(options)

    def open(self) -> None:
        """See L{IStore.open}."""
        assert not self._was_open, "a store is opened once"
        self._was_open = True
        try:
            make_lasting(self._files, self._root)
            self._store_lock.take()
            self._positions = self.sharing.begin()
            try:
                self._open()
            except BaseException:
                with contextlib.suppress(OSError, StoreError):
                    self.sharing.end()
                    self._positions.remove()
                raise
        except OSError as error:
            self._store_lock.release()
            raise StoreError(
                f"The store {self._root} cannot be used: {reason(error)}."
                + (self._need() if error.errno in NO_ROOM else "")
            ) from error
        except StoreError:
            self._store_lock.release()
            raise

    def _need(self) -> str:
        """How much room a new log needs, if it is more than there is."""
        options = self._options
        log = options.store_path_commit_log or os.path.join(self._root, "commitlog")
        size = min(ALLOCATION, options.mapped_file_size_commit_log)
        return describe_need(self._files, log.split(",")[0], size)

    def _open(self) -> None:
        parts = Assembly(
            self.open_files,
            self._options,
            self._positions,
            self.sharing,
            self._wall_ms,
            self._store_host,
            self._memory,
            self.corruption_log,
            self._is_batch,
        )
        self._configure = parts.configure
        self._segments = parts.segments
        self._table = parts.table
        self._log = parts.log
        self._flushing = parts.flushing
        self._queue_flushing = parts.queue_flushing
        self._dispatcher = parts.dispatcher
        self._reading = parts.reading
        self._batch_reading = BatchReading(parts.reading)
        self._search = parts.search
        self._index = parts.index
        self._clean_shutdown = parts.clean_shutdown
        self._checkpoint = parts.checkpoint
        self.cleaner = parts.cleaner
        self.raw_log = parts.raw_log
        self.flags = parts.flags
        self.space = parts.space
        lock = self._store_lock
        begun_ms = self._wall_ms()
        clean, zeroed = lock.was_left_cleanly(), lock.is_zeroed
        recovery = parts.recover(clean, lock.mark_unclean, zeroed)
        seconds = max(0, self._wall_ms() - begun_ms) / 1000
        self.recovered = attrs.evolve(parts.outcome, seconds=seconds)
        self.report += lock.report + recovery.report + self._index.report
        ended = self.sharing.joined.ended
        if ended:
            text = "Workers of a broker that was killed had not ended, and were killed:"
            self.report.append(f"{text} {ended}.")
        self.report += self.corruption_log.take_messages()
        self._positions.name_queues()
        if not self._positions.is_shared:
            text = "is full: it has no room for the positions that readers in other "
            text += "processes use, so they check every record."
            self.report.append(f"{self._root} {text}")
        self._flushing.flush()
        with contextlib.suppress(OSError):
            # On a full disk the checkpoint stays as it was; it is tried again. Where a
            # checkpoint was believed, it stays, too, until the first regular flush: the
            # next start would read the same part of the log.
            is_bounded = self.recovered.trust is Trust.BEFORE_START
            self.flush_queues(NEVER_DUE if is_bounded else 0)
        lock.mark(self._positions, recovery.zeroed)
        self.allocate_ahead(alone=True)
        self._positions.started()
        self._is_open = self.raw_log.is_open = True
        self.measure_disk()
        with contextlib.suppress(OSError):
            self.remove_deleted()

    def close(self) -> None:
        """See L{IStore.close}.

        @raise StoreError: not all could be put on the disk; the mark stays, so that the
            next start checks everything.
        """
        if not self._is_open:
            self._store_lock.release()
            return
        self._is_open = self.raw_log.is_open = False
        try:
            self.sharing.end()
            self._flushing.flush()
            while self._positions.view[DISPATCHED] < self._positions.view[PUBLISHED]:
                self._dispatcher.dispatch(BATCH_SIZE)
            self._index.finish()
            self.flush_queues()
            self._segments.remove_ahead()
            ends = self.min_position, self.published_position
            self._clean_shutdown.save(*ends, self._table.all())
            self._positions.remove()
            self._store_lock.unmark()
        except OSError as error:
            raise StoreError(
                f"The store {self._root} is not stopped cleanly: {error.strerror}."
            ) from error
        finally:
            self._index.close()
            self._table.close()
            self._segments.close()
            self._checkpoint.close()
            self._positions.close()
            self._store_lock.release()

    def _check_open(self) -> None:
        """
        @raise ServiceNotAvailable: the store is closed.
        """
        if not self._is_open:
            raise ServiceNotAvailable("the store is closed")

    # Positions.

    @property
    def min_position(self) -> int:
        """See L{IStore}."""
        return int(self._positions.view[MIN_POSITION])

    @property
    def published_position(self) -> int:
        """See L{IStore}."""
        return int(self._positions.view[PUBLISHED])

    @property
    def flushed_position(self) -> int:
        """See L{IStore}."""
        return int(self._positions.view[FLUSHED])

    @property
    def dispatched_position(self) -> int:
        """See L{IStore}."""
        return int(self._positions.view[DISPATCHED])

    @property
    def append_failures(self) -> int:
        """See L{IStore}."""
        return self._log.append_failures

    @property
    def appended_messages(self) -> int:
        """See L{IStore}."""
        return self._log.appended_messages

    @property
    def appended_bytes(self) -> int:
        """See L{IStore}."""
        return self._log.appended_bytes

    @property
    def discarded_bytes(self) -> int:
        """See L{IStore}."""
        return self.recovered.cut_bytes

    @property
    def corrupt_records(self) -> int:
        """See L{IStore}."""
        return self.corruption_log.records

    @property
    def index_behind(self) -> int:
        """See L{IStore}."""
        return self._index.behind if self._is_open else 0

    @property
    def index_failures(self) -> int:
        """See L{IStore}."""
        return self._index.failures if self._was_open else 0

    # Steps.

    def calculate_bit_maps(self, bit_maps: BitMaps) -> None:
        """See L{IStore.calculate_bit_maps}."""
        self._dispatcher.bit_maps = bit_maps

    def refusal(self) -> str | None:
        """See L{IStore.refusal}."""
        if not self._is_open:
            return "the store is closed"
        if self.raw_log.is_behind:
            return "not all that a master has sent is in the queues yet"
        if self.sharing.is_held:
            return self.sharing.problem or _HELD
        if not self.flags.bits & NOT_APPENDABLE:
            return None
        return self.flags.reasons(NOT_APPENDABLE) or "it is not writeable"

    def queue(self, topic: str, queue_id: int) -> Queue:
        """See L{IStore.queue}.

        @raise ServiceNotAvailable: the disk has no room for another queue's numbers.
        @raise SystemFailure: there are too many LMQs.
        """
        try:
            return self._table.get_for_client(topic, queue_id)
        except OSError as error:
            raise ServiceNotAvailable(f"no new queue: {error.strerror}") from error

    def queues(self) -> Sequence[Queue]:
        """See L{IStore.queues}."""
        return self._table.all()

    def append(self, drafts: Sequence[Draft]) -> None:
        """See L{IStore.append}."""
        if self._options.is_slave or not self._is_open or self.raw_log.is_behind:
            for draft in drafts:
                draft.status = SERVICE_NOT_AVAILABLE
            self._log.append_failures += len(drafts)
            return
        self._log.append(drafts)

    def dispatch(self, max_records: int) -> list[Arrival]:
        """See L{IStore.dispatch}."""
        if not self._is_open:
            return []
        # Against a topic that is deleted meanwhile, in a thread.
        threads = self.sharing.threads
        if not threads.acquire(True, MAX_WAIT_SECONDS):
            raise OSError(errno.EAGAIN, "another thread is at the queues")
        try:
            return self._dispatcher.dispatch(max_records)
        finally:
            threads.release()

    def findings(self) -> Sequence[str]:
        """See L{IStore.findings}."""
        return self.corruption_log.take_messages()

    def is_cold(self, queue: IQueue, offset: int) -> bool:
        """See L{IStore.is_cold}."""
        assert type(queue) is Queue
        return self._is_open and self._reading.is_cold(queue, offset)

    def read(
        self,
        queue: IQueue,
        offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches,
    ) -> ReadResult:
        """See L{IStore.read}.

        @raise ServiceNotAvailable: the store is closed.
        """
        assert type(queue) is Queue
        self._check_open()
        reading = self._reading if queue.batch is None else self._batch_reading
        return reading.read(queue, offset, max_messages, max_bytes, matches)

    def has_wanted(
        self, queue: IQueue, offset: int, max_messages: int, wanted: MessageFilter
    ) -> tuple[bool, int]:
        """See L{IStore.has_wanted}."""
        assert type(queue) is Queue
        if not self._is_open or queue.batch is not None:
            return True, 0
        return self._reading.has_wanted(queue, offset, max_messages, wanted)

    def read_warm(
        self, queue: IQueue, offset: int, max_messages: int, max_bytes: int
    ) -> ReadResult | None:
        """See L{IStore.read_warm}."""
        assert type(queue) is Queue
        if not self._is_open:
            return None
        return self._reading.read_warm(queue, offset, max_messages, max_bytes)

    def entries(
        self, queue: IQueue, offset: int, max_entries: int
    ) -> list[tuple[int, int, int]]:
        """See L{IStore.entries}."""
        assert type(queue) is Queue
        return queue.entries(offset, max_entries) if self._is_open else []

    def record_at(self, position: int) -> bytes | None:
        """See L{IStore.record_at}."""
        return self._search.record_at(position) if self._is_open else None

    def log_tail(self, position: int) -> LogTail:
        """See L{IStore.log_tail}.

        @raise ServiceNotAvailable: the store is closed.
        """
        self._check_open()
        return LogTail(self._segments, self._positions, position)

    def offset_by_time(self, queue: IQueue, ms: int, upper: bool) -> int:
        """See L{IStore.offset_by_time}.

        @raise ServiceNotAvailable: the store is closed.
        """
        assert type(queue) is Queue
        self._check_open()
        return self._search.offset_by_time(queue, ms, upper)

    def store_time(self, queue: IQueue, offset: int) -> int:
        """See L{IStore.store_time}."""
        assert type(queue) is Queue
        return self._search.store_time(queue, offset) if self._is_open else -1

    def check_lock(self) -> None:
        """See L{IStore.check_lock}."""
        with held(self.sharing.append_lock):
            pass

    def delete_topic(self, topic: str) -> None:
        """See L{IStore.delete_topic}."""
        with held(self.sharing.append_lock):
            self._table.discard(topic)
            position = self._positions.view[PUBLISHED]
            for queue in self._table.of_topic(topic):
                queue.restart_at(position)

    def remove_deleted(self) -> None:
        """See L{IStore.remove_deleted}."""
        if self._is_open:
            self._table.remove_discarded()

    def flush(self) -> int:
        """See L{IStore.flush}."""
        return self._flushing.flush()

    def flush_queues(self, least_pages: int = 0) -> None:
        """See L{IStore.flush_queues}."""
        self._queue_flushing.flush(least_pages)

    def build_index(self, max_records: int) -> bool:
        """See L{IStore.build_index}."""
        return self._index.build(max_records) if self._is_open else False

    def build_index_now(self, max_records: int) -> bool:
        """See L{IStore.build_index_now}."""
        return self._is_open and self._index.build_now(max_records)

    def find_by_key(
        self, topic: str, key: str, max_found: int, begin_ms: int, end_ms: int
    ) -> KeyResult:
        """See L{IStore.find_by_key}."""
        if not self._is_open:
            return KeyResult([], 0, 0)
        return self._index.query(topic, key, max_found, begin_ms, end_ms)

    def allocate_ahead(self, alone: bool = False) -> bool:
        """See L{IStore.allocate_ahead}.

        @param alone: whether nobody appends meanwhile.
        """
        try:
            return self._log.make_room(alone)
        except OSError as error:
            self._log.refuse("no room for the commit log in {}", error)
            return False

    def lacks_room(self) -> bool:
        """See L{IStore.lacks_room}."""
        return self._is_open and self._log.preallocation.is_scarce()

    def disk_usage(self) -> float:
        """See L{IStore.disk_usage}."""
        return self.space.log.ratio

    def measure_disk(self) -> None:
        """See L{IStore.measure_disk}."""
        self.space.measure()
        self._segments.full = self.space.full_folders()

    def clean(self) -> Iterator[int]:
        """See L{IStore.clean}."""
        return self.cleaner.round() if self._is_open else iter(())

    def clean_queues(self) -> Iterator[int]:
        """See L{IStore.clean_queues}."""
        return self.cleaner.clean_queues() if self._is_open else iter(())


classImplements(Store, IStore)
