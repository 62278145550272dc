# -*- test-case-name: tests.admin.verbs.test_message -*-
"""Messages as they are shown, and requests that find them: 12, 33, and pulls.

See C{docs/facts/admin.md} 5 and C{docs/facts/client.md} 6.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Iterator
from typing import Final

from rocketbroker.admin.cluster import Broker, Cluster
from rocketbroker.admin.formats import Moment, Size
from rocketbroker.admin.statuses import NotThere
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import (
    PullOffsetMoved,
    QueryNotFound,
    RemoteProtocolError,
    SystemFailure,
)
from rocketbroker.records import hosts, ids
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.properties import RESERVED
from rocketbroker.records.record import StoredMessage
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.pull import QueryMessageRequestHeader

#: The field of request 12 that says that the key is a unique one.
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"

#: The end of all times.
FOREVER_MS: Final = (1 << 63) - 1


def by_key(
    cluster: Cluster,
    broker: Broker,
    topic: str,
    key: str,
    most: int,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    is_unique: bool = False,
) -> list[StoredMessage]:
    """The messages with a key on a broker; the newest if there are more.

    The index knows hashes of keys: the messages are looked at.

    @param is_unique: the key is the message id that a send returns.
    """
    header = QueryMessageRequestHeader(
        topic=topic,
        key=key,
        max_num=most,
        begin_timestamp=begin_ms,
        end_timestamp=end_ms,
    )
    extra = {UNIQUE_KEY_QUERY: "true" if is_unique else "false"}
    try:
        answer = cluster.ask(
            broker.address, RequestCode.QUERY_MESSAGE, header, extra=extra
        )
    except QueryNotFound:
        return []
    found = _decoded(answer.body)
    if is_unique:
        return [one for one in found if one.unique_key == key]
    return [one for one in found if key in one.keys]


def by_id(cluster: Cluster, message_id: str, topic: str | None) -> StoredMessage:
    """The message with an id: the unique key, or the offset id.

    @param topic: without it, only an offset id is found.
    @raise NotThere: there is none.
    """
    try:
        place = ids.parse_offset_id(message_id)
        address = hosts.text(place.host)
    except Malformed:
        raise NotThere(f"{message_id} is no message id: 32 or 56 hex digits.") from None
    known = {one.address for one in cluster.brokers()}
    if address in known:  # strangers are not asked
        with contextlib.suppress(SystemFailure, Malformed):
            return cluster.client.view(address, place.position).decompressed()
    if topic is None:
        raise NotThere(
            f"There is no message at {message_id}. If it is the id that a send "
            "returned, give --topic TOPIC, too."
        )
    asked = cluster.from_each(
        cluster.brokers_of(topic),
        lambda b: by_key(cluster, b, topic, message_id, 1, is_unique=True),
    )
    for _, some in asked:
        if some:
            return some[-1]
    raise NotThere(f"There is no message {message_id} in {topic}.")


def at_offset(cluster: Cluster, queue: MessageQueue, offset: int) -> StoredMessage:
    """The message at an offset of a queue.

    @raise NotThere: the queue does not reach there.
    """
    puller = Puller(cluster.client, max_messages=1)
    try:
        for chunk in puller.read(queue, offset, offset + 1):
            for message in _decoded(chunk.data):
                if message.queue_offset == offset:
                    return message
    except PullOffsetMoved as problem:
        raise NotThere(f"There is no such message: {problem}.") from None
    raise NotThere(f"There is no message {offset} in {queue}.")


def in_range(
    cluster: Cluster, queue: MessageQueue, begin_ms: int, end_ms: int
) -> Iterator[StoredMessage]:
    """The messages of a queue that were stored from one time to another, in order."""
    client = cluster.client
    start, until = client.min_offset(queue), client.max_offset(queue)
    if begin_ms > 0:
        start = max(start, client.offset_by_time(queue, begin_ms))
    for chunk in Puller(client, max_messages=64).read(queue, start, until):
        for message in _decoded(chunk.data):
            if message.store_ms > end_ms:
                return
            if message.store_ms >= begin_ms:
                yield message


def _decoded(data: bytes) -> list[StoredMessage]:
    try:
        return list(messages(data))
    except Malformed as problem:
        raise RemoteProtocolError(f"the broker sent no message: {problem}") from None


def body_text(message: StoredMessage) -> str | None:
    """The body as UTF-8; None if it is none."""
    try:
        return message.body.decode("utf-8")
    except UnicodeDecodeError:
        return None


def json_row(message: StoredMessage, broker: str | None = None) -> dict[str, object]:
    """A message with everything that may be wanted, for programs.

    C{message send --input jsonl} takes it again.

    @param broker: the name of the broker that has it.
    """
    text = body_text(message)
    row: dict[str, object] = {
        "topic": message.topic,
        "broker": broker,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "id": message.unique_key,
        "offset_id": message.offset_id,
        "tag": message.tags,
        "keys": message.keys,
        "born": Moment(message.born_ms),
        "born_host": hosts.text(message.born_host),
        "stored": Moment(message.store_ms),
        "store_host": hosts.text(message.store_host),
        "reconsumed": message.reconsume_times,
        "flag": message.flag,
        "size": Size(len(message.body)),
        "properties": user_properties(message),
        "system_properties": {
            name: value
            for name, value in sorted(message.properties.items())
            if name in RESERVED
        },
    }
    if text is None:
        row["body_base64"] = base64.b64encode(message.body).decode("ascii")
    else:
        row["body"] = text
    return row


def user_properties(message: StoredMessage) -> dict[str, str]:
    """The properties that are not the system's."""
    return {
        name: value
        for name, value in message.properties.items()
        if name not in RESERVED
    }
