# -*- test-case-name: tests.store.test_topictable -*-
"""Which topics the broker of a store knows: its C{config/topics.json}.

A topic that is not there was deleted; its records stay in the log, and are of no use to
anybody. Of two RocketMQ's broker never removes the queues: they count whatever stands
there, as 4.9 leaves the one out where it notes which transactions have ended. (It
removes that of half messages whenever a topic is deleted, unless it stands there.)

The store sheet, section 16.
"""

from __future__ import annotations

import json
import os
from typing import Final

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
    try:
        content = JsonFile(files, os.path.join(root, "config", "topics.json")).load(
            _names
        )
        return _names(content) | KEPT if content else None
    except (OSError, ValueError, StoreError):
        return None


def _names(content: bytes) -> frozenset[str]:
    """The topics of a table."""
    try:
        return frozenset(map(str, json.loads(content)["topicConfigTable"]))
    except (TypeError, KeyError, RecursionError):
        raise ValueError("it is no table of topics") from None
