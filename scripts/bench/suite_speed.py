#!/usr/bin/env python3
"""How long a suite of tests takes that each have a topic of their own.

    python3 scripts/bench/suite_speed.py [--tests 200] [--processes 20] [--java]

A test makes a topic, sends a message and reads it. Three suites: with
C{rocketbroker.testing.Broker}, whose process all tests share; with a process for each
test, of which --processes are run and the time of all is reckoned; and, with --java,
with RocketMQ's name server and broker, started once. The starts count. Nothing is
judged.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.blocking import Client, Message, Producer, Puller, Settings
from rocketbroker.testing import Broker
from rocketbroker.testing.brokers.process import BrokerProcess
from scripts.lab.javabroker import JavaBroker, JavaNameServer
from scripts.lab.servers import free_base

#: The newest RocketMQ that tests know.
VERSION = "5.3.3"


def run_test(client: Client, topic: str) -> None:
    """One test, with a client of its own."""
    client.create_topic(topic, queues=1)
    Producer(client).send(Message(topic, "x"))
    (queue,) = client.queues(topic)
    # RocketMQ's broker knows of a message some time after it was stored.
    while not client.max_offset(queue):
        time.sleep(0.001)
    assert len([*Puller(client).read(queue, 0, 1)]) == 1


def shared(tests: int) -> float:
    """Seconds with the fixture's broker."""
    begun = time.monotonic()
    for number in range(tests):
        with Broker() as broker:
            topic = broker.topic(f"T{number}")
            broker.send(topic, "x")
            assert len(broker.messages(topic)) == 1
    return time.monotonic() - begun


def processes(tests: int) -> float:
    """Seconds with a process for each test."""
    begun = time.monotonic()
    for _ in range(tests):
        process = BrokerProcess({})
        with Client(Settings(process.name_server)) as client:
            run_test(client, "T")
        process.stop()
    return time.monotonic() - begun


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


def java(tests: int) -> tuple[float, float]:
    """Seconds with RocketMQ's servers, and those of their start."""
    folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
    begun = time.monotonic()
    with java_servers(folder) as address:
        ready = time.monotonic()
        for number in range(tests):
            with Client(Settings(address)) as client:
                run_test(client, f"T{number}")
    seconds = time.monotonic() - begun
    shutil.rmtree(folder)
    return seconds, ready - begun


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tests", type=int, default=200)
    parser.add_argument("--processes", type=int, default=20)
    parser.add_argument("--java", action="store_true")
    words = parser.parse_args()
    seconds = shared(words.tests)
    print(f"{words.tests} tests, one broker: {seconds:.1f} s", flush=True)
    each = processes(words.processes) / words.processes
    print(
        f"{words.tests} tests, a process each: {each * words.tests:.1f} s, of which "
        f"{words.processes} were run",
        flush=True,
    )
    if words.java:
        theirs, start = java(words.tests)
        print(
            f"{words.tests} tests, RocketMQ {VERSION}: {theirs:.1f} s, of which "
            f"{start:.1f} s are the start"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
