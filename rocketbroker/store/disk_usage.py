# -*- test-case-name: tests.store.test_disk_usage -*-
"""The usage of a store's disks, and the levels at which files go or appends stop.

Three levels, in percent of a disk that are used, rounded up: above
diskMaxUsedSpaceRatio (75) files that have expired go at any hour; above
diskSpaceCleanForciblyRatio (85) the oldest go whether they have expired or not; above
diskSpaceWarningLevelRatio (90) the store is full as well: nothing is appended until the
second level is reached again.

A ratio says little of a large disk: 10 % of 4 TiB hold a day of messages. So the two
upper levels count only while less than diskSpaceEnoughBytes are free. That is 10 GiB, a
minute of the fastest load, and at least four segments, so that those that are made
ahead have room. A disk smaller than 100 GiB never has that much free at 90 %, so there
the ratios alone decide, as in RocketMQ; with 0 they do everywhere.

Where replicasPerDiskPartition brokers share a disk, each has its part of it: expired
files go when its own fill the first level of that, the oldest in any case when they
fill logicalDiskSpaceCleanForciblyThreshold (0.8) of it.

The disk of the log is as full as the emptiest one of its directories. One that does not
answer, as its disk is gone, counts only if none does; no new segment goes there while
there is another.

C{docs/facts/store.md} 17.1.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from typing import Final, final

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.open_files import EXHAUSTED
from rocketbroker.store.running_flags import DISK_FULL, RunningFlags

#: A disk with room for so many segments is not full.
ENOUGH_SEGMENTS: Final = 4

#: The errors of a disk, or a quota, without room.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

_BY: Final = "disk"


def readable_size(count: int) -> str:
    """A number of bytes, with a unit.

    >>> readable_size(1536)
    '1.5 KiB'
    """
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.1f} {unit}" if unit != "bytes" else f"{count} bytes"
        size /= 1024
    return f"{size:.1f} TiB"


def describe_refusal(files: IFiles, folder: str, text: str, error: OSError) -> str:
    """A sentence about an error of a disk, with how much of it is free, unless it is
    not the disk that refuses: there may be too many open files.

    @param text: the action that failed, C{{}} for the directory.
    """
    sentence = f"{text.format(folder)}: {error.strerror}"
    if error.errno in EXHAUSTED:
        return sentence
    try:
        total, usable = files.usage(folder)
    except OSError:
        return sentence
    return f"{sentence}; {readable_size(usable)} of {readable_size(total)} are free"


def describe_need(files: IFiles, folder: str, size: int) -> str:
    """What follows a sentence about a log that found no room when it was to begin: a
    blank, how much it needs, and what to do; nothing if the disk has as much.

    @param folder: the log's.
    @param size: how much it needs.
    """
    folder = os.path.abspath(folder)
    while not files.exists(folder):
        folder = os.path.dirname(folder)
    try:
        usable = files.usage(folder)[1]
    except OSError:
        return ""
    if usable >= size:
        return ""
    return (
        f" The log begins with {readable_size(size)}, and the disk of {folder} has "
        f"{readable_size(usable)} free. Make room, or set a smaller "
        "mappedFileSizeCommitLog: 1048576 is enough to try things."
    )


@final
class DiskRoom:
    """The room on the disk of a directory, as last measured.

    @ivar total: bytes of the disk, 0 if it could not be measured.
    @ivar usable: bytes that are free.
    """

    __slots__ = ("path", "total", "usable")

    def __init__(self, path: str) -> None:
        self.path = path
        self.total = 0
        self.usable = 0

    def measure(self, files: IFiles) -> None:
        """Measure it."""
        try:
            self.total, self.usable = files.usage(self.path)
        except OSError:
            self.total = self.usable = 0

    @property
    def ratio(self) -> float:
        """How much is used, 0 to 1; -1.0 if that is not known."""
        return (self.total - self.usable) / self.total if self.total > 0 else -1.0

    @property
    def percent(self) -> int:
        """How much is used, rounded up; -1 if that is not known."""
        if self.total <= 0:
            return -1
        return -(-100 * (self.total - self.usable) // self.total)

    def __str__(self) -> str:
        return (
            f"{self.path}: {self.percent} % of {readable_size(self.total)} are used, "
            f"{readable_size(self.usable)} are free"
        )


@final
class DiskUsage:
    """The disks of one store.

    @ivar logs: of each directory that segments are written to.
    @ivar queues: of the consume queues.
    @ivar index: of the index; nothing is decided by it, as it is made again.
    @ivar expire: whether expired files are to go at any hour.
    @ivar force: whether the oldest files are to go in any case.
    @ivar enough: with so many bytes free a disk is not full.
    """

    def __init__(
        self,
        files: IFiles,
        options: StoreOptions,
        log_folders: Sequence[str],
        queue_folder: str,
        index_folder: str,
        flags: RunningFlags,
        own_bytes: Callable[[], int],
    ) -> None:
        """
        @param own_bytes: the bytes of this store's own files.
        """
        self.logs = [DiskRoom(folder) for folder in log_folders]
        self.queues = DiskRoom(queue_folder)
        self.index = DiskRoom(index_folder)
        self.expire = False
        self.force = False
        self._files = files
        self._flags = flags
        self._own_bytes = own_bytes
        self.configure(options)

    def configure(self, options: StoreOptions) -> None:
        """Obey these settings from now on."""
        self.enough = 0
        if options.disk_space_enough_bytes > 0:
            self.enough = max(
                options.disk_space_enough_bytes,
                ENOUGH_SEGMENTS * options.mapped_file_size_commit_log,
            )
        self._full_at = min(max(options.disk_space_warning_level_ratio, 35), 90)
        self._force_at = min(max(options.disk_space_clean_forcibly_ratio, 30), 85)
        self._brokers = options.replicas_per_disk_partition
        self._share_force_at = options.logical_disk_space_clean_forcibly_threshold
        self._expire_at = min(max(options.disk_max_used_space_ratio, 10), 95)

    def measure(self) -> None:
        """I{Blocking.} Measure the disks, and set or clear L{DISK_FULL}."""
        for room in self.logs:
            room.measure(self._files)
        self.queues.measure(self._files)
        self.index.measure(self._files)
        log = self.log
        rooms = (log, self.queues)
        full = [room for room in rooms if self._is_over(room, self._full_at)]
        force = any(self._is_over(room, self._force_at) for room in rooms)
        if full:
            reason = f"the disk is full: {full[0]}; the most is {self._full_at} %"
            self._flags.set(DISK_FULL, True, reason, _BY)
        elif not force:
            self._flags.set(DISK_FULL, False, by=_BY)
        if self._brokers > 1:
            # Our own bytes, as a part of our share of a disk that brokers share.
            share = log.total / self._brokers
            used = self._own_bytes() / share if share > 0 else 0.0
            self.force = force or used > self._share_force_at
            self.expire = used * 100 > self._expire_at
            return
        self.force = force
        self.expire = any(
            room.percent < 0 or room.percent > self._expire_at for room in rooms
        )

    def _is_over(self, room: DiskRoom, level: int) -> bool:
        return room.percent > level and (self.enough == 0 or room.usable < self.enough)

    @property
    def log(self) -> DiskRoom:
        """The room on the emptiest disk of the log, of those that are known."""
        known = [room for room in self.logs if room.total > 0]
        return min(known or self.logs, key=lambda room: room.percent)

    def full_folders(self) -> frozenset[str]:
        """Those of the log's directories that no new segment should go to."""
        return frozenset(
            room.path
            for room in self.logs
            if room.total <= 0 or self._is_over(room, self._force_at)
        )
