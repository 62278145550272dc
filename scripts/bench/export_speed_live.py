"""Row of export_speed.py: the export's tasks reading from a running broker.

It gets the messages by sends, so that it serves what it has written itself: what a
broker of ours finds in its store at its start it checks record by record, once it is
read.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message, SendResult
from rocketbroker.blocking.pipeline import Pipeline, PipelineLimits
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from scripts.bench.export_speed_parts import (
    PROCESSES,
    QUEUES,
    TOPIC,
    Source,
    copy_task,
    letters,
)
from scripts.lab.kit import Kit
from scripts.lab.peers import cpu
from scripts.lab.rows import Figure
from scripts.lab.servers import Cluster, free_base

if TYPE_CHECKING:
    from scripts.bench.export_speed import Measure

#: What the tasks have to reach where the broker has a core.
LIVE_BAR = 250_000.0

#: The status of a send that was stored.
SENT = 0

#: Pulls may bring much: of ours, and of RocketMQ's.
LARGE = {"rocketbrokerMaxPullMessages": 4096, "rocketbrokerMaxPullBytes": 4 << 20}
LARGE_OF_JAVA = {
    f"maxTransfer{what}OnMessageIn{where}": size
    for what, size in (("Count", 4096), ("Bytes", 4 << 20))
    for where in ("Memory", "Disk")
}


class Broker(NamedTuple):
    """A broker that is up: its name server, and its process."""

    names: str
    pid: int


@contextlib.contextmanager
def ours(measure: Measure) -> Iterator[Broker]:
    """Ours."""
    store = measure.folder / "ours"
    places = {"storePathRootDir": store, "storePathCommitLog": store / "commitlog"}
    cluster = Cluster(**places, **LARGE)
    try:
        cluster.start()
        assert cluster.broker.process is not None
        yield Broker(cluster.names, cluster.broker.process.pid)
    finally:
        cluster.stop()


@contextlib.contextmanager
def java(measure: Measure, path: str) -> Iterator[Broker]:
    """Java's."""
    kit, base = Kit(path, 0), free_base()
    with contextlib.ExitStack() as stack:
        home = f"--home={measure.folder}/names"
        stack.enter_context(kit.serving("namesrv", f"--port={base}", home))
        words = [f"--namesrv=127.0.0.1:{base}", f"--port={base + 10}"]
        words += [f"--store={measure.folder}/java", "--heap=1g"]
        for key, value in LARGE_OF_JAVA.items():
            words += ["-s", f"{key}={value}"]
        pid = stack.enter_context(kit.serving("broker", *words))
        yield Broker(f"127.0.0.1:{base}", pid)


def check(result: SendResult) -> None:
    """See that a send was stored."""
    if result.status != SENT:
        raise RuntimeError(f"a send has status {result.status}")


def send(work: tuple[str, int, int]) -> None:
    """Send the messages of one queue.

    @param work: the name server, the number of messages in all, that of the queue.
    """
    names, count, queue_id = work
    with Client(Settings(names)) as client:
        queue = next(each for each in client.queues(TOPIC) if each[2] == queue_id)
        limits = PipelineLimits(batch_bytes=1 << 16)
        pipeline = Pipeline(Producer(client), limits, check)
        for each in letters(range(queue_id, count, QUEUES)):
            message = Message(TOPIC, each.body, each.tag, [each.key], each.properties)
            pipeline.add(message, queue)
        pipeline.finish()


def live_rows(measure: Measure, kit: str | None) -> Iterator[Figure | str]:
    """Ours, and Java's if there is a kit."""
    with ours(measure) as broker:
        yield from broker_rows(measure, "live", broker, LIVE_BAR)
    if kit is not None:
        with java(measure, kit) as broker:
            yield from broker_rows(measure, "Java live", broker, None)


def broker_rows(
    measure: Measure, name: str, broker: Broker, bar: float | None
) -> Iterator[Figure | str]:
    """The tasks, reading from one broker."""
    with Client(Settings(broker.names)) as client:
        client.create_topic(TOPIC, queues=QUEUES)
    apart = 0.0
    source = Source(name_server=broker.names)
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES) as pool:
        work = [(broker.names, measure.count, number) for number in range(QUEUES)]
        pool.map(send, work, 1)
        for number in range(measure.rounds + 1):
            before = cpu(broker.pid)
            rate, used = measure.carry_out(pool, copy_task, source)
            served = cpu(broker.pid) - before
            yield (
                f"round {number}, {name}: {rate:,.0f}/s, {used:.1f} s of CPU, "
                f"{served:.1f} s of the broker's"
            )
            if number or measure.rounds == 1:
                measure.keep(name, rate)
                apart = max(apart, measure.count / max(served, used / PROCESSES))
    has_core = (os.cpu_count() or 1) > PROCESSES
    rate = measure.best[name]
    yield Figure(name, rate, "/s", bar if has_core else None, least=True)
    if not has_core:
        words = f"{name}, by CPU, a core for the broker"
        yield Figure(words, apart, "/s", bar, least=True)
