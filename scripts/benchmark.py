#!/usr/bin/env python3
"""Server CPU per message: ours, the Java broker's and a yardstick in C, in one run.

    python3 scripts/benchmark.py --kit KIT [--rounds 3] [--seconds 3] [--no-java]
                                 [--compiled]

KIT is a kit.py that runs the Java servers, a load generator (`load`) and the C
yardstick (`limit`, a server that only stores sends). The machine's speed changes from
hour to hour, so each round measures all of them, one after the other, and the best
round of each counts; what is worth reading are the ratios. With every feature on,
metrics too. --compiled measures a copy of the checkout with the compiled codec.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.compiled import in_copy
from scripts.test import environment

if __name__ == "__main__" and "--inside" not in sys.argv:
    python = environment("spark,test")
    if "--compiled" in sys.argv:
        given = [
            str(Path(w).resolve()) if Path(w).exists() else w for w in sys.argv[1:]
        ]
        sys.exit(in_copy(python, "scripts/benchmark.py", "--inside", *given))
    sys.exit(subprocess.call([str(python), __file__, "--inside", *sys.argv[1:]]))

from tests.integration.servers import Cluster, free_base

SEND = ["-m", "send", "-b", "128"]

#: Name, options of the load generator, and the bars of the pure and of the compiled
#: form as multiples of the yardstick at the load named last.
LOADS: list[tuple[str, list[str], tuple[float, float], str]] = [
    ("send 8x32", [*SEND, "-c", "8", "-w", "32"], (5.0, 3.3), "send 8x32"),
    ("send 64x1", [*SEND, "-c", "64", "-w", "1"], (2.4, 2.0), "send 64x1"),
    ("batch", "-m batch -n 32 -c 4 -w 8 -b 128".split(), (2.5, 1.5), "send 8x32"),
    ("pull", "-m pull -n 32 -c 4 -w 4 -M 50000".split(), (0.38, 0.3), "send 8x32"),
]


class Kit:
    """The tools that are not ours."""

    def __init__(self, path: str, seconds: float) -> None:
        self._command = [sys.executable, path]
        self._seconds = str(seconds)

    @contextlib.contextmanager
    def serving(self, *words: str) -> Iterator[int]:
        """One server of the kit; its process number."""
        process = subprocess.Popen(
            [*self._command, *words], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline().split()[1])
        finally:
            subprocess.run(["pkill", "-P", str(process.pid)], check=False)
            process.terminate()
            process.wait(60)

    def load(self, port: int, pid: int, words: list[str]) -> float:
        """Microseconds of the server's CPU per message under one load."""
        return float(self.figures(port, [pid], words)["server_us_per_message"])

    def figures(
        self, port: int, pids: Iterable[int], words: list[str]
    ) -> dict[str, Any]:
        """All that is printed of one load.

        @param pids: the processes whose CPU counts.
        """
        done = subprocess.run(
            [*self._command, "load", "-p", str(port), *words]
            + ["-P", ",".join(map(str, pids)), "-t", self._seconds, "-W", "1"],
            capture_output=True,
            text=True,
        )
        try:
            found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
        except (IndexError, ValueError):
            sys.exit(f"load {' '.join(words)}: {done.stderr.strip()[-300:]}")
        return found


@contextlib.contextmanager
def servers(kit: Kit, with_java: bool) -> Iterator[dict[str, tuple[int, int]]]:
    """All that is measured: name to port and process."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        cluster = Cluster().start()
        stack.callback(cluster.stop)
        assert cluster.broker.process is not None
        found = {"rocketbroker": (cluster.broker.port, cluster.broker.process.pid)}
        port = free_base()
        Path(folder, "c").mkdir()
        pid = stack.enter_context(kit.serving("limit", f"{folder}/c", str(port)))
        found["C"] = (port, pid)
        if with_java:
            port = free_base()
            words = ["namesrv", f"--port={port}"]
            stack.enter_context(kit.serving(*words))
            words = ["broker", f"--namesrv=127.0.0.1:{port}", f"--port={port + 10}"]
            words += [f"--store={folder}/java", "--heap=1g"]
            words += ["-s", "autoCreateTopicEnable=true"]
            found["Java"] = (port + 10, stack.enter_context(kit.serving(*words)))
        yield found


def main() -> int:
    """Measure in rounds, print a table, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--kit", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--no-java", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    words = parser.parse_args()
    kit = Kit(words.kit, words.seconds)
    best: dict[tuple[str, str], float] = {}
    with servers(kit, not words.no_java) as found:
        for number in range(words.rounds):
            for name, options, _, _ in LOADS:
                for server, (port, pid) in found.items():
                    if server == "C" and not name.startswith("send"):
                        continue
                    cost = kit.load(port, pid, options)
                    key = (server, name)
                    best[key] = min(cost, best.get(key, cost))
                    print(f"round {number + 1} {name} {server}: {cost:.2f} us")
    good = True
    print(f"\n{'us of server CPU a message':28}{'ours':>8}{'Java':>8}{'C':>8}", end="")
    print(f"{'ours/C':>9}{'bar':>6}{'Java/ours':>11}")
    for name, _, bars, against in LOADS:
        bar = bars[words.compiled]
        ours, c = best["rocketbroker", name], best["C", against]
        java = best.get(("Java", name), float("nan"))
        good = good and ours <= bar * c
        print(f"{name:28}{ours:8.2f}{java:8.2f}{c:8.2f}{ours / c:9.2f}", end="")
        print(f"{bar:>6}{java / ours:11.1f}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
