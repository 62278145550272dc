"""Messages of a slave that belong elsewhere."""

from __future__ import annotations

from rocketbroker.records.properties import encode
from rocketbroker.records.record import StoredMessage
from tests.broker.rig import HOST


def stored(sys_flag: int = 0, topic: str = "T", **properties: str) -> StoredMessage:
    """A message of the log that belongs to queue 3 of a topic."""
    own = {**properties, "REAL_TOPIC": topic, "REAL_QID": "3", "WAIT": "true"}
    return StoredMessage(
        "X", 0, 7, 4096, 100, b"b", 0, 5, sys_flag, 1, HOST, 2, HOST, 6, 0, encode(own)
    )
