"""Messages with keys."""

from __future__ import annotations

from rocketbroker.store.interfaces import Draft
from rocketbroker.store.message_store import Store
from tests.store.stores import BORN_HOST


def message(store: Store, key: str, unique: str = "", topic: str = "T") -> Draft:
    """A draft with keys."""
    text = f"UNIQ_KEY\x01{unique}\x02" if unique else ""
    properties = f"{text}KEYS\x01{key}\x02".encode()
    queue = store.queue(topic, 0)
    return Draft(queue, b"body", properties, 0, 0, 0, BORN_HOST, 0, 0, None)
