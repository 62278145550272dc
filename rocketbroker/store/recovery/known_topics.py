# -*- test-case-name: tests.store.recovery.test_known_topics -*-
"""The version of the table of topics: the C{config/topics.json} of a store.

Each change of a topic moves it on, in RocketMQ's broker and in ours. Where it is the
same as before, no topic was deleted meanwhile, or made again.

C{docs/facts/store.md} 21.
"""

from __future__ import annotations

import json
import os

from rocketbroker.errors import StoreError
from rocketbroker.files.interfaces import IFiles
from rocketbroker.files.jsonfile import JsonFile


def topics_version(files: IFiles, root: str) -> list[int] | None:
    """The time of the table's last change, in ms, and the number of its changes; None
    if they cannot be read.

    @param root: the directory of the store.
    """
    path = os.path.join(root, "config", "topics.json")
    try:
        content = JsonFile(files, path).load(_version)
        return _version(content) if content else None
    except (OSError, ValueError, StoreError):
        return None


def _version(content: bytes) -> list[int]:
    """The version that a table has."""
    try:
        version = json.loads(content)["dataVersion"]
        return [int(version["timestamp"]), int(version["counter"])]
    except (TypeError, KeyError, OverflowError, RecursionError):
        raise ValueError("it is no table of topics") from None
