"""An archive of files of 0.1.0, and where its parts are laid for a test."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Final

from rocketbroker.testing.files import MemoryDisk

ARCHIVE: Final = Path(__file__).with_name("files.tar.xz")

#: The sizes of the store's files, as RocketMQ's settings.
SIZES: Final = {
    "mappedFileSizeCommitLog": "65536",
    "mappedFileSizeConsumeQueue": "2000",
    "mapperFileSizeBatchConsumeQueue": "4600",
    "mappedFileSizeTimerLog": "5200",
    "maxHashSlotNum": "100",
    "maxIndexNum": "1000",
}

#: A time after the store was stopped, and before anything of it is due.
WALL_MS: Final = 1795893440000

#: How long a message, a timer and what was popped wait in it.
HOUR: Final = 3600.0

BLOCK: Final = 4096


def body_of(number: int) -> bytes:
    """The body of a message of topic C{Orders}; some are compressed."""
    return b"%d," % number * (2000 if number % 20 == 7 else 1)


def unpack(folder: str) -> Path:
    """Lay all of it into a new directory; its path."""
    path = Path(os.path.abspath(folder))
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(path, filter="data")
    return path


def disk_with_store() -> MemoryDisk:
    """A disk in memory that has the store in C{/store}."""
    disk = MemoryDisk()
    disk.now_ms = WALL_MS
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            if not member.name.startswith("store"):
                continue
            path = f"/{member.name}"
            content = archive.extractfile(member)
            if content is None:
                disk.make_dirs(path)
                continue
            file = disk.open(path, create=True)
            file.allocate(0, member.size)
            for position in range(0, member.size, BLOCK):
                if (block := content.read(BLOCK)).strip(b"\0"):
                    file.pwrite(block, position)
            file.datasync()
            file.close()
            disk.sync_dir(os.path.dirname(path))
    return disk
