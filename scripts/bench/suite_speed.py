#!/usr/bin/env python3
"""How long a suite of tests takes that each have a topic of their own.

    python3 scripts/bench/suite_speed.py [--tests 200] [--processes 20] [--java]

A test makes a topic, sends a message and reads it. Three suites: with
C{rocketbroker.testing.Broker}, whose process all tests share; with a process for each
test, of which --processes are run and the time of all is reckoned; and, with --java,
with RocketMQ's name server and broker, started once. Starts and stops count. Seconds
of processors say more where the machine does other things, too. Nothing is judged.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking import Client, Message, Producer, Puller, Settings
from rocketbroker.testing import Broker
from rocketbroker.testing.brokers.process import BrokerProcess, shared
from scripts.lab.javabroker import JavaBroker, JavaNameServer
from scripts.lab.servers import free_base

#: The newest RocketMQ that tests know.
VERSION = "5.3.3"

#: How long an answer may take.
SECONDS = 30.0


def run_test(client: Client, topic: str) -> None:
    """One test, with a client of its own."""
    client.create_topic(topic, queues=1)
    Producer(client).send(Message(topic, "x"))
    (queue,) = client.queues(topic)
    # RocketMQ's broker knows of a message some time after it was stored.
    while not client.max_offset(queue):
        time.sleep(0.001)
    assert len([*Puller(client).read(queue, 0, 1)]) == 1


class Spent(NamedTuple):
    """What was spent: seconds, and those of processors, servers' included."""

    seconds: float
    processor: float


def spent(suite: Callable[[int], None], tests: int) -> Spent:
    """Run a suite, which stops the servers that it starts."""
    begun, used = time.monotonic(), processor_seconds()
    suite(tests)
    return Spent(time.monotonic() - begun, processor_seconds() - used)


def processor_seconds() -> float:
    """What this process has used, and those that it has waited for."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    found = [resource.getrusage(kind) for kind in kinds]
    return sum(usage.ru_utime + usage.ru_stime for usage in found)


def one_broker(tests: int) -> None:
    """A suite with the fixture's broker."""
    for number in range(tests):
        with Broker() as broker:
            topic = broker.topic(f"T{number}")
            broker.send(topic, "x")
            assert len(broker.messages(topic)) == 1
    shared({}).stop()


def processes(tests: int) -> None:
    """A suite with a process for each test."""
    for _ in range(tests):
        process = BrokerProcess({})
        with Client(Settings(process.name_server, seconds=SECONDS)) as client:
            run_test(client, "T")
        process.stop()


@contextmanager
def java_servers(folder: Path) -> Iterator[str]:
    """RocketMQ's name server and broker; the name server's address."""
    base = free_base()
    address = f"127.0.0.1:{base}"
    names = JavaNameServer(VERSION, folder / "names", {"listenPort": base})
    broker = JavaBroker(
        VERSION,
        folder / "broker",
        {
            "brokerIP1": "127.0.0.1",
            "listenPort": base + 10,
            "haListenPort": base + 11,
            "namesrvAddr": address,
            "storePathRootDir": folder / "store",
            "storePathCommitLog": folder / "store" / "commitlog",
        },
    )
    try:
        names.start()
        broker.start()
        yield address
    finally:
        broker.stop()
        names.stop()


def java(tests: int) -> None:
    """A suite with RocketMQ's servers."""
    folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
    with java_servers(folder) as address:
        for number in range(tests):
            with Client(Settings(address, seconds=SECONDS)) as client:
                run_test(client, f"T{number}")
    shutil.rmtree(folder)


def show(tests: int, name: str, used: Spent) -> None:
    """Print a figure."""
    seconds, processor = used
    text = f"{seconds:.1f} s, {processor:.1f} s of processors"
    print(f"{tests} tests, {name}: {text}", flush=True)


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--java", action="store_true")
    words = parser.parse_args()
    tests, some = words.tests, words.processes
    show(tests, "one broker", spent(one_broker, tests))
    seconds, processor = spent(processes, some)
    reckoned = Spent(seconds / some * tests, processor / some * tests)
    show(tests, f"a process each ({some} were run)", reckoned)
    if words.java:
        show(tests, f"RocketMQ {VERSION}", spent(java, tests))
    return 0


if __name__ == "__main__":
    sys.exit(main())
