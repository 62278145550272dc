#!/usr/bin/env python3
"""How fast messages become Parquet, beside what any such program has to do.

    python3 scripts/bench/export_speed.py [--messages 1500000] [--rounds 5] [--kit KIT]
                                    [--folder DIR] [--quick] [ROW ...]

Makes a store of messages with bodies of about 300 bytes in four queues, and measures in
rounds, as the machine's speed changes while it is measured; of each the best round
counts, and what is worth reading are the ratios. Two processes, or two cores of Spark.

tasks    the export's tasks, and bare pyarrow: two processes, the log mapped, records
         gathered by array operations, the same decoder and Parquet settings, nothing
         checked (export_speed_parts.py)
command  the whole command from its start: its first byte of a message, its rate
sql      spark.read.format("rocketmq") to Parquet, Spark copying this Parquet, and to
         noop; in a session without settings of the JVM
live     the tasks reading from a running broker; with --kit from Java's, too. On fewer
         than three cores the broker has none for itself: what it would be, if it had,
         is then told from the CPU that both sides took

--kit is a kit.py that runs the Java servers. The rate of the whole command has a bar
from 10,000,000 messages on only. The exit status is how many bars are missed. --quick:
60,000 messages, one round, without bars.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.bench.export_speed_live import live_rows
from scripts.bench.export_speed_parts import (
    BROKER,
    PROCESSES,
    TOPIC,
    Source,
    Work,
    bare_task,
    copy_task,
    fill,
    tasks,
)
from scripts.lab.rows import Figure
from scripts.lab.servers import environment

#: The bars: parts of bare pyarrow's rate, and so on.
TASKS_BAR = 0.85
COMMAND_BAR = 0.6
COMMAND_MESSAGES = 10_000_000
FIRST_BYTE_BAR = 8.0
SQL_BAR = 0.85
NOOP_BAR = 400_000.0

#: A Parquet file begins with so many bytes of no message.
MAGIC = 4

ROWS = ("tasks", "command", "sql", "live")


class Measure:
    """What is measured, and how.

    @ivar folder: where all files are.
    @ivar best: the best rate of each row so far.
    """

    def __init__(self, folder: Path, count: int, rounds: int) -> None:
        self.folder = folder
        self.count = count
        self.rounds = rounds
        self.store = folder / "store"
        self.best: dict[str, float] = {}

    @contextlib.contextmanager
    def place(self) -> Iterator[Path]:
        """A directory for one export."""
        root = Path(tempfile.mkdtemp(dir=self.folder))
        yield root
        shutil.rmtree(root)

    def keep(self, name: str, rate: float) -> None:
        """Keep the best rate of a row."""
        self.best[name] = max(self.best.get(name, 0.0), rate)

    def carry_out(
        self, pool: Any, task: Callable[[Work], tuple[int, float]], source: Source
    ) -> tuple[float, float]:
        """All tasks of an export; the rate, and the seconds of CPU that they took."""
        with self.place() as root:
            work = [Work(source, str(root), files) for files in tasks(self.count)]
            begun = time.monotonic()
            done = pool.map(task, work, 1)
            took = time.monotonic() - begun
        if sum(rows for rows, _ in done) != self.count:
            raise RuntimeError(f"{self.count} messages gave {done} rows")
        return self.count / took, sum(cpu for _, cpu in done)


def tasks_rows(measure: Measure) -> Iterator[Figure | str]:
    """The tasks beside bare pyarrow."""
    source = Source(str(measure.store))
    used: dict[str, list[float]] = {}
    context = multiprocessing.get_context("spawn")
    with context.Pool(PROCESSES) as pool:
        for number in range(measure.rounds + 1):
            for name, task in (("bare", bare_task), ("tasks", copy_task)):
                rate, cpu = measure.carry_out(pool, task, source)
                if number or measure.rounds == 1:
                    measure.keep(name, rate)
                    used.setdefault(name, []).append(cpu)
                yield f"round {number}, {name}: {rate:,.0f}/s, {cpu:.1f} s of CPU"
    bare, ours = measure.best["bare"], measure.best["tasks"]
    yield Figure("bare pyarrow", bare, "/s")
    yield Figure("tasks", ours, "/s")
    yield Figure(
        "tasks: part of bare pyarrow's rate", ours / bare, "", TASKS_BAR, least=True
    )
    part = min(used["bare"]) / min(used["tasks"])
    yield Figure("tasks: bare pyarrow's CPU, of theirs", part, "")


def command_rows(measure: Measure) -> Iterator[Figure | str]:
    """The whole command."""
    first = float("inf")
    for number in range(min(2, measure.rounds)):
        with measure.place() as root:
            byte, took = one_command(measure, root)
        first = min(first, byte)
        measure.keep("command", measure.count / took)
        yield f"round {number}, command: {byte:.1f} s to the first byte, {took:.1f} s"
    yield Figure("command: seconds to the first byte", first, "s", FIRST_BYTE_BAR)
    rate = measure.best["command"]
    yield Figure("command", rate, "/s")
    if "bare" in measure.best:
        bar = COMMAND_BAR if measure.count >= COMMAND_MESSAGES else None
        part = rate / measure.best["bare"]
        yield Figure("command: part of bare pyarrow's rate", part, "", bar, least=True)


def one_command(measure: Measure, root: Path) -> tuple[float, float]:
    """Export once; the seconds to the first byte of a message in a file, and in all.

    @raise RuntimeError: the command failed.
    """
    words = ["-m", "rocketbroker.cli.command", "export", "run", TOPIC]
    words += ["--store", str(measure.store), "--broker-name", BROKER]
    words += ["--to", str(root), "--cores", str(PROCESSES)]
    first = 0.0
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    while process.poll() is None:
        time.sleep(0.02)
        if not first and has_bytes(root / TOPIC):
            first = time.monotonic() - begun
    took = time.monotonic() - begun
    if process.returncode:
        assert process.stdout is not None
        raise RuntimeError(process.stdout.read())
    return first or took, took


def has_bytes(folder: Path) -> bool:
    """Whether one of the files has bytes of a message."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                if os.path.getsize(os.path.join(place, name)) > MAGIC:
                    return True
    return False


def sql_rows(measure: Measure) -> Iterator[Figure | str]:
    """Spark's SQL, in a process of its own."""
    words = [str(measure.store), str(measure.count), str(measure.rounds)]
    process = subprocess.Popen(
        [sys.executable, "-m", "scripts.bench.export_speed_sql", *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=measure.folder,
    )
    assert process.stdout is not None
    for line in process.stdout:
        name, number, seconds = line.split()
        rate = measure.count / float(seconds)
        if name in ("noop", "parquet", "copy"):
            measure.keep(name, rate)
            yield f"round {number}, {name}: {rate:,.0f}/s"
    if process.wait():
        raise RuntimeError("Spark's process failed")
    ours, copy = measure.best["parquet"], measure.best["copy"]
    yield Figure("SQL to Parquet", ours, "/s")
    yield Figure("Spark copying this Parquet", copy, "/s")
    yield Figure(
        "SQL to Parquet: part of the copy's rate", ours / copy, "", SQL_BAR, least=True
    )
    yield Figure("SQL to noop", measure.best["noop"], "/s", NOOP_BAR, least=True)


def main() -> int:
    """Measure, print a table, judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--no-install", action="store_true", help="Use this Python.")
    parser.add_argument("--messages", type=int, default=1_500_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--kit")
    parser.add_argument("--folder", help="Where files go. [default: a temporary one]")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("rows", nargs="*", metavar="ROW", default=[])
    given = parser.parse_args()
    if unknown := sorted({*given.rows} - {*ROWS}):
        parser.error(f"no row {', '.join(unknown)}; they are {', '.join(ROWS)}")
    count, rounds = (60_000, 1) if given.quick else (given.messages, given.rounds)
    figures = []
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        measure = Measure(Path(folder), count, rounds)
        print(f"{count:,} messages; load {os.getloadavg()[0]:.1f}", flush=True)
        fill(measure.store, count)
        parts = {
            "tasks": lambda: tasks_rows(measure),
            "command": lambda: command_rows(measure),
            "sql": lambda: sql_rows(measure),
            "live": lambda: live_rows(measure, given.kit),
        }
        for name in given.rows or ROWS:
            for found in parts[name]():
                if isinstance(found, Figure):
                    figures.append(found)
                else:
                    print(f"  {found}", flush=True)
    print(f"{'':44}{'figure':>12}  {'bar':>12}   load {os.getloadavg()[0]:.1f}")
    for each in figures:
        print(line_of(each, given.quick))
    missed = sum(not each.holds(given.quick) for each in figures)
    print(f"{missed} bars missed" if missed else "all bars hold")
    return missed


def line_of(figure: Figure, quick: bool) -> str:
    """A line of the table."""
    value = f"{figure.value:,.0f}" if figure.unit == "/s" else f"{figure.value:.2f}"
    line = f"{figure.name:44}{value + figure.unit:>12}"
    if figure.bar is None:
        return line
    sign = ">=" if figure.least else "<="
    bar = f"{figure.bar:,.0f}" if figure.unit == "/s" else f"{figure.bar:g}"
    missed = "" if figure.holds(quick) else "   missed"
    return f"{line}  {sign} {bar + figure.unit:>9}{missed}"


if __name__ == "__main__":
    sys.exit(main())
