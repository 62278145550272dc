# -*- test-case-name: tests.broker.send.test_send -*-
"""The answers to batches that came the hot way: the ids of all messages.

C{docs/facts/broker.md} 10.5.
"""

from __future__ import annotations

from rocketbroker.broker.appends.send_answers import (
    QueueSends,
    RefuseDraft,
    stored_start,
)
from rocketbroker.codec.batches import ids_of
from rocketbroker.codec.build import COMPILED
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import PUT_OK, Draft
from rocketbroker.wire.hot import SEND_ANSWER, SEND_ANSWER_WITHOUT_ID, frame_of


def answer_batch(
    refuse_draft: RefuseDraft,
    host: bytes,
    connection: IConnection | None,
    opaque: int,
    unique: bytes | None,
    sends: QueueSends,
    draft: Draft,
    code: int,
) -> None:
    """Answer a batch, or say why it was not stored.

    @param refuse_draft: called if it was not stored.
    @param host: the store host, as ids begin with it.
    @param connection: None: a oneway send.
    @param unique: its id as JSON.
    """
    if draft.status != PUT_OK:
        refuse_draft(draft, connection, opaque)
        return
    positions = draft.positions
    sends.count(len(positions), draft.end - draft.position)
    if connection is None:
        return
    if COMPILED:
        ids = ids_of([*positions], host)
    else:
        # One format for all: a batch may have tens of thousands.
        before = positions[:-1]
        ids = b"".join([b"%016X,", host]) * len(before) % tuple(before)
    start = stored_start(sends.start, code) + ids
    place = positions[-1], draft.queue_offset
    if unique is None:
        header = SEND_ANSWER_WITHOUT_ID % (start, *place, opaque)
    else:
        header = SEND_ANSWER % (start, *place, unique, opaque)
    connection.send(frame_of(header))
