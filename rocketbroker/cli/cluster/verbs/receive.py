# -*- test-case-name: tests.cli.cluster.verbs.test_receive -*-
"""C{rocketbroker message receive}."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from rocketbroker.blocking.consumer import EARLIEST, LATEST, Consumer
from rocketbroker.blocking.routes import MessageQueue, NoBroker
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.options import TOPIC, asking, given_moment
from rocketbroker.cli.cluster.outages import ALL, Outages, echo, passes
from rocketbroker.cli.cluster.requests import messages
from rocketbroker.cli.exit_status import (
    USAGE,
    Failure,
    NotThere,
    is_absence,
    named,
)
from rocketbroker.cli.formats import count_of
from rocketbroker.errors import (
    ConfigurationError,
    RocketbrokerError,
    TopicNotExist,
)
from rocketbroker.records.names import TOOLS_CONSUMER, group_problem
from rocketbroker.records.record import StoredMessage

if TYPE_CHECKING:
    from rocketbroker.threads import ReceivedMessage

#: How long one look waits for messages, in seconds; an interrupt waits as long.
POLL_SECONDS: Final = 1.0

#: What stands for what in --format, as kcat's where it has it.
TOKENS: Final[dict[str, Callable[[StoredMessage, str], bytes]]] = {
    "s": lambda message, broker: message.body,
    "S": lambda message, broker: b"%d" % len(message.body),
    "k": lambda message, broker: " ".join(message.keys).encode(),
    "t": lambda message, broker: message.topic.encode(),
    "p": lambda message, broker: b"%d" % message.queue_id,
    "o": lambda message, broker: b"%d" % message.queue_offset,
    "T": lambda message, broker: b"%d" % message.store_ms,
    "h": lambda message, broker: _header_text(message),
    "b": lambda message, broker: broker.encode(),
    "i": lambda message, broker: (message.unique_key or message.offset_id).encode(),
    "g": lambda message, broker: (message.tags or "").encode(),
    "%": lambda message, broker: b"%",
}
_ESCAPES: Final = {"n": b"\n", "t": b"\t", "r": b"\r", "0": b"\0", "\\": b"\\"}


@click.command("receive")
@TOPIC
@click.option(
    "-g",
    "--group",
    metavar="GROUP",
    help="Read as a member of it, and commit. [default: read only]",
)
@click.option(
    "--from",
    "begin",
    default=EARLIEST,
    show_default=True,
    metavar="earliest|latest|TIME",
    help="Where to begin; a group: where it has no offset yet.",
)
@click.option("-f", "--follow", is_flag=True, help="Wait for more at the end.")
@click.option(
    "--wait",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="End when nothing has come for so long.",
)
@click.option("-c", "--count", type=click.IntRange(1), metavar="N", help="At most.")
@click.option("--tag", default="*", metavar="TAG||TAG", help="Only with these.")
@click.option(
    "--queue", "queue_texts", multiple=True, metavar="BROKER:NUMBER", help="Repeatable."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["body", "jsonl"]),
    default="body",
    show_default=True,
)
@click.option(
    "-F",
    "--format",
    "template",
    metavar="TEXT",
    help="Instead of body and newline: %s body, %k keys, %t topic, %b broker, %p "
    "queue, %o offset, %T store time (ms), %i id, %g tag, %h properties, %S size, "
    r"%%; \n \t \0.",
)
@asking
def message_receive(
    cluster: Cluster,
    topic: str,
    group: str | None,
    begin: str,
    follow: bool,
    wait: float | None,
    count: int | None,
    tag: str,
    queue_texts: tuple[str, ...],
    output: str,
    template: str | None,
) -> None:
    """Write the messages of a topic to standard output.

    Without --group nothing is committed. Up to what is there now, unless --follow or
    --wait is given. With --group it is a member of it, and shares the queues with the
    others; each message is committed after it is written. With --queue, too, it is no
    member, and reads those queues whoever else does.

    Exit status 3: fewer messages came than --count.
    """
    write = _writer(output, template)
    queues = _queues(cluster, topic, queue_texts, follow, wait)
    if group is not None and not queue_texts:
        _check_group(group, begin)
        ends = None
        if not follow and wait is None:
            ends = {queue: cluster.client.max_offset(queue) for queue in queues}
        written = _as_member(
            cluster, topic, group, begin, tag, write, ends, wait, count
        )
        _check_count(written, count)
        return
    consumer = _consumer(cluster, topic, group, begin, tag, queues, bool(queue_texts))
    ends = None
    if not follow and wait is None:
        client = cluster.client
        ends = {queue: client.max_offset(queue) for queue in consumer.positions}
    received = _ReceiveRun(cluster, consumer, write, ends, count, group is not None)
    received.run(wait)
    _check_count(received.written, count)


def _queues(
    cluster: Cluster,
    topic: str,
    texts: tuple[str, ...],
    follow: bool,
    wait: float | None,
) -> list[MessageQueue]:
    """The queues to read. Whoever waits for messages waits for the topic, too.

    @raise TopicNotExist: there is none, or still none when the time is over.
    """
    machine = cluster.client.settings.machine
    deadline = machine.monotonic() + (wait or 0.0)
    is_told = False
    while True:
        try:
            return cluster.queues(topic, texts)
        except TopicNotExist:
            is_over = wait is not None and machine.monotonic() >= deadline
            if is_over or (wait is None and not follow):
                raise
        if not is_told:
            echo(f"There is no topic {topic} yet; it is waited for.")
            is_told = True
        machine.sleep(POLL_SECONDS)


def _check_count(written: int, count: int | None) -> None:
    if count is not None and written < count:
        raise NotThere(f"{written} of {count_of(count, 'message')} came.")


def _check_group(group: str, begin: str) -> None:
    problem = group_problem(group)
    if problem is not None or begin not in (EARLIEST, LATEST):
        raise Failure(
            problem
            or "--group begins at earliest or latest: rocketbroker group "
            "reset sets a time.",
            USAGE,
        )


def _as_member(
    cluster: Cluster,
    topic: str,
    group: str,
    begin: str,
    tag: str,
    write: Callable[[StoredMessage, str], bytes],
    ends: dict[MessageQueue, int] | None,
    wait: float | None,
    count: int | None,
) -> int:
    """Write what a member of the group gets; how many messages."""
    from rocketbroker.cli.cluster.verbs.group_reader import GroupReader, member

    out = sys.stdout.buffer

    def take(message: ReceivedMessage) -> None:
        out.write(write(message.stored, message.queue.broker))

    with member(cluster, topic, group, begin, tag) as messages:
        reader = GroupReader(cluster, messages, take, out.flush)
        reader.run(ends, wait, count)
    return reader.taken


class _ReceiveRun:
    """One run of the verb.

    @ivar written: how many messages have been written.
    """

    def __init__(
        self,
        cluster: Cluster,
        consumer: Consumer,
        write: Callable[[StoredMessage, str], bytes],
        ends: dict[MessageQueue, int] | None,
        count: int | None,
        commits: bool,
    ) -> None:
        """
        @param ends: where to stop in each queue; None: nowhere.
        """
        self.written = 0
        self._cluster = cluster
        self._machine = cluster.client.settings.machine
        self._outages = Outages(self._machine.wall_ms)
        self._consumer = consumer
        self._write = write
        self._ends = ends
        self._count = count
        self._commits = commits
        self._done = {**consumer.positions}
        self._out: BinaryIO = sys.stdout.buffer

    def run(self, wait: float | None) -> None:
        """Read until the end.

        Whoever waits for more waits for servers that are restarted, too.

        @param wait: how many seconds without a message are the end.
        @raise RocketbrokerError: a server failed, and nobody waits for it; or it was
            away when the time was over.
        """
        last = self._machine.monotonic()
        failure: RocketbrokerError | None = None
        while not self._is_over():
            seconds = POLL_SECONDS
            if wait is not None:
                left = last + wait - self._machine.monotonic()
                if left <= 0:
                    if failure is not None:
                        raise failure
                    return
                seconds = min(left, POLL_SECONDS)
            if self._ends is not None:
                seconds = 0.0
            try:
                if self._look(seconds):
                    last = self._machine.monotonic()
            except RocketbrokerError as problem:
                if self._ends is not None or not passes(problem):
                    raise
                failure = problem
                self._tell(problem)
                self._machine.sleep(seconds)
            else:
                failure = None
                self._outages.tell({})

    def _look(self, seconds: float) -> bool:
        """Write what there is, and commit it; whether there was anything."""
        found = self._consumer.poll_queues(seconds)
        for queue in self._consumer.positions.keys() - {queue for queue, _ in found}:
            self._done[queue] = self._consumer.positions[queue]
        for queue, some in found:
            self._take(queue, some)
        self._out.flush()
        if self._commits:
            # Not before: what a reader who has gone did not get comes again.
            self._consumer.commit(self._done)
        return bool(found)

    def _tell(self, problem: RocketbrokerError) -> None:
        """Say since when a server is away."""
        if is_absence(problem):
            problem = NoBroker("the name server knows no broker of the topic now")
        # One outage for all: what fails first differs from one look to the next.
        self._outages.tell({ALL: named(problem, self._cluster.names)})

    def _is_over(self) -> bool:
        if self._count is not None and self.written >= self._count:
            return True
        if self._ends is None:
            return False
        return all(
            position >= self._ends[queue]
            for queue, position in self._consumer.positions.items()
        )

    def _take(self, queue: MessageQueue, some: list[StoredMessage]) -> None:
        """Write the messages of a queue that are wanted."""
        for message in some:
            if self._count is not None and self.written >= self._count:
                return
            if self._ends is not None and message.queue_offset >= self._ends[queue]:
                return
            self._out.write(self._write(message, queue.broker))
            self.written += 1
            self._done[queue] = message.queue_offset + 1
        self._done[queue] = self._consumer.positions[queue]


def _consumer(
    cluster: Cluster,
    topic: str,
    group: str | None,
    begin: str,
    tag: str,
    queues: list[MessageQueue],
    only_these: bool,
) -> Consumer:
    """A consumer that knows where to begin.

    @param queues: those that there are now.
    @param only_these: not those that come later.
    """
    client = cluster.client
    name = group or TOOLS_CONSUMER
    is_time = begin not in (EARLIEST, LATEST)
    if group is not None:
        _check_group(group, begin)
        consumer = Consumer(client, name, topic, tag, begin, queues)
        consumer.start()
        return consumer
    chosen = queues if only_these else None
    consumer = Consumer(client, name, topic, tag, EARLIEST, chosen)
    now_ms = client.settings.machine.wall_ms()
    ms = given_moment("--from", begin, now_ms) if is_time else 0
    for queue in queues:
        if begin == EARLIEST:
            offset = client.min_offset(queue)
        elif begin == LATEST:
            offset = client.max_offset(queue)
        else:
            offset = client.offset_by_time(queue, ms)
        consumer.positions[queue] = offset
    return consumer


def _writer(output: str, template: str | None) -> Callable[[StoredMessage, str], bytes]:
    """What makes bytes of a message and its broker.

    @raise ConfigurationError: the format has a token that is none.
    """
    if template is not None:
        return _formatted(template)
    if output == "jsonl":
        return lambda message, broker: (
            json.dumps(messages.json_row(message, broker)).encode() + b"\n"
        )
    return lambda message, broker: message.body + b"\n"


def _formatted(template: str) -> Callable[[StoredMessage, str], bytes]:
    pieces: list[bytes | Callable[[StoredMessage, str], bytes]] = []
    characters = iter(template)
    for each in characters:
        if each == "%":
            token = next(characters, "")
            if token not in TOKENS:
                raise ConfigurationError(f"--format has no %{token}")
            pieces.append(TOKENS[token])
        elif each == "\\":
            code = next(characters, "\\")
            pieces.append(_ESCAPES.get(code, b"\\" + code.encode()))
        else:
            pieces.append(each.encode())
    return lambda message, broker: b"".join(
        piece if isinstance(piece, bytes) else piece(message, broker)
        for piece in pieces
    )


def _header_text(message: StoredMessage) -> bytes:
    found = messages.user_properties(message)
    return ",".join(f"{name}={value}" for name, value in found.items()).encode()
