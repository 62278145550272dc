# -*- test-case-name: tests.storetools.test_truncation -*-
"""The truncation of a stopped store, by an operator: all from a position on is
discarded.

It is for the store of an old master that comes back as a slave, and has messages that
the new master was never sent: it cannot follow until they are gone. What is cut away is
kept in a file in the store's directory, C{truncated-<position>-<time>}, if there is
room: the bytes of the log from that position on.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles, IFileUsers
from rocketbroker.records.properties import INNER_NUM
from rocketbroker.records.sysflags import INNER_BATCH
from rocketbroker.store.dispatched_record import DispatchedRecord
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.exclusive_lock import ExclusiveLock, log_folders
from rocketbroker.storetools.repair.file_sizes import batch_topics, fitted
from rocketbroker.storetools.repair.rebuild import RESERVE
from rocketbroker.storetools.repair.segment_sizes import SegmentSizes

#: So much is copied at once.
_PIECE: Final = 4 << 20

_BATCH_SIZE: Final = 10_000


@final
class StoreTruncation:
    """One truncation.

    @ivar end: where the log ends before it.
    @ivar topics: the messages that go, by topic.
    @ivar kept: the file with what was cut away; empty if there is none.
    @ivar not_kept: why nothing is kept, as a sentence; empty if something is.
    """

    def __init__(
        self,
        files: IFiles,
        users: IFileUsers,
        options: StoreOptions,
        wall_ms: Callable[[], int],
        position: int,
    ) -> None:
        """
        @param users: the processes that use files now.
        @param options: as for a repair.
        """
        self._files = files
        self._root = options.store_path_root_dir
        self._options = options
        self._wall_ms = wall_ms
        self._position = position
        self._lock = ExclusiveLock(
            files, users, self._root, options.store_path_commit_log
        )
        self._store: Store | None = None
        self.end = 0
        self.topics: dict[str, int] = {}
        self.kept = ""
        self.not_kept = ""

    def open(self) -> list[str]:
        """I{Blocking.} Open the store, as a broker does, and count what would go.

        @return: sentences of that start.
        @raise StoreError: a process uses it, files of its log are missing, or no record
            begins at the position.
        """
        try:
            self._lock.take(False)
            store = self._opened()
            self._store = store
            store.raw_log.check(self._position)
            self.end = store.published_position
            tail = store.log_tail(self._position)
            while found := tail.take(_BATCH_SIZE):
                for each in found:
                    count = self.topics.get(each.topic, 0) + _messages(each)
                    self.topics[each.topic] = count
            self.not_kept = self._lack_of_room()
        except OSError as error:
            raise StoreError(f"{self._root} cannot be read: {error}.") from error
        return store.report

    def _opened(self) -> Store:
        options = self._options
        log = options.store_path_commit_log
        given = options.mapped_file_size_commit_log
        lengths = SegmentSizes(self._files, self._root, log, given)
        if lengths.missing or lengths.wrong or lengths.is_empty:
            raise StoreError(
                f"Files of the log of {self._root} are missing or too short; "
                "rocketbroker store repair says which."
            )
        folders = log_folders(self._root, log)
        reader = StoreReader(self._files, self._root, ",".join(folders))
        try:
            options = fitted(reader, options, lengths.size)
        finally:
            reader.close()
        topics = batch_topics(self._files, self._root)
        # The store takes its lock itself.
        self._lock.release_root()
        store = Store(self._files, options, self._wall_ms, bytes(8))
        store.know_topics(topics.__contains__)
        store.open()
        return store

    def _lack_of_room(self) -> str:
        size = self.end - self._position
        usable = self._files.usage(self._root)[1]
        if size + RESERVE <= usable:
            return ""
        return (
            f"The {size >> 20} MiB that are cut away are not kept: {usable >> 20} MiB "
            "are free."
        )

    def run(self) -> None:
        """I{Blocking.} Keep what goes, and truncate.

        @raise StoreError: the disk refused.
        """
        store = self._store
        assert store is not None, "it is opened first"
        try:
            if self.end > self._position and not self.not_kept:
                self._keep(store)
            store.raw_log.truncate(self._position)
            while store.build_index(_BATCH_SIZE):
                pass
        except OSError as error:
            raise StoreError(
                f"The truncation of {self._root} stopped: {error}. If it had begun, "
                "the next start of the store finishes it."
            ) from error

    def _keep(self, store: Store) -> None:
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(self._wall_ms() // 1000))
        path = os.path.join(self._root, f"truncated-{self._position}-{stamp}")
        file = self._files.open(path, create=True)
        try:
            at = self._position
            while data := store.raw_log.read(at, _PIECE):
                file.pwrite(data, at - self._position)
                at += len(data)
            file.truncate(self.end - self._position)
            file.datasync()
        finally:
            file.close()
        self._files.sync_dir(self._root)
        self.kept = path

    def close(self) -> None:
        """I{Blocking.} Close the store, and release the locks.

        @raise StoreError: the disk refused.
        """
        try:
            if self._store is not None:
                self._store.close()
        finally:
            self._lock.release()


def _messages(record: DispatchedRecord) -> int:
    """How many messages a record has."""
    number = record.properties.get(INNER_NUM, "1")
    if record.sys_flag & INNER_BATCH and number.isdecimal():
        return int(number)
    return 1
