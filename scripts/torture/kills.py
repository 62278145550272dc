"""kill -9 of a broker under producers that note what they do.

The script that uses this is the producers' program, too: it is started again for each
of them with C{--produce}, address, number, note, and what else they need.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.lab.servers import Cluster

#: One in so many kills falls into the start that comes after another one.
IN_START = 5

#: How long a start takes at the most, for kills in the middle of it.
START_SECONDS = 0.4


def arguments(description: str | None, rounds: int) -> argparse.ArgumentParser:
    """What such scripts understand.

    @param rounds: how often to kill, if nobody says it.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--produce", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--flush", default="ASYNC_FLUSH")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true")
    return parser


class Producers:
    """Processes that run C{--produce}.

    @ivar notes: the note of each.
    """

    def __init__(
        self, script: str, address: str, folder: Path, count: int, *more: str
    ) -> None:
        """
        @param script: the program.
        @param address: where they produce.
        @param folder: for their notes.
        """
        self.notes = [folder / f"note{number}" for number in range(count)]
        self._processes = [
            subprocess.Popen(
                [sys.executable, script, "--inside", "--produce", address]
                + [str(number), str(note), *more]
            )
            for number, note in enumerate(self.notes)
        ]

    def end(self) -> None:
        """Kill them."""
        for process in self._processes:
            process.kill()
            process.wait()


def kill(
    cluster: Cluster, rounds: int, dice: random.Random, least: float, most: float
) -> Iterator[tuple[int, float]]:
    """Kill a broker again and again, and start it anew each time.

    @param least: so many seconds at least it is up before each.
    @return: of each kill the time of day in ms, when it is over, and how many seconds
        the start took.
    """
    for number in range(rounds):
        if number % IN_START == IN_START - 1:
            cluster.broker.stop(signal.SIGKILL)
            cluster.broker.launch()
            time.sleep(dice.uniform(0.0, START_SECONDS))
        else:
            time.sleep(dice.uniform(least, most))
        cluster.broker.stop(signal.SIGKILL)
        killed_ms = time.time_ns() // 1_000_000
        begin = time.monotonic()
        cluster.broker.start()
        yield killed_ms, time.monotonic() - begin
