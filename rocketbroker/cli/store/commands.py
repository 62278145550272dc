# -*- test-case-name: tests.cli.store.test_commands -*-
"""C{rocketbroker store}: commands that look at a store's directory without a broker.

They work on directories of RocketMQ and of this broker, also on one in use. Only
C{repair} (L{rocketbroker.cli.store.repair}) and C{truncate}
(L{rocketbroker.cli.store.truncate}) write. C{verify} is in
L{rocketbroker.cli.store.verify}. Exit status: 0 fine, 1 something is wrong with the
store, 2 wrong use.
"""

from __future__ import annotations

import fcntl
import os
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator
from typing import Final, TextIO

import click

from rocketbroker.cli.lazycommands import LazyCommands, VerbPath
from rocketbroker.cli.progress import on_terminal
from rocketbroker.cli.rows import Rows
from rocketbroker.cli.store.options import COMMIT_LOG, DIRECTORY, OUTPUT
from rocketbroker.cli.store.pops import order_rows, popped
from rocketbroker.errors import StoreError
from rocketbroker.files.disk import Disk
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.pending_timers import PendingTimers

#: An exclusive lock of byte 0, as the Linux kernel takes it.
_FIRST_BYTE: Final = struct.Struct(
    "h"  # kind
    "h"  # whence
    "q"  # start
    "q"  # length
    "i"  # process
    "4x"
)


@click.group(
    cls=LazyCommands,
    places={
        "repair": VerbPath(
            "rocketbroker.cli.store.repair:store_repair", "Repair the store in DIR."
        ),
        "truncate": VerbPath(
            "rocketbroker.cli.store.truncate:store_truncate",
            "Discard what an old master has and the new one has not.",
        ),
        "verify": VerbPath(
            "rocketbroker.cli.store.verify:store_verify",
            "Check every record and entry of DIR.",
        ),
    },
)
def store() -> None:
    """Look at a store's directory, without a broker.

    \b
    The commands work on directories of RocketMQ and of rocketbroker. Only repair
    and truncate write. The others also work on a store in use; beside a running
    rocketbroker they read up to the position that it has published.
    Exit status: 0 fine, 1 something is wrong with the store, 2 wrong use.
    """


def finish(rows: Rows, reader: StoreReader, is_faulty: bool) -> None:
    """End the output and the command; report errors of reading the disk."""
    rows.close()
    for each in reader.unread.taken():
        is_faulty = True
        what = f": bytes {each.start} to {each.end - 1}" if each.end else ""
        text = f"{each.path}{what} cannot be read: {each.why}."
        print(f"rocketbroker: {text}", file=sys.stderr)
    sys.exit(1 if is_faulty else 0)


def report_gaps(reader: StoreReader, topics: list[str]) -> bool:
    """Print which files are missing between others; return whether any is."""
    is_faulty = False
    for text in inspect.gaps(reader, topics):
        is_faulty = True
        print(f"rocketbroker: {text}", file=sys.stderr)
    return is_faulty


def printing(output: str) -> Rows:
    """Rows on standard output."""
    return Rows(sys.stdout, output)


def watched(total: int, output: TextIO | None = None) -> Callable[[int], None]:
    """Progress on standard error."""
    return on_terminal(sys.stderr, output, total, time.monotonic)


def is_locked(root: str) -> bool | None:
    """Whether a broker holds the store's lock; asked without taking it.

    @return: None if it cannot be known.
    """
    path = os.path.join(root, "lock")
    if not os.path.exists(path):
        return False
    wanted = _FIRST_BYTE.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 1, 0)
    try:
        with open(path, "rb") as file:
            answer = fcntl.fcntl(file.fileno(), fcntl.F_GETLK, wanted)
        kind = _FIRST_BYTE.unpack(answer)[0]
    except (OSError, struct.error):
        return None
    return bool(kind != fcntl.F_UNLCK)


@store.command("ls")
@DIRECTORY
@OUTPUT
@COMMIT_LOG
def store_ls(directory: str, output: str, commit_log: str | None) -> None:
    """Show the last stop of DIR, the files of its log and its queues.

    And what waits: timers, and messages that were popped and not acknowledged.
    """
    root = os.path.abspath(directory)
    reader = StoreReader(Disk(), root, commit_log)
    rows = printing(output)
    state = inspect.state(reader)
    rows.add("store", {**state, "locked": is_locked(root)})
    for row in inspect.segments(reader):
        rows.add("segment", row)
    total = inspect.count(reader, inspect.topics(reader))
    for row in inspect.queues(reader, watched(total)):
        rows.add("queue", row)
    timers = PendingTimers(reader)
    for row in timers.rows():
        rows.add("timers", row)
    for row in popped(reader, timers).rows():
        rows.add("popped", row)
    for row in order_rows(reader):
        rows.add("popped_in_order", row)
    finish(rows, reader, report_gaps(reader, inspect.topics(reader)))


@store.command("stats")
@DIRECTORY
@OUTPUT
@COMMIT_LOG
def store_stats(directory: str, output: str, commit_log: str | None) -> None:
    """Show messages, bytes, record sizes, first and last time of each topic."""
    reader = StoreReader(Disk(), os.path.abspath(directory), commit_log)
    rows = printing(output)
    topics = inspect.topics(reader)
    passed = watched(inspect.count(reader, topics))
    for topic in topics:
        rows.add("topic", inspect.topic_figures(reader, topic, passed))
    finish(rows, reader, report_gaps(reader, topics))


def plain(message: StoredMessage) -> bytes:
    """The body as its producer gave it; as it is stored if that cannot be had."""
    try:
        return message.plain_body()
    except Malformed:
        return message.body


def message_row(message: StoredMessage, body: str) -> inspect.Row:
    """A message as a row."""
    row: inspect.Row = {
        "topic": message.topic,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "position": message.position,
        "size": message.size,
        "stored_ms": message.store_ms,
        "id": message.message_id,
        "tags": message.tags or "",
        "keys": " ".join(message.keys),
    }
    if body == "text":
        row["body"] = plain(message).decode("utf-8", "replace")
    elif body == "hex":
        row["body"] = plain(message).hex()
    return row


@store.command("cat")
@DIRECTORY
@click.argument("topic")
@click.option("--queue", type=click.IntRange(0), metavar="N", help="Only this queue.")
@click.option(
    "--from", "first", default=0, type=click.IntRange(0), help="The first offset."
)
@click.option("--until", type=click.IntRange(0), help="The offset behind the last.")
@click.option(
    "--body",
    type=click.Choice(["text", "hex", "none"]),
    default="text",
    show_default=True,
)
@OUTPUT
@COMMIT_LOG
def store_cat(
    directory: str,
    topic: str,
    queue: int | None,
    first: int,
    until: int | None,
    body: str,
    output: str,
    commit_log: str | None,
) -> None:
    """Print the messages of TOPIC, queue by queue.

    Of the topic of timers (rmq_sys_wheel_timer) also where each belongs, when it is
    due, and whether it still waits. Of check points of POP, there and in the topics
    rmq_sys_REVIVE_LOG_*, also the group, the topic, the receipt handle, when they are
    due, and what is in flight.
    """
    reader = StoreReader(Disk(), os.path.abspath(directory), commit_log)
    found = inspect.queue_ids(reader, topic)
    if not found or (queue is not None and queue not in found):
        raise StoreError(f"{directory} holds no such queue of {topic}.")
    rows = printing(output)
    is_faulty = False
    chosen = found if queue is None else [queue]
    timers = PendingTimers(reader)
    pops = popped(reader, timers)
    total = sum(inspect.between(reader, topic, one, first, until) for one in chosen)
    passed = watched(total, sys.stdout)
    for queue_id in chosen:
        for message in inspect.messages(reader, topic, queue_id, first, until):
            passed(1)
            if isinstance(message, StoreError):
                is_faulty = True
                print(f"rocketbroker: {message}", file=sys.stderr)
                continue
            more = {**timers.more(message), **pops.more(message)}
            rows.add("message", {**message_row(message, body), **more})
    finish(rows, reader, is_faulty)


def matcher(
    pattern: re.Pattern[bytes], key: str | None, tag: str | None
) -> Callable[[StoredMessage], bool]:
    """Whether a message is one that is looked for."""

    def matches(message: StoredMessage) -> bool:
        if tag is not None and message.tags != tag:
            return False
        if key is not None and key not in (*message.keys, message.unique_key):
            return False
        return pattern.search(plain(message)) is not None

    return matches


def all_messages(
    reader: StoreReader, topics: list[str]
) -> Iterator[StoredMessage | StoreError]:
    """All messages of some topics."""
    for name in topics:
        for queue_id in inspect.queue_ids(reader, name):
            yield from inspect.messages(reader, name, queue_id, 0, None)


@store.command("grep")
@DIRECTORY
@click.argument("pattern")
@click.option("--topic", help="Only this topic.")
@click.option("--key", help="Only messages with this key, or unique key.")
@click.option("--tag", help="Only messages with this tag.")
@OUTPUT
@COMMIT_LOG
def store_grep(
    directory: str,
    pattern: str,
    topic: str | None,
    key: str | None,
    tag: str | None,
    output: str,
    commit_log: str | None,
) -> None:
    """Print the messages whose body matches PATTERN, a regular expression."""
    try:
        compiled = re.compile(pattern.encode("utf-8", "surrogateescape"))
    except re.error as error:
        raise click.UsageError(f"PATTERN is no regular expression: {error}") from None
    matches = matcher(compiled, key, tag)
    reader = StoreReader(Disk(), os.path.abspath(directory), commit_log)
    topics = [name for name in inspect.topics(reader) if topic in (None, name)]
    if topic is not None and not topics:
        raise StoreError(f"{directory} holds no topic {topic}.")
    rows = printing(output)
    is_faulty = False
    passed = watched(inspect.count(reader, topics))
    for message in all_messages(reader, topics):
        passed(1)
        if isinstance(message, StoreError):
            is_faulty = True
            print(f"rocketbroker: {message}", file=sys.stderr)
        elif matches(message):
            rows.add("message", message_row(message, "text"))
    finish(rows, reader, is_faulty)
