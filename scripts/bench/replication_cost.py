#!/usr/bin/env python3
"""CPU of both servers for each message that is copied to a slave.

    python3 scripts/bench/replication_cost.py --kit KIT [--quick] [--realtime]
                                              [--compiled]

KIT is a kit.py that runs the Java broker and a load generator. The exit status is the
number of bars that are missed. --quick: small loads, by which no times are judged.

Three pairs are up at the same time: ours in SYNC_MASTER, with inSyncReplicas=2; a Java
pair likewise; ours in ASYNC_MASTER. They are measured in rounds, one after the other,
as the speed of a machine changes from hour to hour; of each, the best round counts. The
CPU of a message is that of both servers.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.lab.kit import SEND, Kit
from scripts.lab.pair import OURS, Group
from scripts.lab.peers import wait_for
from scripts.lab.rows import Figure, RowWords, measure_rows, row_words
from scripts.lab.servers import PATIENT, free_base

#: The loads, by their names.
LOADS: Final = {
    "8x32": [*SEND, "-c", "8", "-w", "32"],
    "64x1": [*SEND, "-c", "64", "-w", "1"],
}

#: The parts of Java's CPU and of the asynchronous rate that are the bars.
CPU_BAR: Final = 1 / 3
RATE_BAR: Final = 0.8

SYNC: Final[dict[str, object]] = {"brokerRole": "SYNC_MASTER", "inSyncReplicas": 2}

#: So many rounds of a Java pair do not count: it is slow for half a minute.
WARM_ROUNDS: Final = 5


class Up(NamedTuple):
    """A pair that is up: the master's port, and both processes."""

    port: int
    pids: tuple[int, int]


@contextlib.contextmanager
def ours(**settings: object) -> Iterator[Up]:
    """Our pair."""
    group = Group(OURS, OURS, autoCreateTopicEnable="true", **settings)
    try:
        group.namesrv.start()
        for member in group.members:
            member.start()
        port = int(group.master.address.rpartition(":")[2])
        yield Up(port, (group.master.pid, group.members[1].pid))
    finally:
        group.stop()


@contextlib.contextmanager
def java(kit: Kit, **settings: object) -> Iterator[Up]:
    """A Java pair."""
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        names = free_base()
        words = ["namesrv", f"--port={names}", f"--home={folder}/names"]
        stack.enter_context(kit.serving(*words))
        pids = []
        ports = [free_base() + 10, free_base() + 10]
        settings = {**settings, **PATIENT, "autoCreateTopicEnable": "true"}
        of_slave: dict[str, object] = {"brokerRole": "SLAVE", "brokerId": 1}
        for number, port in enumerate(ports):
            words = ["broker", f"--namesrv=127.0.0.1:{names}", f"--port={port}"]
            words += [f"--store={folder}/{number}", "--heap=1g"]
            for key, value in {**settings, **(of_slave if number else {})}.items():
                words += ["-s", f"{key}={value}"]
            pids.append(stack.enter_context(kit.serving(*words)))
        yield Up(ports[0], (pids[0], pids[1]))


class Measured(NamedTuple):
    """A round.

    @ivar us: CPU of both servers for each message, in microseconds.
    @ivar rate: messages a second.
    """

    us: float
    rate: float


def cost(words: RowWords) -> Iterator[Figure | str]:
    """Measure in rounds."""
    if words.kit is None:
        yield "it needs --kit"
        return
    rounds, seconds = (1, 1.0) if words.quick else (5, 3.0)
    kit = Kit(words.kit, seconds)
    found: dict[tuple[str, str], list[Measured]] = {}
    with contextlib.ExitStack() as stack:
        pairs = {
            "ours": stack.enter_context(ours(**SYNC)),
            "ours, asynchronous": stack.enter_context(ours(brokerRole="ASYNC_MASTER")),
            "Java": stack.enter_context(java(kit, **SYNC)),
        }
        for name, pair in pairs.items():
            for _ in range(WARM_ROUNDS if name == "Java" and rounds > 1 else 1):
                is_whole(kit, pair)
            if not wait_for(partial(is_whole, kit, pair)):
                yield f"{name}: sends are not acknowledged by the slave"
        for number in range(rounds):
            for load, options in LOADS.items():
                for name, pair in pairs.items():
                    one = measured(kit, pair, options)
                    found.setdefault((load, name), []).append(one)
                    yield (
                        f"round {number + 1}, {load}, {name}: {one.us:.1f} us, "
                        f"{one.rate:,.0f}/s"
                    )
    yield from figures(found)


def is_whole(kit: Kit, pair: Up) -> bool:
    """Load a pair, to warm it; whether all was acknowledged."""
    found = [kit.figures(pair.port, pair.pids, words) for words in LOADS.values()]
    return not any(each["codes"] for each in found)


def measured(kit: Kit, pair: Up, words: list[str]) -> Measured:
    """One round of one pair.

    @raise RuntimeError: not all was acknowledged.
    """
    got: dict[str, Any] = kit.figures(pair.port, pair.pids, words)
    if got["codes"]:
        raise RuntimeError(f"answers by their codes: {got['codes']}")
    return Measured(got["server_us_per_message"], got["messages_s"])


def figures(found: dict[tuple[str, str], list[Measured]]) -> Iterator[Figure]:
    """The best rounds, and what they are of each other."""
    us = {key: min(each.us for each in several) for key, several in found.items()}
    rate = {key: max(each.rate for each in several) for key, several in found.items()}
    for load in LOADS:
        for name in ("ours", "ours, asynchronous", "Java"):
            yield Figure(f"{load}, {name}: CPU of both", us[load, name], "us")
            yield Figure(f"{load}, {name}", rate[load, name], "/s")
        part = us[load, "ours"] / us[load, "Java"]
        yield Figure(f"{load}: part of Java's CPU", part, "", CPU_BAR)
    part = rate["64x1", "ours"] / rate["64x1", "ours, asynchronous"]
    yield Figure("64x1: part of the asynchronous rate", part, "", RATE_BAR, least=True)


ROWS = {"cost": cost}


def main() -> int:
    """Measure."""
    return measure_rows(ROWS, row_words(__doc__, ROWS))


if __name__ == "__main__":
    sys.exit(main())
