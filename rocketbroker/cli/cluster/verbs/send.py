# -*- test-case-name: tests.cli.cluster.verbs.test_send -*-
"""C{rocketbroker message send}."""

from __future__ import annotations

import base64
import binascii
import json
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, Final, NamedTuple

import attrs
import click

from rocketbroker.cli.cluster.cluster import Cluster, parse_queue
from rocketbroker.cli.cluster.options import TOPIC, changing, given_moment
from rocketbroker.cli.cluster.verbs.send_run import PATIENCE, SendRun
from rocketbroker.cli.exit_status import USAGE, Failure, explained
from rocketbroker.cli.formats import Moment, count_of, parse_span
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import ConfigurationError, RocketbrokerError
from rocketbroker.records.outgoing import Message
from rocketbroker.routing.send_requests import SendResult
from rocketbroker.wire.codes import ResponseCode

LINES: Final = "lines"
WHOLE: Final = "whole"
JSONL: Final = "jsonl"

#: What is waited for on a terminal.
_WAITS: Final = {
    LINES: "lines from the terminal, each a message",
    WHOLE: "one message from the terminal",
    JSONL: "lines of JSON from the terminal, each a message",
}

#: How much of standard input is taken at once: what has come is sent at once, so that a
#: line from a slow pipe does not wait for the next.
READ_BYTES: Final = 1 << 20


class Delivery(NamedTuple):
    """When messages are to be delivered: at once, or one of these.

    @ivar level: the broker's delay level.
    @ivar at_ms: a time, in ms since 1970.
    @ivar delay_ms: so long after it is stored.
    """

    level: int = 0
    at_ms: int = 0
    delay_ms: int = 0


@attrs.frozen
class MessageForm:
    """What each message gets besides its body.

    @ivar delivery: when it is to be delivered.
    @ivar key_separator: what stands between key and body of a line; None: no key.
    """

    topic: str
    tag: str | None
    keys: tuple[str, ...]
    properties: dict[str, str]
    delivery: Delivery
    sharding_key: str | None
    key_separator: bytes | None

    def message(self, body: bytes) -> Message:
        """A message of a body or line.

        @raise MessageIllegal: it cannot be sent.
        """
        keys = self.keys
        if self.key_separator:
            key, found, rest = body.partition(self.key_separator)
            if found:
                keys, body = (*keys, key.decode("utf-8", "replace")), rest
        return Message(
            self.topic,
            body,
            tags=self.tag,
            keys=keys,
            properties=self.properties,
            sharding_key=self.sharding_key,
            delay_level=self.delivery.level,
            deliver_at_ms=self.delivery.at_ms,
            delay_ms=self.delivery.delay_ms,
        )

    def from_json(self, line: bytes) -> Message:
        """A message of a line that C{message receive --output jsonl} may have written.

        What the command line gives counts more than what the line says.

        @raise ConfigurationError: it is no such line.
        @raise MessageIllegal: it cannot be sent.
        """
        try:
            given = json.loads(line)
            if "body_base64" in given:
                body = base64.b64decode(given["body_base64"], validate=True)
            else:
                body = given["body"].encode("utf-8")
            properties = {**(given.get("properties") or {}), **self.properties}
            keys = self.keys or given.get("keys") or ()
            tag = self.tag or given.get("tag")
        except (ValueError, LookupError, TypeError, AttributeError, binascii.Error):
            text = line[:60].decode("utf-8", "replace")
            raise ConfigurationError(
                f'a line of JSON needs "body" or "body_base64": {text}'
            ) from None
        return Message(
            self.topic,
            body,
            tags=tag,
            keys=keys,
            properties=properties,
            sharding_key=self.sharding_key,
            delay_level=self.delivery.level,
            deliver_at_ms=self.delivery.at_ms,
            delay_ms=self.delivery.delay_ms,
        )


@click.command("send")
@TOPIC
@click.argument("body", required=False)
@click.option("--tag", metavar="TAG")
@click.option("-k", "--key", "keys", multiple=True, metavar="KEY", help="Repeatable.")
@click.option("-p", "--property", "properties", multiple=True, metavar="NAME=VALUE")
@click.option(
    "--delay-level", type=click.IntRange(0), default=0, metavar="N", help="1 is 1 s."
)
@click.option("--delay", metavar="90s", help="Delivered so long after it is stored.")
@click.option("--at", metavar="TIME", help="Delivered then, as 2026-11-23T07:30.")
@click.option("--sharding-key", metavar="KEY")
@click.option("--queue", "queue_text", metavar="BROKER:NUMBER", help="Only there.")
@click.option(
    "-i",
    "--input",
    "shape_of_input",
    type=click.Choice([LINES, WHOLE, JSONL]),
    default=LINES,
    show_default=True,
    help="A message for each line, one message, or a line of JSON for each.",
)
@click.option(
    "-K", "--key-separator", metavar="TEXT", help="Between key and body of a line."
)
@click.option("--batch", is_flag=True, help="Many in one request, which is faster.")
@click.option("--ids", is_flag=True, help="Show what was sent, also of many.")
@changing
def message_send(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    body: str | None,
    tag: str | None,
    keys: tuple[str, ...],
    properties: tuple[str, ...],
    delay_level: int,
    delay: str | None,
    at: str | None,
    sharding_key: str | None,
    queue_text: str | None,
    shape_of_input: str,
    key_separator: str | None,
    batch: bool,
    ids: bool,
) -> None:
    """Send BODY, or what comes from standard input.

    Empty lines are left out. Lines of a slow pipe are sent as they come. JSON is as
    'message receive --output jsonl' writes it. Servers that are restarted after the
    first message are waited for, for two minutes. --delay and --at need brokers with
    timers (RocketMQ 5), which take 3 days at most unless timerMaxDelaySec says more.
    """
    shape = MessageForm(
        topic,
        tag,
        keys,
        _parsed(properties),
        _delivery(cluster.client.settings.machine.wall_ms(), delay_level, delay, at),
        sharding_key,
        key_separator.encode() if key_separator else None,
    )
    queue = parse_queue(topic, queue_text) if queue_text else None
    # Brokers take no message for later in a batch.
    batches = batch and shape.delivery == Delivery()
    with cluster.sender(PATIENCE) as mq:
        run = SendRun(cluster, mq, topic, queue, batches)
        if body is not None:
            _send_one(run, rows, shape.message(body.encode()))
            return
        stream = sys.stdin.buffer
        if sys.stdin.isatty():
            click.echo(f"Reads {_WAITS[shape_of_input]}; Ctrl-D ends it.", err=True)
        if shape_of_input == WHOLE:
            _send_one(run, rows, shape.message(stream.read()))
            return
        make = shape.from_json if shape_of_input == JSONL else shape.message
        skipped = _send_lines(run, stream, make, rows if ids else None)
    empty = f", {count_of(skipped, 'empty line')} left out" if skipped else ""
    click.echo(f"{count_of(run.sent, 'message')} sent to {topic}{empty}", err=True)


def _send_one(run: SendRun, rows: Rows, message: Message) -> None:
    for result in run.send([message]):
        _show(rows, run.topic, result)


def _send_lines(
    run: SendRun,
    stream: BinaryIO,
    make: Callable[[bytes], Message],
    rows: Rows | None,
) -> int:
    """Send each line as it comes; how many were empty.

    @param rows: what was sent is shown there.
    @raise Failure: it says how many were sent before.
    """
    skipped = 0
    try:
        for lines in _pieces(stream):
            full = [line for line in lines if line]
            skipped += len(lines) - len(full)
            for result in run.send(map(make, full)):
                if rows is not None:
                    _show(rows, run.topic, result)
    except RocketbrokerError as error:
        cluster = run.cluster
        failure = explained(error, cluster.name_servers, cluster.names)
        raise Failure(
            f"After {count_of(run.sent, 'message')}: {failure.message}",
            failure.exit_code,
        ) from error
    return skipped


def _delivery(now_ms: int, level: int, delay: str | None, at: str | None) -> Delivery:
    """When messages are to be delivered.

    @raise Failure: there are several, or the time is past.
    """
    if (level > 0) + (delay is not None) + (at is not None) > 1:
        raise Failure("--delay-level, --delay and --at exclude each other.", USAGE)
    if delay is not None:
        return Delivery(delay_ms=parse_span(delay))
    if at is None:
        return Delivery(level)
    moment = given_moment("--at", at, now_ms)
    if moment < now_ms:
        raise Failure(
            f"--at {at} is past ({Moment(moment)}); --delay 2h is in two hours.", USAGE
        )
    return Delivery(at_ms=moment)


def _pieces(stream: BinaryIO) -> Iterator[list[bytes]]:
    """The lines of a stream without their ends, as many at once as have come."""
    read = getattr(stream, "read1", stream.read)
    parts: list[bytes] = []
    while data := read(READ_BYTES):
        head, newline, rest = data.rpartition(b"\n")
        if not newline:
            parts.append(data)
            continue
        yield _lines(b"".join([*parts, head]))
        parts = [rest] if rest else []
    if parts:
        yield _lines(b"".join(parts))


def _lines(data: bytes) -> list[bytes]:
    return [line.removesuffix(b"\r") for line in data.split(b"\n")]


def _parsed(properties: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in properties:
        name, equals, value = text.partition("=")
        if not equals:
            raise Failure(f"{text!r} is no property: give NAME=VALUE.", USAGE)
        found[name] = value
    return found


def _show(rows: Rows, topic: str, result: SendResult) -> None:
    """What became of a send, of one message or of several."""
    status = "stored"
    if result.status:
        status += f", but {ResponseCode(result.status).name}"
    for number, message_id in enumerate(result.message_ids):
        rows.add(
            "sent",
            {
                "topic": topic,
                "id": message_id,
                "broker": result.queue.broker,
                "queue": result.queue.queue_id,
                "offset": result.queue_offset + number,
                "outcome": status,
            },
        )
