"""Messages with keys, and the index that Java's brokers make of them."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.hashing import index_hash
from rocketbroker.store.index.file import create
from rocketbroker.store.index.keys import Keys, keys_of
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import BORN_HOST, ROOT, START_MS

#: One message: where it is, its properties, its tags.
Tagged = tuple[int, bytes, str]


def java_index(
    disk: MemoryDisk, slots: int, numbers: int, messages: Iterable[Tagged]
) -> str:
    """Make the index of messages of topic T as Java's broker does from 5.4 on, with an
    entry for the tags of each behind those of its keys; the path of its file."""
    rows = [
        (index_hash("T", key), position)
        for position, properties, tags in messages
        for key in (*keys_of(properties), f"T#{tags}")
    ]
    codes, positions = zip(*rows, strict=True)
    times = array("q", [START_MS]) * len(rows)
    path = f"{ROOT}/index/20261128111736359"
    disk.make_dirs(f"{ROOT}/index")
    file = create(OpenFiles(disk), path, slots, numbers, None)
    file.add(Keys(codes, array("q", positions), times, (START_MS, START_MS)))
    file.flush()
    file.close()
    return path


def message(
    store: Store, key: str, unique: str = "", topic: str = "T", tags: str = ""
) -> Draft:
    """A draft with keys."""
    text = f"UNIQ_KEY\x01{unique}\x02" if unique else ""
    text += f"TAGS\x01{tags}\x02" if tags else ""
    properties = f"{text}KEYS\x01{key}\x02".encode()
    queue = store.queue(topic, 0)
    return Draft(queue, b"body", properties, 0, 0, 0, BORN_HOST, 0, 0, None)
