# -*- test-case-name: tests.cli.cluster.verbs.test_message -*-
"""Messages as they are shown, and requests that find them: 12, 33, and pulls.

See C{docs/facts/admin.md} 5 and C{docs/facts/client.md} 6.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator

from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.exit_status import NotThere
from rocketbroker.cli.formats import Moment, Size
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
from rocketbroker.routing.key_search import (
    FOREVER_MS,
    KeySearch,
    everything,
    index_request,
    told,
    with_unique_key,
)
from rocketbroker.wire.command import Command


def by_key(
    cluster: Cluster,
    broker: Broker,
    topic: str,
    key: str,
    most: int,
    begin_ms: int = 0,
    end_ms: int = FOREVER_MS,
    wanted: Callable[[StoredMessage], bool] = everything,
) -> KeySearch:
    """Find messages by a key; a search that is over.

    @param begin_ms: the first store time.
    @param end_ms: the last store time.
    @param wanted: what else a message has to be.
    """
    search = KeySearch(topic, key, most, begin_ms, end_ms, wanted)
    while not search.is_over:
        search.take(_indexed(cluster, broker, search.request()))
    return search


def by_unique_key(
    cluster: Cluster, broker: Broker, topic: str, key: str
) -> StoredMessage | None:
    """The newest message with the id that a send returned, if there is one."""
    request = index_request(topic, key, 0, FOREVER_MS, True)
    found = with_unique_key(_indexed(cluster, broker, request), topic, key)
    return found[-1] if found else None


def _indexed(cluster: Cluster, broker: Broker, request: Command) -> list[StoredMessage]:
    """What a broker's index has under the hash of a topic and a key."""
    try:
        answer = cluster.client.ask_server(broker.address, request.code, request.ext)
    except QueryNotFound:
        return []
    return told(answer)


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
            f"There is no message at {message_id}, or its broker is not registered. "
            "If it is the id that a send returned, give --topic TOPIC, too."
        )
    asked = cluster.from_each(
        cluster.brokers_of(topic),
        lambda b: by_unique_key(cluster, b, topic, message_id),
    )
    for _, one in asked:
        if one is not None:
            cluster.unreachable.clear()  # the others do not matter any more
            return one
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
