# -*- test-case-name: tests.cli.cluster.verbs.test_message -*-
"""C{rocketbroker message view} and C{find}; its other verbs stand beside."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

import click

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.cli.cluster.cluster import Broker, Cluster
from rocketbroker.cli.cluster.options import TOPIC, changing, given_moment
from rocketbroker.cli.cluster.requests import messages
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import Moment, Size
from rocketbroker.cli.lazycommands import LazyCommands, VerbPath
from rocketbroker.cli.rows import Rows
from rocketbroker.records.record import StoredMessage
from rocketbroker.routing.key_search import FOREVER_MS, INDEX_PAGE

#: So many characters of a body stand in a table.
PREVIEW_WIDTH: Final = 60


@click.group(
    cls=LazyCommands,
    places={
        "send": VerbPath(
            "rocketbroker.cli.cluster.verbs.send:message_send",
            "Send BODY, or what comes from standard input.",
        ),
        "receive": VerbPath(
            "rocketbroker.cli.cluster.verbs.receive:message_receive",
            "Write the messages of a topic to standard output.",
        ),
    },
)
def message() -> None:
    """Messages: send, receive, view one, find by key, time or text."""


@message.command("view")
@click.argument("message_id", metavar="ID")
@click.option("-t", "--topic", metavar="TOPIC", help="Where it is.")
@click.option("--body", "body_only", is_flag=True, help="Only the body, as it is.")
@changing
def message_view(
    cluster: Cluster, rows: Rows, message_id: str, topic: str | None, body_only: bool
) -> None:
    """Show a message with all its properties.

    ID is the id that a send returned (with --topic), or an offset id.
    """
    found = messages.by_id(cluster, message_id, topic)
    if body_only:
        sys.stdout.buffer.write(found.body)
        return
    rows.details("message", _details(found))


def _details(found: StoredMessage) -> dict[str, object]:
    row = messages.json_row(found)
    del row["broker"]
    return row


@message.command("find")
@TOPIC
@click.option("-k", "--key", metavar="KEY", help="One of its keys.")
@click.option("--tag", metavar="TAG")
@click.option("--grep", "text", metavar="TEXT", help="In the body.")
@click.option("--from", "begin", metavar="TIME", help="Stored then or later, as 2h.")
@click.option("--until", "end", metavar="TIME", help="Stored then or before.")
@click.option("--queue", "queue_text", metavar="BROKER:NUMBER")
@click.option("--offset", type=click.IntRange(0), metavar="N", help="With --queue.")
@click.option(
    "-c", "--count", type=click.IntRange(1), default=32, show_default=True, metavar="N"
)
@changing
def message_find(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    key: str | None,
    tag: str | None,
    text: str | None,
    begin: str | None,
    end: str | None,
    queue_text: str | None,
    offset: int | None,
    count: int,
) -> None:
    """Find messages of a topic by key, tag, text, time or place.

    A key is looked up in the brokers' indexes: the newest messages that match are
    shown. Without one, the queues are read from --from on. Exit status 3: none is
    found.
    """
    now = cluster.client.settings.machine.wall_ms()
    begin_ms = given_moment("--from", begin, now) if begin else 0
    end_ms = given_moment("--until", end, now) if end else FOREVER_MS

    queue = None if queue_text is None else cluster.queues(topic, [queue_text])[0]

    def is_wanted(one: StoredMessage) -> bool:
        return (
            (tag is None or one.tags == tag)
            and (text is None or text.encode() in one.body)
            and (queue is None or one.queue_id == queue.queue_id)
        )

    if offset is not None:
        if queue is None:
            raise Failure("--offset needs --queue BROKER:NUMBER.", USAGE)
        one = messages.at_offset(cluster, queue, offset)
        found: Iterator[tuple[str, StoredMessage]] = iter([(queue.broker, one)])
    elif key is not None:
        brokers = [
            one
            for one in cluster.brokers_of(topic)
            if queue is None or one.name == queue.broker
        ]
        span = begin_ms, end_ms
        found = _by_key(cluster, brokers, topic, key, count, span, is_wanted)
    else:
        queues = cluster.queues(topic) if queue is None else [queue]
        found = _by_time(cluster, topic, queues, begin_ms, end_ms)
    wanted = ((broker, one) for broker, one in found if is_wanted(one))
    any_found = False
    for broker, one in islice(wanted, count):
        any_found = True
        rows.add("message", _row(one, broker, rows))
    if not any_found:
        raise NotThere(f"No message of {topic} is found.")


def _by_key(
    cluster: Cluster,
    brokers: list[Broker],
    topic: str,
    key: str,
    most: int,
    span_ms: tuple[int, int],
    is_wanted: Callable[[StoredMessage], bool],
) -> Iterator[tuple[str, StoredMessage]]:
    """The newest messages with a key, of these brokers, in the order of their times."""
    found: list[tuple[str, StoredMessage]] = []
    for broker, told in cluster.from_each(
        brokers,
        lambda b: messages.by_key(cluster, b, topic, key, most, *span_ms, is_wanted),
    ):
        found += ((broker.name, one) for one in told.messages)
        if not told.is_whole:
            click.echo(
                f"rocketbroker: {broker.name} has more than {INDEX_PAGE} "
                "messages of one second with this key and tells no more of them: some "
                "may be missing. Without --key, with --from and --until, all are read.",
                err=True,
            )
    found.sort(key=lambda pair: pair[1].store_ms)
    yield from found[-most:]


def _by_time(
    cluster: Cluster, topic: str, queues: list[MessageQueue], begin_ms: int, end_ms: int
) -> Iterator[tuple[str, StoredMessage]]:
    """The messages of a time, queue after queue; those of brokers that do not answer
    are passed over."""
    brokers = {one.name: one for one in cluster.brokers_of(topic)}
    for queue in queues:
        broker = brokers.get(queue.broker) or Broker("", queue.broker, 0, "")
        if broker in cluster.unreachable:
            continue
        try:
            for one in messages.in_range(cluster, queue, begin_ms, end_ms):
                yield queue.broker, one
        except PASSING as problem:
            cluster.unreachable[broker] = problem


def _row(found: StoredMessage, broker: str, rows: Rows) -> dict[str, object]:
    """A message in a line; programs get all of it."""
    if not rows.is_table:
        return messages.json_row(found, broker)
    text = messages.body_text(found)
    preview = found.body[:PREVIEW_WIDTH].hex(" ") if text is None else text
    if len(preview) > PREVIEW_WIDTH:
        preview = preview[: PREVIEW_WIDTH - 3] + "..."
    return {
        "id": found.unique_key or found.offset_id,
        "broker": broker,
        "queue": found.queue_id,
        "offset": found.queue_offset,
        "stored": Moment(found.store_ms),
        "tag": found.tags,
        "keys": " ".join(found.keys),
        "size": Size(len(found.body)),
        "body": preview,
    }
