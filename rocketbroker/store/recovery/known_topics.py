# -*- test-case-name: tests.store.recovery.test_known_topics -*-
"""Which topics the broker of a store knows: its C{config/topics.json}.

A topic that is not there was deleted; its records stay in the log, and are of no use to
anybody. Of two RocketMQ's broker never removes the queues: they count whatever stands
there, as 4.9 leaves the one out where it notes which transactions have ended. (It
removes that of half messages whenever a topic is deleted, unless it stands there.)

The table has a version, which each change of a topic moves on. Where it is what it was,
no topic was deleted meanwhile, or made again.

The store sheet, section 16.
"""

from __future__ import annotations

import json
import os
from typing import Any, Final, cast

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.records.names import OP_HALF_TOPIC, SCHEDULE_TOPIC

#: Topics whose queues RocketMQ's broker never removes.
KEPT: Final = frozenset({SCHEDULE_TOPIC, OP_HALF_TOPIC})


def listed_topics(files: IFiles, root: str) -> frozenset[str] | None:
    """The names of the topics; None if that cannot be read.

    @param root: the directory of the store.
    """
    table = _table(files, root)
    return None if table is None else _names(table) | KEPT


def topics_version(files: IFiles, root: str) -> list[int] | None:
    """When the table last changed, in ms, and how often it has; None if that cannot be
    read.

    @param root: the directory of the store.
    """
    try:
        version = (_table(files, root) or {})["dataVersion"]
        return [int(version["timestamp"]), int(version["counter"])]
    except (ValueError, TypeError, KeyError, OverflowError):
        return None


def _table(files: IFiles, root: str) -> dict[str, Any] | None:
    """What is in the file; None if that cannot be read."""
    path = os.path.join(root, "config", "topics.json")
    try:
        content = JsonFile(files, path).load(_parsed)
        return _parsed(content) if content else None
    except (OSError, ValueError, StoreError):
        return None


def _parsed(content: bytes) -> dict[str, Any]:
    """A table of topics."""
    try:
        table = json.loads(content)
        _names(table)
    except (TypeError, KeyError, RecursionError):
        raise ValueError("it is no table of topics") from None
    return cast("dict[str, Any]", table)


def _names(table: dict[str, Any]) -> frozenset[str]:
    return frozenset(map(str, table["topicConfigTable"]))
