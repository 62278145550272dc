# -*- test-case-name: tests.arrow.test_unwrapping -*-
"""Records that hold several messages, as a record for each message.

Topics with batch queues (C{queue.type=BatchCQ}) have them. A message of a batch has its
own queue offset, body, flag and properties, and all else of the batch, as in a client
(L{rocketbroker.records.batches.unwrap}). They are taken apart one by one: there is no
column of a batch that an array could be laid over.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.arrow.layout import Layout, lay_out
from rocketbroker.records import batches, record, sysflags
from rocketbroker.records.record import StoredMessage

#: A consumer has to take these records apart.
BATCH: Final = sysflags.NEED_UNWRAP | sysflags.INNER_BATCH


def unwrapped(layout: Layout) -> Layout:
    """The messages of all records, in their order.

    A batch that comes twice, one behind the other, counts once: a pull gives whole
    batches, whichever of their messages it asked for.

    @raise Malformed: a body is no batch.
    """
    inner = (layout.front["sys_flag"] & BATCH) == BATCH
    if not inner.any():
        return layout
    data = layout.data.tobytes()
    found: list[bytes] = []
    last = -1
    for start, size, position, is_batch in zip(
        layout.starts.tolist(),
        layout.front["size"].tolist(),
        layout.front["position"].tolist(),
        inner.tolist(),
        strict=True,
    ):
        if position == last:
            continue
        last = position
        if is_batch:
            found += map(encoded, batches.unwrap(record.decode(data, start)))
        else:
            found.append(data[start : start + size])
    return lay_out(b"".join(found))


def encoded(message: StoredMessage) -> bytes:
    """A message of a batch as a record of its own."""
    return record.encode(
        topic=message.topic.encode("utf-8"),
        body=message.body,
        properties=message.property_bytes,
        queue_id=message.queue_id,
        queue_offset=message.queue_offset,
        position=message.position,
        born_ms=message.born_ms,
        born_host=message.born_host,
        store_ms=message.store_ms,
        store_host=message.store_host,
        flag=message.flag,
        sys_flag=message.sys_flag,
        reconsume_times=message.reconsume_times,
        prepared_offset=message.prepared_offset,
    )
