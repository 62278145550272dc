# -*- test-case-name: tests.broker.messages.test_transaction_messages -*-
"""The messages of a transaction: half, final, copies, op messages, and the check.

A prepared message is stored in the half topic; its real topic and queue are among its
properties. A commit stores the final message in the real topic. Every end is marked by
a message of the op topic whose body is the offset of the half message (a I{mark}). A
half message that is checked back is first stored anew, at the end of the half queue,
and the old one is marked.

Differences from RocketMQ on disk, on purpose:

  - A mark holds one offset and no comma. Readers of 5.x and of 4.9 understand that; of
    C{12,13,} or C{12,} those of 4.9 understand nothing, and check again.
  - Where other records have the position of their half message, and RocketMQ's marks
    have 0, a mark has the position of the message that replaces its half message.
  - Every copy has in C{TRAN_PREPARED_QUEUE_OFFSET} the offset of the first half message
    (its I{root}), so that a late end of the first is known to be the end of the last.
  - Copies keep the producer's flag and the reconsume times.

C{docs/facts/transaction-timer-pop.md} A2 to A7, traps 1, 2 and 8.
"""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final, TypeAlias

from rocketbroker.broker.messages.delay_messages import (
    DelayMessages,
    destination,
)
from rocketbroker.errors import BrokerError
from rocketbroker.records import record
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.ids import offset_id
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import (
    CHECK_MAX_TIME_TOPIC,
    HALF_TOPIC,
    OP_HALF_TOPIC,
)
from rocketbroker.records.properties import (
    CRC32,
    PREPARED_QUEUE_OFFSET,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TRANSACTION_CHECK_TIMES,
    TRANSACTION_ID,
    TRANSACTION_PREPARED,
    UNIQUE_KEY,
    WAIT,
    encode,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.records.sysflags import (
    HOST_MASK,
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    with_transaction_type,
)
from rocketbroker.store.interfaces import Draft, IQueue, IStore
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from rocketbroker.wire.headers.send import CheckTransactionStateRequestHeader

#: The tag and the properties of a mark, as RocketMQ stores them.
MARK_TAG: Final = "d"
_MARK_PROPERTIES: Final = encode({TAGS: MARK_TAG, WAIT: "true"})
_MARK_CODE: Final = tag_code(MARK_TAG)

#: So many of those that were discarded are looked through for one, in some tenths of a
#: second of a thread.
MAX_DISCARDED: Final = 10_000

#: A half that is over: its offset in the half queue, and the position of what has come
#: in its place: final message, copy, what was discarded; 0: nothing, or that is safe.
Over: TypeAlias = tuple[int, int]

#: A number of the half queue; what Java's parseLong takes of it.
_OFFSET: Final = re.compile(r"\+?[0-9]{1,19}\Z")


def prepare(own: dict[str, str], topic: str, queue_id: int) -> None:
    """Turn a message's properties into those that it has while it is a half one.

    What checks note in it is not for clients: one that sends again what it has received
    would name the half of another transaction.

    @param own: changed in place; it has a unique key.
    """
    own.pop(PREPARED_QUEUE_OFFSET, None)
    own.pop(TRANSACTION_CHECK_TIMES, None)
    own[TRANSACTION_ID] = own[UNIQUE_KEY]
    own[REAL_TOPIC] = topic
    own[REAL_QUEUE_ID] = str(queue_id)


def half_at(
    store: IStore, position: int, topics: Container[str] = (HALF_TOPIC,)
) -> StoredMessage | None:
    """I{Blocking if cold.} The half message at a physical offset.

    @param topics: where it may lie.
    @return: None if there is none, or one that does not say where it belongs.
    """
    data = store.record_at(position)
    if data is None:
        return None
    try:
        message = record.decode(data)
    except Malformed:
        return None
    if message.topic not in topics or destination(message) is None:
        return None
    return message


def root_of(half: StoredMessage) -> int:
    """The offset of the half that this one is a copy of; its own if it is none."""
    offset = half.queue_offset
    root = parsed_offset(half.properties.get(PREPARED_QUEUE_OFFSET, ""))
    return offset if root is None or root > offset else root


def parsed_offset(text: str) -> int | None:
    """An offset that stands in a text."""
    return int(text) if _OFFSET.match(text) else None


def final_message(
    half: StoredMessage, store: IStore, delay_messages: DelayMessages, context: object
) -> Draft:
    """The draft by which a half message gets to where it belongs.

    Its properties stay what they are, TRAN_MSG and all; clients know them so. One for
    later waits first, and then has no TRAN_MSG any more.

    @raise BrokerError: no room for its queue, or it cannot wait as it wants to.
    """
    place = destination(half)
    assert place is not None
    topic, queue_id = place
    own = dict(half.properties)
    content = half.property_bytes
    waits = delay_messages.place(own, topic, queue_id)
    if waits is not None:
        own.pop(TRANSACTION_PREPARED, None)
        topic, queue_id = waits
    if waits is not None or CRC32 in own:
        own.pop(CRC32, None)
        content = encode(own)
    draft = _like(half, store.queue(topic, queue_id), content, context)
    draft.sys_flag = with_transaction_type(draft.sys_flag, TRANSACTION_COMMIT)
    draft.prepared_offset = half.position
    draft.wait = own.get(WAIT, "true").lower() == "true"
    return draft


def renewed(half: StoredMessage, queue: IQueue, checks: int | None) -> Draft:
    """A copy for the end of the half queue; its context is the half.

    @param checks: how often its producer has been asked; None: as it says.
    """
    own = dict(half.properties)
    own.pop(CRC32, None)
    own[PREPARED_QUEUE_OFFSET] = str(root_of(half))
    if checks is not None:
        own[TRANSACTION_CHECK_TIMES] = str(checks)
    return _like(half, queue, encode(own), half)


def discarded(half: StoredMessage, store: IStore) -> Draft:
    """A copy for TRANS_CHECK_MAX_TIME_TOPIC; its context is the half.

    @raise ServiceNotAvailable: no room for its queue.
    """
    own = dict(half.properties)
    own.pop(CRC32, None)
    return _like(half, store.queue(CHECK_MAX_TIME_TOPIC, 0), encode(own), half)


def resumed(gone: StoredMessage, queue: IQueue) -> Draft:
    """A copy of one that was discarded, for the end of the half queue, as if its
    producer had not been asked yet; its context is what was discarded."""
    own = dict(gone.properties)
    own.pop(CRC32, None)
    own[TRANSACTION_CHECK_TIMES] = "0"
    return _like(gone, queue, encode(own), gone)


def was_discarded(store: IStore, half: StoredMessage) -> bool:
    """I{Blocking.} Whether a half message is in the topic of what nobody knows anything
    of; or may be, if what is there cannot be read, or is too much (L{MAX_DISCARDED}).
    """
    try:
        queue = store.queue(CHECK_MAX_TIME_TOPIC, 0)
        offset, end = (
            store.offset_by_time(queue, half.store_ms, False),
            queue.max_offset,
        )
        if end - offset > MAX_DISCARDED:
            return True
        while offset < end:
            entries = store.entries(queue, offset, end - offset)
            if not entries or any(_may_be(store, at, half) for at, _, _ in entries):
                return True
            offset += len(entries)
    except (OSError, BrokerError):
        return True
    return False


def _may_be(store: IStore, position: int, half: StoredMessage) -> bool:
    """Whether the record that starts there is a copy of a half, or cannot be read."""
    data = store.record_at(position)
    if data is None:
        return True
    try:
        found = record.decode(data)
    except Malformed:
        return True
    return found.unique_key == half.unique_key and found.born_ms == half.born_ms


def _like(half: StoredMessage, queue: IQueue, content: bytes, context: object) -> Draft:
    sys_flag = with_transaction_type(half.sys_flag & ~HOST_MASK, TRANSACTION_NONE)
    return Draft(
        queue,
        half.body,
        content,
        half.flag,
        sys_flag,
        half.born_ms,
        half.born_host,
        half.reconsume_times,
        tag_code(half.properties.get(TAGS, "")),
        context,
    )


def mark_of(over: Over, queue: IQueue, host: bytes, now_ms: int) -> Draft:
    """The mark that a half is over; its context is C{over}.

    @param queue: of the op topic.
    @param host: this broker's.
    """
    offset, position = over
    draft = Draft(
        queue, b"%d" % offset, _MARK_PROPERTIES, 0, 0, now_ms, host, 0, _MARK_CODE, over
    )
    draft.prepared_offset = position
    return draft


def mark_at(store: IStore, position: int) -> tuple[list[int], int]:
    """I{Blocking if cold.} The mark at a physical offset.

    @return: the offsets of halves that it marks, none if it is no mark; and the
        position of what has come in their place, 0 if the mark does not say.
    """
    data = store.record_at(position)
    if data is None:
        return [], 0
    try:
        message = record.decode(data)
    except Malformed:
        return [], 0
    if message.topic != OP_HALF_TOPIC or message.tags != MARK_TAG:
        return [], 0
    return offsets_in(message.body), message.prepared_offset


def is_lost(store: IStore, position: int) -> bool:
    """I{Blocking if cold.} Whether what came in the place of a half is not there,
    though nobody has removed it.

    A record whose end was not written is lost too. No CRC covers its properties, so it
    can be read; but zeros are in them, and no record follows it
    (L{rocketbroker.store.recovery.log_scan}). One that only looks so costs a question.

    @param position: as a mark says it, which is a later record.
    """
    if position < max(1, store.min_position):
        return False
    data = store.record_at(position)
    if data is None:
        return True
    try:
        properties = record.decode(data).property_bytes
    except Malformed:
        return False
    return b"\0" in properties and store.record_at(position + len(data)) is None


def offsets_in(body: bytes) -> list[int]:
    """The offsets in the body of a mark: one number, or numbers with commas behind."""
    parts = body.decode("ascii", "replace").split(",")
    found = [parsed_offset(part) for part in parts]
    return [offset for offset in found if offset is not None]


def question(
    half: StoredMessage, copy: Draft, store_host: bytes, broker_name: str
) -> Command:
    """The request that asks a producer what became of its transaction (39).

    @param half: what was stored anew.
    @param copy: the copy, stored: it is what the answer has to name.
    """
    place = destination(half)
    assert place is not None
    topic, queue_id = place
    unique = half.properties.get(UNIQUE_KEY)
    header = CheckTransactionStateRequestHeader(
        topic=HALF_TOPIC,
        tran_state_table_offset=copy.queue_offset,
        commit_log_offset=copy.position,
        msg_id=unique,
        transaction_id=unique,
        offset_msg_id=offset_id(store_host, copy.position),
        bname=broker_name,
    )
    body = record.encode(
        topic.encode(),
        copy.body,
        copy.properties,
        queue_id,
        copy.queue_offset,
        copy.position,
        copy.born_ms,
        copy.born_host,
        half.store_ms,
        store_host,
        copy.flag,
        copy.sys_flag,
        copy.reconsume_times,
        half.prepared_offset,
    )
    code = RequestCode.CHECK_TRANSACTION_STATE
    return Command(code, header.to_ext(), body, flag=ONEWAY)
