"""What becomes of the directory of a store between two starts."""

from __future__ import annotations

import contextlib
import errno
import json

from rocketbroker.errors import StoreError
from rocketbroker.store.recovery.clean_shutdown import NAME
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, opened


def forget_ends(disk: MemoryDisk) -> None:
    """Somebody else has stopped the store cleanly, as a broker of RocketMQ's: nothing
    says where its queues ended."""
    disk.remove(f"{ROOT}/{NAME}")


def change_topics(disk: MemoryDisk, changes: int) -> None:
    """The table of topics has a version.

    @param changes: how often a topic was made, changed or deleted.
    """
    disk.make_dirs(f"{ROOT}/config")
    version = {"timestamp": 1_700_000_000_000, "counter": changes}
    file = disk.open(f"{ROOT}/config/topics.json", create=True)
    file.truncate(0)
    file.pwrite(json.dumps({"dataVersion": version}).encode(), 0)


def lose_folder(disk: MemoryDisk, folder: str) -> None:
    """A directory of files is gone."""
    for name in disk.list(folder):
        disk.remove(f"{folder}/{name}")
    disk.remove_dir(folder)


def die_at_start(disk: MemoryDisk, call: str, after: int) -> None:
    """A start is killed, the disk having refused a call.

    @param after: how many such calls it has done before.
    """
    disk.fail(call, errno.EIO, after)
    with contextlib.suppress(StoreError):
        opened(disk)
    disk.heal()
    disk.crash(keep_all=True)
