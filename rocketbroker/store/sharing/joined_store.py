# -*- test-case-name: tests.store.sharing.test_joined_store -*-
"""A store that another process has opened, joined to append to it.

An append is done as a whole, or not at all: then the owner is to do it. It is not done
when the owner has changed something meanwhile, when it needs another segment, when
another process has the lock for too long, or has died in an append, which the owner
mends, and when the disk refuses it: the owner's own appends decide what that means for
clients.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import attrgetter
from threading import Lock
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import SIZE
from rocketbroker.records.record_head import LEAST_SIZE
from rocketbroker.store.commitlog.encoder import FILLER_BYTES, HOST_V6
from rocketbroker.store.commitlog.preallocation import Preallocation
from rocketbroker.store.commitlog.segment import Segment
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.store.commitlog.writer import CommitLog, RecordForm
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.consumequeue.queue import MAX_TOPIC, Queue
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK, Draft, Placed
from rocketbroker.store.running_flags import RunningFlags
from rocketbroker.store.shared_positions import (
    APPENDING,
    FLUSHED,
    OTHER_APPENDS,
    POSITIONS_NAME,
    PUBLISHED,
    VERSION,
    AsWords,
    JoinedPositions,
    in_words,
)
from rocketbroker.store.sharing.append_journal import MAX_QUEUES, AppendJournal
from rocketbroker.store.sharing.append_lock import APPEND_NAME, HELD_SECONDS

#: So many bytes a record may have beside body and properties: the longest topic, two
#: longer addresses, and a CRC of its own.
_HEAD: Final = LEAST_SIZE + MAX_TOPIC + 64

_SLOT: Final = attrgetter("queue.slot")

#: How long an append waits for the lock, in s: longer than the owner's, as only the
#: clients of this process wait, and a holder may be waiting for a core.
WAIT_SECONDS: Final = 0.2

#: One append takes no more messages, so that its journal has room for their queues.
MAX_DRAFTS: Final = MAX_QUEUES


@final
class JoinedStore:
    """The store, for appends only.

    @ivar appends: how many were done.
    @ivar left: how many were left to the owner.
    """

    def __init__(
        self,
        files: IFiles,
        options: StoreOptions,
        wall_ms: Callable[[], int],
        store_host: bytes,
        as_words: AsWords = in_words,
    ) -> None:
        """
        @param options: those of the owner.
        @param store_host: the same.
        @param as_words: shows what is shared as words.
        @raise OSError: the store has no owner that lets others append.
        """
        root = options.store_path_root_dir
        self.appends = 0
        self.left = 0
        self._is_held = False
        self._files = files
        self._open_files = OpenFiles(files)
        self._options = options
        self._is_v6 = len(store_host) == HOST_V6
        self._lock = files.open(os.path.join(root, APPEND_NAME))
        self._positions = JoinedPositions(
            files.open(os.path.join(root, POSITIONS_NAME)), as_words
        )
        self._journal = AppendJournal(self._lock, self._positions, as_words)
        log = options.store_path_commit_log or os.path.join(root, "commitlog")
        self._segments = Segments(
            self._open_files,
            [folder for folder in log.split(",") if folder],
            options.mapped_file_size_commit_log,
        )
        self._log = CommitLog(
            self._segments,
            self._positions,
            RunningFlags(),
            Lock(),
            wall_ms,
            RecordForm(
                store_host, options.max_message_size, options.enabled_append_prop_crc
            ),
            Preallocation(self._segments, self._positions, options, elsewhere=True),
            OTHER_APPENDS,
        )

    @property
    def version(self) -> int:
        """By which version of what the owner has told others may append; 0: by none."""
        return int(self._positions.view[VERSION])

    @property
    def unflushed_bytes(self) -> int:
        """How many bytes of the log are not on the disk."""
        view = self._positions.view
        return int(view[PUBLISHED] - view[FLUSHED])

    def configure(self, options: StoreOptions) -> None:
        """Obey those of these settings that may change while the store is open.

        The segment is looked for again: it may have been removed and made again, as
        another broker was the master.
        """
        self._close_segments()
        self._options = options
        self._log.limit(options.max_message_size)

    def queue(self, topic: str, queue_id: int, slot: int) -> Queue:
        """The handle of a queue.

        @param slot: the owner's, of the same queue.
        @raise OSError: there is no such slot.
        """
        self._positions.reach(slot)
        return Queue(
            topic,
            queue_id,
            self._positions,
            slot,
            QueueFiles(self._open_files, "", SIZE),
            self._is_v6,
            self._options.auto_message_version_on_topic_len,
        )

    def append(self, drafts: Sequence[Draft], version: int) -> bool:
        """Append drafts and publish them, or leave them to the owner.

        @param drafts: at most L{MAX_DRAFTS}, for queues that are no batch queues; one
            that can never be stored gets a status, as with the owner.
        @param version: by which they were made.
        @return: whether it was done.
        """
        size = _largest(drafts)
        if not self._lock.lock_alone(HELD_SECONDS if self._is_held else WAIT_SECONDS):
            self._is_held = True
            self.left += 1
            return False
        self._is_held = False
        try:
            view = self._positions.view
            position: int = view[PUBLISHED]
            done = (
                view[VERSION] == version != 0
                and not view[APPENDING]
                and self._has_room(position, size)
            )
            if done:
                self._journal.begin(set(map(_SLOT, drafts)), position + size)
                self._log.append(drafts)
                self._log.hints.clear()
                done = any(draft.status == PUT_OK for draft in drafts)
        finally:
            self._lock.unlock()
        self.appends += done
        self.left += not done
        return done

    def _has_room(self, position: int, size: int) -> bool:
        """Whether so many bytes fit into the segment of a position."""
        segments = self._segments
        segment = segments.find(position)
        if segment is None:
            segment = self._segment(position)
            if segment is None:
                return False
            self._close_segments()
            segments.all = [segment]
        return position + size <= segment.end - FILLER_BYTES

    def _segment(self, position: int) -> Segment | None:
        """Open the segment that holds a position, if the owner has made it."""
        start = position - position % self._segments.size
        for folder in self._segments.folders:
            path = os.path.join(folder, segment_name(start))
            try:
                file = self._files.open(path)
            except OSError:
                continue
            return Segment(start, self._segments.size, path, self._open_files, file)
        return None

    def let_go(self) -> None:
        """Close the segment if the log has grown beyond it: while it is open its blocks
        are not freed, though the owner removes it."""
        segments = self._segments
        if segments.all and segments.find(self._positions.view[PUBLISHED]) is None:
            self._close_segments()

    def _close_segments(self) -> None:
        for segment in self._segments.all:
            segment.close()
        self._segments.all = []

    def close(self) -> None:
        """Close all files."""
        self._close_segments()
        self._lock.close()


def _largest(drafts: Sequence[Draft]) -> int:
    """So many bytes drafts take in the log, at most."""
    size = len(drafts) * _HEAD
    for draft in drafts:
        size += len(draft.body) + len(draft.properties)
        parts = draft.parts
        if parts is not None:
            assert type(parts) is not Placed, "those are the owner's"
            size += len(parts) * _HEAD
            size += sum(len(body) + len(own) for _, body, own, _ in parts)
    return size
