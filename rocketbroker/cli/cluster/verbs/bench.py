# -*- test-case-name: tests.cli.cluster.verbs.test_bench -*-
"""C{rocketbroker bench}: loads, and how long requests take.

This process is the client, and is one Python: it sends some thousand messages a second,
each in a request of its own. A broker takes many times more; start several to see that.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, final

import click

from rocketbroker.blocking.client import TOPIC_SECONDS
from rocketbroker.blocking.consumer import EARLIEST
from rocketbroker.blocking.machine import Machine
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.puller import Puller
from rocketbroker.cli.cluster.cluster import Cluster
from rocketbroker.cli.cluster.options import TOPIC, changing
from rocketbroker.cli.cluster.outages import echo
from rocketbroker.cli.cluster.requests import topics
from rocketbroker.cli.cluster.verbs.topic import masters_of_one
from rocketbroker.cli.exit_status import USAGE, Failure, NotThere
from rocketbroker.cli.formats import Size
from rocketbroker.cli.rows import Rows
from rocketbroker.errors import RocketbrokerError, TopicNotExist
from rocketbroker.records.names import topic_problem
from rocketbroker.wire.bodies.topics import TopicConfig

#: How many queues a topic gets that is made here, on each broker.
QUEUES: Final = 8

#: What is shown of the times, in percent.
PERCENTILES: Final = (50.0, 90.0, 99.0, 99.9)

_SECONDS: Final = click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="For so long at most.",
)


@click.group()
def bench() -> None:
    """Loads of sends and of receives, with percentiles."""


@final
class Load:
    """Sends from several threads, at a rate if one is wanted.

    @ivar times: of each send that was answered, in seconds. With a rate from the moment
        when it was due: a broker that stalls makes those wait that come after.
    @ivar errors: how many failed.
    @ivar last_error: the last reason.
    """

    def __init__(
        self,
        machine: Machine,
        producer: Producer,
        message: Message,
        count: int | None,
        seconds: float,
        rate: float | None,
    ) -> None:
        self.times: list[float] = []
        self.errors = 0
        self.last_error = ""
        self._machine = machine
        self._producer = producer
        self._message = message
        self._left = count
        self._interval = 1 / rate if rate else 0.0
        self._lock = threading.Lock()
        self.begun_at = self._due = machine.monotonic()
        self._end = self.begun_at + seconds

    def run(self) -> None:
        """One thread's part."""
        machine = self._machine
        while True:
            due = self._next()
            if due is None:
                return
            wait = due - machine.monotonic()
            if wait > 0:
                machine.sleep(wait)
            begin = due if self._interval else machine.monotonic()
            try:
                self._producer.send(self._message)
            except RocketbrokerError as error:
                with self._lock:
                    self.errors += 1
                    self.last_error = str(error) or type(error).__name__
            else:
                self.times.append(machine.monotonic() - begin)

    def _next(self) -> float | None:
        """When the next send is due; None: there is no more."""
        with self._lock:
            due = max(self._due, self.begun_at)
            if not self._interval:
                due = self._machine.monotonic()
            if due >= self._end or self._left == 0:
                return None
            if self._left is not None:
                self._left -= 1
            self._due += self._interval
            return due


@bench.command("send")
@TOPIC
@click.option(
    "--size",
    default=128,
    show_default=True,
    type=click.IntRange(0, 4 << 20),
    metavar="BYTES",
    help="Of a body.",
)
@click.option(
    "--threads",
    default=4,
    show_default=True,
    type=click.IntRange(1, 256),
    metavar="N",
    help="So many sends wait for their answers at once.",
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0.01),
    metavar="N",
    help="Messages a second. [default: as fast as it goes]",
)
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="So many at most."
)
@_SECONDS
@changing
def bench_send(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    size: int,
    threads: int,
    rate: float | None,
    count: int | None,
    seconds: float,
) -> None:
    """Send messages to TOPIC, and show the rate and the times of the answers.

    The messages stay in the topic: take one of its own. One that is not there is made,
    with 8 queues on each master.
    """
    _make(cluster, topic)
    machine = cluster.client.settings.machine
    message = Message(topic, b"x" * size)
    producer = Producer(cluster.client, compress_over=size + 1)
    load = Load(machine, producer, message, count, seconds, rate)
    others = [threading.Thread(target=load.run) for _ in range(threads - 1)]
    for thread in others:
        thread.start()
    load.run()
    for thread in others:
        thread.join()
    took = max(machine.monotonic() - load.begun_at, 1e-9)
    done = len(load.times)
    row: dict[str, object] = {
        "sent": done,
        "errors": load.errors,
        "seconds": round(took, 2),
        "per_second": round(done / took, 1),
        "bytes_per_second": Size(done * size / took),
        **percentiles(load.times),
    }
    if load.errors:
        row["last_error"] = load.last_error
    rows.details("result", row)


def _make(cluster: Cluster, topic: str) -> None:
    """Make a topic that is not there."""
    try:
        cluster.route(topic)
    except TopicNotExist:
        problem = topic_problem(topic)
        if problem is not None:
            raise Failure(problem, USAGE) from None
        masters = masters_of_one(cluster, None, None)
        config = TopicConfig(
            topic_name=topic, read_queue_nums=QUEUES, write_queue_nums=QUEUES
        )
        for master in masters:
            topics.put(cluster, master, config)
        names = {master.name for master in masters}
        cluster.client.wait_for_topic(topic, names, TOPIC_SECONDS)
        echo(f"{topic} was not there and is made; rocketbroker topic delete removes it")


def percentiles(times: Sequence[float]) -> dict[str, object]:
    """Percentiles and the longest, in ms."""
    ordered = sorted(times)
    found: dict[str, object] = {}
    for percent in PERCENTILES:
        at = min(int(len(ordered) * percent / 100), len(ordered) - 1)
        found[f"p{percent:g}_ms"] = round(ordered[at] * 1000, 2) if ordered else None
    found["max_ms"] = round(ordered[-1] * 1000, 2) if ordered else None
    return found


@bench.command("receive")
@TOPIC
@click.option(
    "--count", type=click.IntRange(min=1), metavar="N", help="So many at most."
)
@click.option(
    "-g",
    "--group",
    metavar="GROUP",
    help="Consume as a member of it, and commit. [default: read only]",
)
@_SECONDS
@changing
def bench_receive(
    cluster: Cluster,
    rows: Rows,
    topic: str,
    count: int | None,
    group: str | None,
    seconds: float,
) -> None:
    """Read the messages of TOPIC from the first one on, and show the rate.

    Without --group nothing is committed; records are counted and not decoded. With it
    the rate is that of a consumer, which acknowledges each message; several of them
    share the queues.
    """
    client = cluster.client
    machine = client.settings.machine
    if group is not None:
        cluster.queues(topic)
        begun_at = machine.monotonic()
        got, size = _consume(cluster, topic, group, count, seconds)
        _show(rows, topic, got, size, machine.monotonic() - begun_at)
        return
    puller = Puller(client)
    begun_at = machine.monotonic()
    end = begun_at + seconds
    got = size = 0
    for queue in cluster.queues(topic):
        start, until = client.min_offset(queue), client.max_offset(queue)
        if count is not None:
            until = min(until, start + count - got)
        chunks = puller.read(queue, start, until)
        for chunk in chunks:
            got += chunk.until - chunk.start
            size += len(chunk.data)
            if machine.monotonic() >= end:
                break
        chunks.close()
        if machine.monotonic() >= end or got == count:
            break
    _show(rows, topic, got, size, machine.monotonic() - begun_at)


def _consume(
    cluster: Cluster, topic: str, group: str, count: int | None, seconds: float
) -> tuple[int, int]:
    """Consume as a member of a group; how many messages and bytes of bodies."""
    from rocketbroker.cli.cluster.verbs.group_reader import member

    now = cluster.client.settings.machine.monotonic
    end = now() + seconds
    got = size = 0
    with member(cluster, topic, group, EARLIEST, "*") as messages:
        while got != count and (left := end - now()) > 0:
            message = messages.next(left)
            if message is not None:
                got += 1
                size += len(message.body)
                message.ack()
    return got, size


def _show(rows: Rows, topic: str, got: int, size: int, seconds: float) -> None:
    if not got:
        raise NotThere(
            f"{topic} has no messages: 'rocketbroker bench send' makes some."
        )
    took = max(seconds, 1e-9)
    rows.details(
        "result",
        {
            "received": got,
            "seconds": round(took, 2),
            "per_second": round(got / took, 1),
            "bytes_per_second": Size(size / took),
        },
    )
