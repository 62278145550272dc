# -*- test-case-name: tests.cli.store.test_pops -*-
"""The open check points of POP in a store's directory, for C{rocketbroker store}.

The files of C{config} are in RocketMQ's dialect of JSON, which the tools of a directory
do not know.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Final

from rocketbroker.broker.metadata.offset_files import (
    LIGHT_FILE,
    PLAIN_FILE,
    merged,
)
from rocketbroker.errors import RemoteProtocolError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.records.names import REVIVE_GROUP
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.inspect import Row
from rocketbroker.storetools.pending_timers import PendingTimers
from rocketbroker.storetools.popped import StoredCheckPoints
from rocketbroker.storetools.verify.report import Remark
from rocketbroker.wire import fastjson
from rocketbroker.wire.bodies.consumer_order_info import read_table

ORDERS: Final = "consumerOrderInfo.json"


def _config(files: IFiles, root: str, name: str) -> object:
    """The content of a file of C{config}; an empty object if there is none that can be
    read, which a check says elsewhere."""
    path = os.path.join(root, "config", name)
    with contextlib.suppress(OSError, ValueError, RemoteProtocolError):
        if files.exists(path):
            return fastjson.loads(files.read(path).decode())
    return {}


def committed(files: IFiles, root: str) -> dict[tuple[str, int], int]:
    """How far each queue of a revive topic is worked off."""
    tables = (_config(files, root, name) for name in (PLAIN_FILE, LIGHT_FILE))
    plain, light = (table if isinstance(table, dict) else {} for table in tables)
    found: dict[tuple[str, int], int] = {}
    for key, queues in merged(plain, light, 0).offsets.items():
        topic, _, group = key.partition("@")
        if group == REVIVE_GROUP:
            for queue, offset in queues.items():
                found[topic, queue] = offset
    return found


def popped(reader: StoreReader, timers: PendingTimers) -> StoredCheckPoints:
    """The open check points of a directory."""
    return StoredCheckPoints(reader, timers, committed(reader.files, reader.root))


def order_rows(reader: StoreReader) -> Iterator[Row]:
    """A row for each queue of which a group that pops in order has messages."""
    given, _ = read_table(_config(reader.files, reader.root, ORDERS))
    for (group, topic, queue), each in sorted(given.items()):
        if each.left():
            yield {
                "group": group,
                "popped_topic": topic,
                "queue": queue,
                "in_flight": each.left(),
                "popped_ms": each.pop_ms,
                "due_ms": each.free_ms(),
            }


def order_remarks(reader: StoreReader) -> Iterator[Remark]:
    """Records of these that make no sense: the queues are given out anew."""
    path = os.path.join(reader.root, "config", ORDERS)
    for text in read_table(_config(reader.files, reader.root, ORDERS))[1]:
        yield Remark(path, 0, text)
