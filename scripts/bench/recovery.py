#!/usr/bin/env python3
"""How long a broker takes until it is ready after kill -9, ours and the Java broker.

    python3 scripts/bench/recovery.py [--mib 1024] [--sizes 1024,300] [--rounds 3]
                                      [--java] [--store DIR] [--quick]

Makes a store with records of each size, as a broker leaves it that is killed, or takes
the one at DIR; then starts ours and, with --java, the Java broker 5.3.3 in turn, each
on a copy of its own that is in the page cache, and prints the times from the start of
the process to the ready line, their minimum and the ratios. Exit status 1 if 1 GiB of
records of 1 KiB takes us more than 6 s, or we are later than Java. --quick: 64 MiB,
without bars.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.disk import Disk
from rocketbroker.records.hashing import tag_code
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.message_store import Store
from scripts.lab.javabroker import JavaBroker
from scripts.lab.servers import Cluster

#: What 1 GiB of records of 1 KiB may take, in seconds.
MAX_SECONDS = 6.0

TOPIC = "Recovery"
QUEUES = 8
HOST = b"\x7f\0\0\1\0\0\x2a\x9f"
BATCH_SIZE = 256


def fill(root: Path, mib: int, size: int) -> None:
    """Write a store as a broker does, and die without a word.

    Messages have a unique key, a key and a tag, as those of real clients.
    """
    options = StoreOptions(store_path_root_dir=str(root))
    store = Store(Disk(), options, lambda: time.time_ns() // 1_000_000, HOST)
    store.open()
    queues = [store.queue(TOPIC, number) for number in range(QUEUES)]
    end = (mib << 20) - (1 << 20)
    number = 0
    flushed = time.monotonic()
    while store.published_position < end:
        drafts = []
        for _ in range(BATCH_SIZE):
            number += 1
            properties = b"UNIQ_KEY\x017F000001%024d\x02KEYS\x01k%08d\x02" % (
                number,
                number,
            )
            tag = f"tag{number % 5}"
            properties += f"WAIT\x01true\x02TAGS\x01{tag}\x02".encode()
            body = b"%09d" % number * (size // 9)
            rest = size - 91 - len(TOPIC) - len(properties)
            now = time.time_ns() // 1_000_000
            queue = queues[number // 32 % QUEUES]
            drafts.append(
                Draft(
                    queue,
                    body[:rest],
                    properties,
                    0,
                    0,
                    now,
                    HOST,
                    0,
                    tag_code(tag),
                    None,
                )
            )
        store.append(drafts)
        store.dispatch(2 * BATCH_SIZE)
        if time.monotonic() > flushed + 1:
            store.allocate_ahead()
            store.flush()
            store.flush_queues()
            flushed = time.monotonic()
    os.kill(os.getpid(), signal.SIGKILL)


def made(folder: Path, mib: int, size: int) -> Path:
    """A store with records of that size, killed."""
    root = folder / f"killed-{size}"
    command = [sys.executable, __file__, "--inside", "--fill", str(root), str(mib)]
    done = subprocess.run([*command, str(size)], check=False)
    if done.returncode != -signal.SIGKILL:
        raise RuntimeError(f"the store could not be made: {done.returncode}")
    return root


def copy(root: Path, to: Path) -> None:
    """A copy, with all of it in the page cache and nothing waiting for the disk."""
    shutil.rmtree(to, ignore_errors=True)
    subprocess.run(["cp", "-r", "--sparse=always", root, to], check=True)
    os.sync()


class Start(NamedTuple):
    """How long a start took, and the CPU time of the process."""

    seconds: float
    cpu: float


def cpu_of(pid: int) -> float:
    """The CPU time of a process until now, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def shown(starts: list[Start]) -> str:
    """For a reader."""
    return ", ".join(f"{s.seconds:.2f} s ({s.cpu:.2f} s of CPU)" for s in starts)


class Runs:
    """Starts of both brokers on copies of one store."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.ours: list[Start] = []
        self.theirs: list[Start] = []

    def start_ours(self) -> None:
        """Ours, once."""
        cluster = Cluster()
        try:
            copy(self._root, cluster.store)
            cluster.namesrv.start()
            begun = time.monotonic()
            cluster.broker.start()
            seconds = time.monotonic() - begun
            assert cluster.broker.process is not None
            self.ours.append(Start(seconds, cpu_of(cluster.broker.process.pid)))
            cluster.broker.stop(signal.SIGKILL)
        finally:
            cluster.stop()

    def start_java(self) -> None:
        """The Java broker, once."""
        cluster = Cluster()
        settings = {
            "brokerIP1": "127.0.0.1",
            "brokerIP2": "127.0.0.1",
            "listenPort": cluster.broker.port,
            "haListenPort": cluster.broker.port + 1,
            "namesrvAddr": cluster.names,
            "storePathRootDir": cluster.store,
            "storePathCommitLog": cluster.store / "commitlog",
        }
        home = cluster.folder / "java"
        broker = JavaBroker("5.3.3", home, settings, ["-XX:+UseG1GC"])
        try:
            copy(self._root, cluster.store)
            cluster.namesrv.start()
            seconds = broker.start()
            self.theirs.append(Start(seconds, cpu_of(broker.pid)))
        finally:
            broker.stop(signal.SIGKILL)
            cluster.stop()


def measure(root: Path, name: str, rounds: int, java: bool) -> tuple[float, float]:
    """Print and return the shortest times."""
    runs = Runs(root)
    for _ in range(rounds):
        runs.start_ours()
        if java:
            runs.start_java()
    print(f"{name}: ready after {shown(runs.ours)}", flush=True)
    ours = min(runs.ours).seconds
    if not java:
        return ours, 0.0
    theirs = min(runs.theirs).seconds
    print(f"  Java broker: {shown(runs.theirs)}; {theirs / ours:.2f} times as long")
    sys.stdout.flush()
    return ours, theirs


def main() -> int:
    """Make, measure, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--fill", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--sizes", default="1024,300")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--java", action="store_true")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    if words.fill:
        fill(Path(words.fill[0]), int(words.fill[1]), int(words.fill[2]))
    mib = 64 if words.quick else words.mib
    rounds = 1 if words.quick else words.rounds
    if words.store:
        measure(words.store, str(words.store), rounds, words.java)
        return 0
    good = True
    with tempfile.TemporaryDirectory(prefix="rocketbroker-recovery-") as folder:
        for size in map(int, words.sizes.split(",")):
            root = made(Path(folder), mib, size)
            name = f"{mib} MiB in records of {size} bytes"
            ours, theirs = measure(root, name, rounds, words.java)
            shutil.rmtree(root)
            if not words.quick and mib == 1024 and size == 1024:
                good = good and ours <= MAX_SECONDS
            good = good and (words.quick or not theirs or ours <= theirs)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
