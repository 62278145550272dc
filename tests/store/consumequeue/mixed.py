"""A store with queues of all kinds."""

from __future__ import annotations

from rocketbroker.records.properties import INNER_MULTI_QUEUE_OFFSET
from rocketbroker.records.record import decode_all
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.lmq import ON
from tests.store.stores import Wall, placed, unwrapped, with_batches


def start(disk: MemoryDisk, wall: Wall) -> Store:
    """A store with queues of all kinds, in files of a few units."""
    return with_batches(
        disk,
        wall,
        enable_consume_queue_ext=True,
        mapped_file_size_consume_queue_ext=1000,
        **ON,
    )


def contents(store: Store) -> list[tuple[IQueue, dict[int, bytes]]]:
    """The queues, and what each of them has, by offset."""
    queue, light = store.queue("T", 0), store.queue("%LMQ%a", 0)
    batches = store.queue("B", 0)
    lmqs = {}
    offset = light.min_offset
    while offset < light.max_offset:
        result = store.read(light, offset, 32, 1 << 20, None)
        for message in decode_all(b"".join(result.records)):
            place = int(message.properties[INNER_MULTI_QUEUE_OFFSET])
            lmqs[place] = message.body
        offset = result.next_offset
    return [
        (queue, placed(store, queue)),
        (batches, dict(unwrapped(store, batches))),
        (light, lmqs),
    ]
