# -*- test-case-name: tests.store -*-
"""The interface of the message store: its methods, and the values they take and return.

A method does a bounded step and waits for nobody; the caller decides when and in which
thread. Those marked I{blocking} may wait for the disk and belong in a thread, except
before the reactor runs. L{rocketbroker.store.message_store.Store} provides
L{IStore} over any L{rocketbroker.files.interfaces.IFiles}; the memory store of
L{rocketbroker.testing} is the same over files in memory.

Statuses: C{docs/facts/store.md} 5.2 and 16.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, final

import msgspec
from zope.interface import Attribute, Interface

from rocketbroker.codec.build import COMPILED
from rocketbroker.config.store import StoreOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.disk_usage import DiskUsage
from rocketbroker.store.dispatched_record import ILogTail
from rocketbroker.store.raw_log import IRawLog
from rocketbroker.store.reads import Matches, MessageFilter, ReadResult
from rocketbroker.store.running_flags import RunningFlags

# The outcome of a draft's append (Draft.status).
PUT_OK: Final = 0
NOT_PUT: Final = -1
MESSAGE_ILLEGAL: Final = 1
PROPERTIES_SIZE_EXCEEDED: Final = 2
SERVICE_NOT_AVAILABLE: Final = 3
CREATE_MAPPED_FILE_FAILED: Final = 4
UNKNOWN_ERROR: Final = 5
#: Somebody else has had the append lock for too long: not now.
OS_PAGE_CACHE_BUSY: Final = 6


class IQueue(Interface):
    """A handle on one consume queue; always the same object for the same queue."""

    topic: str = Attribute("The topic's name.")
    topic_bytes: bytes = Attribute("The same as UTF-8.")
    queue_id: int = Attribute("The number of the queue within its topic.")
    min_offset: int = Attribute("The first queue offset that can be read.")
    max_offset: int = Attribute("One more than the last offset that can be read.")
    reported_min_offset: int = Attribute(
        "C{min_offset} in answers to clients: -1 of a batch queue without messages."
    )
    next_offset: int = Attribute(
        "The offset of the next message to be appended; ahead of max_offset by the "
        "messages that are not dispatched yet."
    )
    from_position: int = Attribute(
        "Records before it belong to a topic of that name that was deleted."
    )


@final
class Placed:
    """The parts of a message whose properties contain its queue offsets.

    The store completes the properties when it knows the offsets, within the append. It
    is one record, so one draft: an inner batch, or a message that stands in LMQs (light
    message queues) besides its own queue.

    @ivar properties: the properties string without the offsets.
    @ivar count: how many messages it is in its queue: of an inner batch several.
    @ivar lmqs: the LMQs, none of them twice.
    @ivar offsets: the offsets that it got in them.
    """

    __slots__ = ("count", "lmqs", "offsets", "properties")

    def __init__(
        self, properties: bytes, count: int, lmqs: Sequence[IQueue] = ()
    ) -> None:
        self.properties = properties
        self.count = count
        self.lmqs = lmqs
        self.offsets: list[int] = []


if TYPE_CHECKING or not COMPILED:

    @final
    class Draft(msgspec.Struct, eq=False, gc=False):
        """A message on its way into the log; the store sets the fields that it decides.

        It is a struct as it is made for each message: one by Python's own means takes
        twice as long, and is another object that garbage collections look at. So no
        context may hold its draft: nothing would free the two.

        An outer batch is one draft with C{parts}: it becomes as many records with
        consecutive offsets, all or none, all in one segment. An inner batch is one with
        L{Placed} parts, which only batch queues take.

        @ivar queue: where it goes.
        @ivar body: the body as sent (of a batch: unused).
        @ivar properties: the properties string as bytes (of a batch: unused).
        @ivar flag: the producer's flag.
        @ivar sys_flag: the system flag, without the two host bits, which the store
            sets.
        @ivar born_ms: the producer's time stamp.
        @ivar born_host: 8 or 20 bytes, address and port of the producer.
        @ivar reconsume_times: how often a consumer has sent it back.
        @ivar prepared_offset: the physical offset of the half message.
        @ivar tag_code: the hash of the TAGS property, 0 without one.
        @ivar parts: of a batch, C{(flag, body, properties, tag_code)} of each message,
            or L{Placed}.
        @ivar wait: whether its answer waits for the disk (property WAIT).
        @ivar status: L{PUT_OK}, or why it was not stored; L{NOT_PUT} before append.
        @ivar queue_offset: the queue offset of the (first) record.
        @ivar position: the physical offset of the (first) record.
        @ivar positions: of a batch, the physical offset of each record.
        @ivar end: the physical offset behind it: durable once flushed up to here.
        @ivar context: the caller's, untouched.
        """

        queue: IQueue
        body: bytes
        properties: bytes
        flag: int
        sys_flag: int
        born_ms: int
        born_host: bytes
        reconsume_times: int
        tag_code: int
        context: object
        parts: Sequence[tuple[int, bytes, bytes, int]] | Placed | None = None
        prepared_offset: int = 0
        wait: bool = True
        status: int = NOT_PUT
        queue_offset: int = 0
        position: int = 0
        positions: Sequence[int] = ()
        end: int = 0

else:
    # With the same fields and defaults.
    from rocketbroker.codec.append import Draft


@final
class Arrival:
    """The messages that one dispatch step added to one queue.

    @ivar queue: the queue, whose C{max_offset} includes the new entries.
    @ivar tag_codes: the tag code of each new entry, in order.
    """

    __slots__ = ("queue", "tag_codes")

    def __init__(self, queue: IQueue, tag_codes: list[int]) -> None:
        self.queue = queue
        self.tag_codes = tag_codes


@final
class KeyResult:
    """The result of L{IStore.find_by_key}.

    @ivar records: the stored records, in the order of the log.
    @ivar index_ms: the store time of the last message in the index.
    @ivar index_position: its physical offset.
    """

    __slots__ = ("index_ms", "index_position", "records")

    def __init__(
        self, records: list[bytes], index_ms: int, index_position: int
    ) -> None:
        self.records = records
        self.index_ms = index_ms
        self.index_position = index_position


class ICleaner(Interface):
    """The removal of files that a store does not need any more."""

    removed_segments: int = Attribute("How many files of the log were removed.")
    removed_files: int = Attribute("How many files of queues and index.")
    failures: int = Attribute("How many removals the system has refused.")
    hanging: str = Attribute("A sentence on a file that cannot be removed; or empty.")

    def expire_now() -> None:
        """Let the next rounds remove expired files at any hour of the day."""


class IStore(Interface):
    """A message store, as services use it.

    All positions are physical offsets: byte positions in the endless commit log.
    """

    min_position: int = Attribute("The start of the oldest segment.")
    published_position: int = Attribute("The end of the log: nothing beyond it exists.")
    flushed_position: int = Attribute("All before it is on the disk.")
    dispatched_position: int = Attribute("All before it is in the consume queues.")
    index_behind: int = Attribute("Bytes that are dispatched and not in the index.")
    index_failures: int = Attribute("How many index steps the disk has refused.")
    append_failures: int = Attribute("How many drafts were refused or failed.")
    appended_messages: int = Attribute("Messages that were appended since the start.")
    raw_log: IRawLog = Attribute("The log as bytes, for replication; once it is open.")
    appended_bytes: int = Attribute("How many bytes of the log they are.")
    corrupt_records: int = Attribute("How many corrupt records were found.")
    discarded_bytes: int = Attribute("How many bytes of the log the start discarded.")
    flags: RunningFlags = Attribute("The running flags: what it can do at the moment.")
    open_files: OpenFiles = Attribute("The open files of queues, index and log.")
    space: DiskUsage = Attribute("How full its disks were when last measured.")
    cleaner: ICleaner = Attribute("The removal of old files, and its counts.")

    def know_topics(is_batch: Callable[[str], bool]) -> None:
        """Set which topics have batch queues; before L{open}.

        Without it these are the topics with a directory of batch queues.
        """

    def open() -> None:
        """I{Blocking.} Lock, load, recover, mark as running.

        @raise StoreError: locked by another broker, or not writable; one sentence.
        """

    def configure(options: StoreOptions) -> None:
        """Obey those of these settings that may change while the store is open."""

    def close() -> None:
        """I{Blocking.} Flush everything and remove the mark; idempotent."""

    def calculate_bit_maps(bit_maps: Callable[[bytes, bytes], bytes]) -> None:
        """Store a bit map for each message that is dispatched from now on.

        It is kept with enableConsumeQueueExt only.

        @param bit_maps: given topic and properties string, a bit map of the filters
            that match the message; empty if there is none.
        """

    def refusal() -> str | None:
        """Why nothing can be appended now (disk full, closed, the append lock held), or
        None."""

    def queue(topic: str, queue_id: int) -> IQueue:
        """The handle of a queue, made on first use; files come with the first entry.

        @raise ServiceNotAvailable: there is no room for another queue.
        @raise SystemFailure: there are too many LMQs (maxLmqConsumeQueueNum).
        """

    def queues() -> Sequence[IQueue]:
        """All queues that have a handle or files."""

    def append(drafts: Sequence[Draft]) -> None:
        """Append the drafts in order and publish them; each gets its status.

        Nothing is visible to C{read} before it is dispatched. One that cannot be
        stored does not hinder the others. Errors of the disk are statuses, not raised;
        so is L{OS_PAGE_CACHE_BUSY}: the same drafts may be stored a while later.
        """

    def dispatch(max_records: int) -> list[Arrival]:
        """Enter up to about C{max_records} published records into their queues.

        With SYNC_FLUSH only flushed records, unless readUnCommitted. With nothing to do
        the list is empty; also after a step with only records that belong to no queue.

        @raise OSError: the disk refused, or another thread is at the queues for too
            long; the next call tries the same again.
        """

    def findings() -> Sequence[str]:
        """Sentences about errors on the disk that were found since the last call."""

    def is_cold(queue: IQueue, offset: int) -> bool:
        """Whether reading there may wait for the disk, so that it needs a thread."""

    def read(
        queue: IQueue,
        offset: int,
        max_messages: int,
        max_bytes: int,
        matches: Matches,
    ) -> ReadResult:
        """I{Blocking if cold.} Messages from C{offset} on (C{docs/facts/store.md} 16).

        A corrupt one is passed over, counted and reported.
        """

    def has_wanted(
        queue: IQueue, offset: int, max_messages: int, wanted: MessageFilter
    ) -> tuple[bool, int]:
        """Whether one of up to C{max_messages} messages from C{offset} on matches, or
        may match, and how long the check took, about, in ns. For messages that have
        just arrived.
        """

    def read_warm(
        queue: IQueue, offset: int, max_messages: int, max_bytes: int
    ) -> ReadResult | None:
        """The result of L{read} for the common case: messages are found, all of them
        are wanted, in memory, and in one segment.

        @return: None in any other case; use L{is_cold} and L{read} then.
        """

    def entries(
        queue: IQueue, offset: int, max_entries: int
    ) -> list[tuple[int, int, int]]:
        """I{Blocking if cold.} Physical offset, size and tag code of up to
        C{max_entries} messages from C{offset} on, as the queue has them: the records
        may be gone.

        @raise OSError: the disk cannot be read.
        """

    def record_at(position: int) -> bytes | None:
        """I{Blocking.} The record that starts there, None if none does."""

    def log_tail(position: int) -> ILogTail:
        """A reader of new records from C{position} on, which is behind a record."""

    def offset_by_time(queue: IQueue, ms: int, upper: bool) -> int:
        """I{Blocking.} The queue offset for a store time (C{docs/facts/store.md}
        10)."""

    def store_time(queue: IQueue, offset: int) -> int:
        """I{Blocking.} The store time of a message, in ms; -1 if it cannot be read."""

    def build_index(max_records: int) -> bool:
        """I{Blocking.} Enter keys of up to about C{max_records} dispatched records.

        @return: whether there is more to do.
        @raise OSError: the disk refused; a call a second later tries the same again.
        """

    def build_index_now(max_records: int) -> bool:
        """Enter keys of up to about C{max_records} records without any waiting.

        @return: whether that was possible; if not, L{build_index} does it.
        @raise OSError: as there.
        """

    def find_by_key(
        topic: str, key: str, max_found: int, begin_ms: int, end_ms: int
    ) -> KeyResult:
        """I{Blocking.} Messages by key or unique key (C{docs/facts/store.md} 12.4).

        Others whose keys have the same hash may be among them.
        """

    def check_lock() -> None:
        """Whether topics can be deleted now.

        @raise SystemBusy: the append lock cannot be had.
        """

    def delete_topic(topic: str) -> None:
        """Empty the topic's queues; its records stay in the log. Messages appended from
        now on belong to a new topic of that name.

        @raise SystemBusy: the append lock cannot be had now; nothing was done.
        @raise OSError: its files can neither be moved away nor removed.
        """

    def remove_deleted() -> None:
        """I{Blocking.} Remove files of deleted topics; after an error the next call
        goes on."""

    def flush() -> int:
        """I{Blocking; in a thread while others append.} Put the log on the disk.

        @return: the new flushed position.
        @raise OSError: the disk refused; the position has not moved.
        """

    def flush_queues(least_pages: int = 0) -> None:
        """I{Blocking.} Put consume queues and the checkpoint on the disk.

        @param least_pages: flush only queues with so many new pages; then the
            checkpoint stays as it is for the queues.
        """

    def allocate_ahead() -> bool:
        """I{Blocking.} Make the next segment ready; True if there was one to make."""

    def lacks_room() -> bool:
        """Whether L{allocate_ahead} is needed now, before its regular time."""

    def disk_usage() -> float:
        """How full the log's disk was when last measured, 0 to 1; -1.0 if not known."""

    def measure_disk() -> None:
        """I{Blocking.} Measure the disks: sets C{space} and a running flag."""

    def clean() -> Iterator[int]:
        """One round of removing files that are not needed any more.

        I{Each step blocks}, removes one file at the most, and yields the ms to wait
        before the next.
        """

    def clean_queues() -> Iterator[int]:
        """The part of such a round that is about queues and index."""
