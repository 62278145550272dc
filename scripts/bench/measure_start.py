#!/usr/bin/env python3
"""How long both servers take until they are ready, and what memory they hold.

    python3 scripts/bench/measure_start.py [--rounds 10] [--java KIT]

Starts `twistd -n namesrv` and `twistd -n rocketbroker` on an empty store, interpreter
start included, and prints the median of the rounds. With --java, the path of a kit.py
that runs the Java broker, the same for that, and the ratios. Exit status 1 over the
bars.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.servers import Cluster, Server, free_base

MAX_SECONDS = 0.6
MAX_MEGABYTES = 80.0


def resident_mb(pid: int) -> float:
    """The resident set of one process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    match = re.search(r"VmRSS:\s+(\d+)", status)
    assert match is not None
    return int(match[1]) / 1024


def timed(server: Server) -> tuple[float, float]:
    """Start one server: seconds until it is ready, and its memory in MB."""
    begin = time.monotonic()
    server.start()
    seconds = time.monotonic() - begin
    assert server.process is not None
    return seconds, resident_mb(server.process.pid)


def java(kit: str) -> tuple[float, float]:
    """The Java broker's start on an empty store, by C{kit}."""
    port = free_base()
    names = subprocess.Popen(
        [sys.executable, kit, "namesrv", "--port", str(port)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert names.stdout is not None
    names.stdout.readline()
    command = [sys.executable, kit, "broker", f"--namesrv=127.0.0.1:{port}"]
    with tempfile.TemporaryDirectory() as store:
        begin = time.monotonic()
        broker = subprocess.Popen(
            [*command, f"--port={port + 10}", f"--store={store}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert broker.stdout is not None
        pid = int(broker.stdout.readline().split()[1])
        seconds = time.monotonic() - begin
        memory = resident_mb(pid)
        for process in (broker, names):
            process.terminate()
            process.wait(60)
    return seconds, memory


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--java", metavar="KIT", help="a kit.py to compare with")
    words = parser.parse_args()
    figures: dict[str, list[tuple[float, float]]] = {"namesrv": [], "rocketbroker": []}
    for _ in range(words.rounds):
        cluster = Cluster()
        try:
            for server in (cluster.namesrv, cluster.broker):
                figures[server.name].append(timed(server))
        finally:
            cluster.stop()
    good = True
    for name, rounds in figures.items():
        seconds, memory = (
            statistics.median(column) for column in zip(*rounds, strict=True)
        )
        print(f"{name}: ready in {seconds:.2f} s, {memory:.0f} MB resident")
        good = good and seconds <= MAX_SECONDS and memory <= MAX_MEGABYTES
    if words.java:
        theirs = java(words.java)
        print(f"Java broker: ready in {theirs[0]:.2f} s, {theirs[1]:.0f} MB resident")
        print(f"ratio: {theirs[0] / seconds:.1f} times faster to start,", end=" ")
        print(f"{theirs[1] / memory:.1f} times smaller")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
