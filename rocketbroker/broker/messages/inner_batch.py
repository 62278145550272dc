# -*- test-case-name: tests.broker.messages.test_inner_batch -*-
"""Drafts of inner batches.

An inner batch is a batch that is stored as one record; consumers take it apart. The
store completes its properties with its offset. Topics with batch queues take inner
batches besides ordinary messages.

C{docs/facts/store.md} 4.5; C{docs/facts/broker.md} 10.1.
"""

from __future__ import annotations

from rocketbroker.errors import MessageIllegal
from rocketbroker.records import properties
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.queueunits import MAX_MESSAGES
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.store.interfaces import Draft, IQueue, Placed
from rocketbroker.wire.hot import SendFields


def inner_batch(
    connection: IConnection,
    fields: SendFields,
    own: dict[str, str],
    body: bytes,
    count: int,
    queue: IQueue,
) -> Draft:
    """The draft of an inner batch.

    @param own: the properties of the batch as they are to be stored, but for what says
        how many messages it has and where they stand.
    @param count: how many messages it has.
    @raise MessageIllegal: they are too many.
    """
    if count > MAX_MESSAGES:
        raise MessageIllegal(f"{count} messages in a batch, at most {MAX_MESSAGES}")
    own["INNER_NUM"] = str(count)
    return _draft(connection, fields, own, body, queue, count)


def _draft(
    connection: IConnection,
    fields: SendFields,
    own: dict[str, str],
    body: bytes,
    queue: IQueue,
    count: int,
) -> Draft:
    return Draft(
        queue,
        body,
        b"",
        fields.h,
        fields.f,
        fields.g,
        connection.peer_host,
        fields.j,
        tag_code(own.get("TAGS", "")),
        None,
        Placed(properties.encode(own), count),
        wait=own.get("WAIT", "true").lower() == "true",
    )
