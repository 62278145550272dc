#!/usr/bin/env python3
"""Server CPU per message: ours, the Java broker's and a yardstick in C, in one run.

    python3 scripts/bench/benchmark.py --kit KIT [--rounds 3] [--seconds 3] [--no-java]
                                 [--compiled] [--docs FOLDER] [LOAD ...]

KIT is a kit.py that runs the Java servers, a load generator (`load`) and the C
yardstick (`limit`, a server that only stores sends, and starts anew for each of its
measurements). The machine's speed changes from hour to hour, so each round measures all
of them, one after the other, and the median of the rounds counts; what is worth reading
are the ratios. With every feature on, metrics
too. --compiled measures a copy of the checkout with the compiled codec.

A LOAD is the begin of a name of C{benchmark_loads.py}; without one all are measured.

With --docs, FOLDER gets the table and a picture of the ratios: C{performance.rst},
between its two marks, and C{performance.svg}.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.bench.benchmark_loads import LOADS, Bench, Load, Sample, family
from scripts.bench.benchmark_report import Row, svg, table, written
from scripts.lab.kit import Kit
from scripts.lab.peers import memory
from scripts.lab.servers import Cluster, free_base

#: A server of the kit that bears only sends.
YARDSTICK = "C"


@contextlib.contextmanager
def servers(
    kit: Kit, seconds: float, server: str, with_java: bool
) -> Iterator[dict[str, Bench]]:
    """All that is measured, but for the yardstick.

    @param server: see L{Load.server}.
    """
    flush, _, workers = server.partition(", workers ")
    settings = {"flushDiskType": flush, "enablePropertyFilter": True}
    if workers:
        settings["workers"] = workers
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cluster = Cluster(**settings).start()
        stack.callback(cluster.stop)
        assert cluster.broker.process is not None
        found = {"ours": (cluster.broker.port, cluster.broker.process.pid)}
        if with_java:
            port = free_base()
            words = [f"--port={port}", f"--home={folder}/names"]
            stack.enter_context(kit.serving("namesrv", *words))
            words = ["broker", f"--namesrv=127.0.0.1:{port}", f"--port={port + 10}"]
            words += [f"--store={folder}/java", "--heap=1g", "-s", "brokerName=java"]
            words += [
                "-s",
                "autoCreateTopicEnable=true",
                "-s",
                f"flushDiskType={flush}",
            ]
            words += ["-s", "enablePropertyFilter=true"]
            found["Java"] = (port + 10, stack.enter_context(kit.serving(*words)))
        yield {
            name: Bench(kit, seconds, port, pid) for name, (port, pid) in found.items()
        }


@contextlib.contextmanager
def yardstick(kit: Kit, seconds: float) -> Iterator[Bench]:
    """The yardstick, with a new file.

    It goes round in its file of a gigabyte, and takes two thirds as long once it needs
    no new memory for that. The others always need new memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        port = free_base()
        with kit.serving("limit", folder, str(port)) as pid:
            yield Bench(kit, seconds, port, pid)


def measured(
    loads: list[Load], found: dict[str, Bench], rounds: int
) -> Iterator[tuple[str, str, Sample]]:
    """The medians of all loads, by their names and the servers'."""
    samples: dict[tuple[str, str], list[Sample]] = {}
    for number in range(rounds):
        for load in loads:
            for server in [*found, YARDSTICK]:
                if server == YARDSTICK:
                    if load.against != load.name:
                        continue
                    ours = found["ours"]
                    with yardstick(ours.kit, ours.seconds) as bench:
                        one = load.measure(bench)
                else:
                    bench = found[server]
                    if load.prepare is not None and number == 0:
                        load.prepare(bench)
                    one = load.measure(bench)
                samples.setdefault((load.name, server), []).append(one)
                words = f"round {number + 1} {load.name} {server}"
                print(f"{words}: {one.cost:.2f} us, {one.rate:,.0f}/s", flush=True)
    for (name, server), several in samples.items():
        cost, rate = (
            statistics.median(values)
            for values in zip(
                *((each.cost, each.rate) for each in several), strict=True
            )
        )
        p50, p99, p999 = map(
            statistics.median, zip(*(s.latencies for s in several), strict=True)
        )
        yield name, server, Sample(cost, rate, (p50, p99, p999))


def main() -> int:
    """Measure in rounds, print a table, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--kit", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--no-java", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--docs", type=Path)
    parser.add_argument("loads", nargs="*", metavar="LOAD", default=[""])
    words = parser.parse_args()
    kit = Kit(words.kit, words.seconds)
    chosen = [load for load in LOADS if load.name.startswith(tuple(words.loads))]
    needed = {load.against for load in chosen}
    found: dict[tuple[str, str], Sample] = {}
    held: dict[str, float] = {}
    for server in dict.fromkeys(load.server for load in chosen):
        loads = [
            load
            for load in LOADS
            if load.server == server and (load in chosen or load.name in needed)
        ]
        with servers(kit, words.seconds, server, not words.no_java) as benches:
            for name, which, one in measured(loads, benches, words.rounds):
                found[name, which] = one
            for which, bench in benches.items():
                held[f"{which}, {server}"] = sum(map(memory, family(bench.pid)))
    rows = [
        Row(
            load.name,
            found[load.name, "ours"],
            found.get((load.name, "Java")),
            found.get((load.against, YARDSTICK)),
            load.bars[words.compiled] if load.bars else None,
        )
        for load in chosen
    ]
    print("", *table(rows, held), sep="\n")
    if words.docs is not None:
        (words.docs / "performance.svg").write_text(svg(rows))
        page = words.docs / "performance.rst"
        page.write_text(written(page.read_text(), table(rows, held)))
    return sum(row.is_missed for row in rows)


if __name__ == "__main__":
    sys.exit(main())
