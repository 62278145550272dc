# -*- test-case-name: tests.store.reader.test_takeover -*-
"""Contents of a RocketMQ broker's directory that this broker does not serve yet.

Messages of these kinds stay in the store; nothing removes them. But until they are
served no client gets them, and the rules are not checked. So the start of a broker and
C{rocketbroker store verify} name them.

docs/facts/store.md 1; docs/facts/transaction-timer-pop.md B3 and C;
docs/facts/security-metrics.md; docs/facts/since-5.3.md 8-11.
"""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.reader.file_sequence import FileSequence
from rocketbroker.store.reader.unreadable import Unreadable

#: The topic of timer messages, which has one queue.
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"

#: Databases of ACL 2.0 in config.
ACL_FOLDERS: Final = ("users", "acls")

#: Where config/timercheck has the offset up to which timer messages are in the wheel.
_TIMER_OFFSET: Final = slice(16, 24)


def not_taken_over(
    files: IFiles,
    root: str,
    home: str = "",
    has_timers: bool = True,
    has_acl: bool = False,
) -> list[str]:
    """I{Blocking.} Sentences about what is not served.

    @param root: the directory of the store.
    @param home: ROCKETMQ_HOME, where rules of ACL 1.0 are; empty if it is not known.
    @param has_timers: timerWheelEnable.
    @param has_acl: aclEnable, or what takes its accounts over.
    """
    found: list[str] = []
    timers = iter(()) if has_timers else _timers(files, root)
    for part in (
        timers,
        _pop(files, root),
        _acl(files, root, "" if has_acl else home),
        _rocksdb(files, root),
        _message_types(files, root),
    ):
        # A directory that cannot be read is reported elsewhere.
        with contextlib.suppress(OSError, StoreError):
            found += part
    return found


def _timers(files: IFiles, root: str) -> Iterator[str]:
    """Messages that wait for their time in the timer wheel."""
    counts = _json(files, root, "timermetrics").get("timingCount")
    waiting = 0
    if isinstance(counts, dict):
        waiting = sum(
            int(each["count"])
            for each in counts.values()
            if isinstance(each, dict) and isinstance(each.get("count"), int)
        )
    check = os.path.join(root, "config", "timercheck")
    taken = 0
    if files.exists(check):
        taken = int.from_bytes(_read(files, check)[_TIMER_OFFSET], "big", signed=True)
    behind = _end_of(files, root, TIMER_TOPIC, 0) - max(taken, 0)
    if waiting > 0 or behind > 0:
        yield (
            f"{max(waiting, 0) + max(behind, 0)} timer messages wait for their time "
            f"(topic {TIMER_TOPIC}); timerWheelEnable is false, so they are not "
            "delivered."
        )


def _pop(files: IFiles, root: str) -> Iterator[str]:
    """Messages that were popped and not acknowledged, by RocketMQ's key-value store."""
    if files.list(os.path.join(root, "kvStore")):
        yield (
            f"{os.path.join(root, 'kvStore')} has records of POP that are not read, so "
            "messages that were popped and not acknowledged do not come again. "
            "RocketMQ's broker moves them into its log (mqadmin exportPopRecord)."
        )


def _acl(files: IFiles, root: str, home: str) -> Iterator[str]:
    """Rules of ACL 1.0 that do not count, and of 2.0 in RocksDB."""
    if home:
        path = os.path.join(home, "conf", "plain_acl.yml")
        if files.exists(path) and not files.is_dir(path) and files.size(path):
            yield f"{path} has rules of ACL 1.0; aclEnable is false: nobody is refused."
        folder = os.path.join(home, "conf", "acl")
        if files.list(folder):
            yield (
                f"{folder} has rules of ACL 1.0; aclEnable is false: nobody is refused."
            )
    for name in ACL_FOLDERS:
        folder = os.path.join(root, "config", name)
        if files.list(folder):
            yield (
                f"{folder} has {name} of ACL 2.0 in RocksDB, which are not taken over: "
                "make them here (mqadmin copyUser, copyAcl)."
            )


def _rocksdb(files: IFiles, root: str) -> Iterator[str]:
    """What RocketMQ keeps in RocksDB, if its settings say so.

    5.4 and later make C{rocksdbstore} at each start, with no data in it as a rule.
    """
    folder = os.path.join(root, "rocksdbstore")
    for name in files.list(folder):
        is_data = name.endswith(".sst") or (
            name.endswith(".log") and files.size(os.path.join(folder, name))
        )
        if is_data:
            yield (
                f"{folder} has data that are not read: nobody is asked about the open "
                "transactions in it (transRocksDBEnable), and messages whose timers "
                "are in it may never come, or come twice (timerRocksDBEnable). Let "
                "RocketMQ's broker finish them first."
            )
            break
    config = os.path.join(root, "config")
    for name in files.list(config):
        folder = os.path.join(config, name)
        if name not in ACL_FOLDERS and "CURRENT" in _names(files, folder):
            yield (
                f"{folder} has tables in RocksDB, which are not read: topics, groups "
                "and offsets in it are unknown. RocketMQ's broker keeps them in JSON "
                "files with storeType=default and configManagerVersion=v1."
            )


def _message_types(files: IFiles, root: str) -> Iterator[str]:
    """Topics of the kinds that 5.4 and 5.5 have brought."""
    content = _read(files, os.path.join(root, "config", "topics.json"))
    for kind, what in (
        (b"LITE", "clients of lite topics are refused"),
        (b"PRIORITY", "their messages are consumed without regard to priority"),
    ):
        count = len(re.findall(rb'"message\.type"\s*:\s*"%s"' % kind, content))
        if count:
            yield f"{count} topics have message.type={kind.decode()}: {what}."


def _names(files: IFiles, path: str) -> list[str]:
    """The files in a folder; none if it is no folder."""
    return files.list(path) if files.is_dir(path) else []


def _end_of(files: IFiles, root: str, topic: str, queue_id: int) -> int:
    """The offset behind the last entry of a queue; 0 if there is none."""
    folder = os.path.join(root, "consumequeue", topic, str(queue_id))
    row = FileSequence(files, folder, SIZE, Unreadable())

    def is_behind(number: int) -> bool:
        entry = row.read(number * SIZE, SIZE)
        return len(entry) < SIZE or ENTRY.unpack(entry)[1] <= 0

    first = row.start // SIZE
    offsets = range(first, row.end // SIZE)
    return first + bisect.bisect_left(offsets, True, key=is_behind)


def _json(files: IFiles, root: str, name: str) -> dict[str, Any]:
    """A file of C{config}; empty if it is not there or cannot be read."""
    path = os.path.join(root, "config", name)
    if not files.exists(path):
        return {}
    try:
        found = json.loads(_read(files, path))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _read(files: IFiles, path: str) -> bytes:
    """A small file; empty if the disk refuses."""
    try:
        return b"" if files.is_dir(path) else files.read(path)
    except (OSError, StoreError):
        return b""
