"""Row of scripts/export_speed.py: the export's tasks reading from a running broker."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.settings import Settings
from scripts.benchmark import Kit
from scripts.export_speed_parts import PROCESSES, QUEUES, TOPIC, Source, copy_task
from scripts.scale_load import Figure, cpu
from tests.integration.servers import Cluster, free_base

if TYPE_CHECKING:
    from scripts.export_speed import Measure

#: What the tasks have to reach where the broker has a core.
LIVE_BAR = 250_000.0

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
    """Ours, on the store."""
    store = measure.store
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
    """Java's, on the same store."""
    kit, base = Kit(path, 0), free_base()
    with contextlib.ExitStack() as stack:
        home = f"--home={measure.folder}/names"
        stack.enter_context(kit.serving("namesrv", f"--port={base}", home))
        words = [f"--namesrv=127.0.0.1:{base}", f"--port={base + 10}"]
        words += [f"--store={measure.store}", "--heap=1g"]
        for key, value in LARGE_OF_JAVA.items():
            words += ["-s", f"{key}={value}"]
        pid = stack.enter_context(kit.serving("broker", *words))
        yield Broker(f"127.0.0.1:{base}", pid)


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
