#!/usr/bin/env python3
"""What large numbers of topics, groups, clients and requests cost a broker.

    python3 scripts/bench/scale.py [--quick] [--kit KIT] [--realtime] [ROW ...]

Measures the rows that are named, or all of them, one after the other, and prints of
each its load, its figures, the bar of each, and whether it holds. The exit status is
the number of rows that miss a bar, or could not be measured.

KIT is a kit.py that runs the Java broker and a load generator (`load`): with it, rows
whose load any broker takes are measured against the Java broker, too. The row latency
needs it. With --realtime, servers and clients run under the scheduler's class FIFO, so
that whatever else the machine does counts little; only root may. --quick: small loads,
by which only counts are judged, and no times.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.test import environment

if __name__ == "__main__" and "--inside" not in sys.argv:
    python = environment("spark,test")
    sys.exit(subprocess.call([str(python), __file__, "--inside", *sys.argv[1:]]))

from scripts.bench import scale_clients, scale_limits, scale_tables
from scripts.lab.peers import (
    Figure,
    RowWords,
    row_words,
)
from scripts.lab.targets import Scale
from scripts.torture import survival as scale_survival


class Row(NamedTuple):
    """One row: its load in words, and what measures it."""

    load: str
    measure: Callable[[Scale], Iterator[Figure | str]]


ROWS = {
    "descriptors": Row(
        "10,000 topics of 4 queues with 1,024 descriptors, sends to all",
        scale_tables.descriptors,
    ),
    "turns": Row(
        "10,000 topics, 5,000 groups, registration, a topic more each second, a scrape"
        " each 15 s",
        scale_tables.turns,
    ),
    "start": Row("a start with 50,000 topics without messages", scale_tables.start),
    "members": Row("2,000 members join one group and leave it", scale_clients.members),
    "fairness": Row(
        "another client's pulls beside 400 pipelined SQL pulls", scale_clients.fairness
    ),
    "sql": Row(
        "SQL that passes 1 %, and 3,000 sends a second beside its reader",
        scale_clients.sql,
    ),
    "idle": Row(
        "10,000 connections with heartbeats; 1,000 held pulls", scale_clients.idle
    ),
    "memory": Row(
        "400 answers of 4 MB that are not read, 160 messages of 4 MB that stop half"
        " way, slow readers",
        scale_limits.kept,
    ),
    "latency": Row(
        "5,000 sends a second of 128 bytes for two minutes", scale_limits.latency
    ),
    "tail": Row(
        "5,000 sends a second of 128 bytes for a minute beside a backlog that is read,"
        " a scrape each 5 s, a registration of 10,000 topics each 10 s",
        scale_limits.tail,
    ),
    "survival": Row(
        "kill -9, SIGTERM, SIGSTOP, no name server, and disks that become read-only or"
        " full, under load",
        scale_survival.survival,
    ),
}


def measured(name: str, scale: Scale) -> bool:
    """Measure one row and print it; whether it holds."""
    row = ROWS[name]
    size = " (small loads)" if scale.quick else ""
    print(f"{name}: {row.load}{size}", flush=True)
    begin = time.monotonic()
    good = True
    try:
        for figure in row.measure(scale):
            if isinstance(figure, str):
                print(f"  {figure}", flush=True)
                continue
            holds = figure.holds(scale.quick)
            good = good and holds
            print(f"  {shown(figure)}{'' if holds else '  MISSED'}", flush=True)
    except Exception:
        print("".join(f"  {line}\n" for line in traceback.format_exc().splitlines()))
        good = False
    seconds = time.monotonic() - begin
    print(f"{name}: {'holds' if good else 'MISSED'} ({seconds:.0f} s)", flush=True)
    return good


def measured_row(
    name: str, row: Callable[[RowWords], Iterator[Figure | str]], words: RowWords
) -> int:
    """Measure one row of another script and print it; how many bars it misses."""
    print(f"{name}:", flush=True)
    begin, missed = time.monotonic(), 0
    try:
        for figure in row(words):
            if isinstance(figure, str):
                print(f"  {figure}", flush=True)
                continue
            holds = figure.holds(words.quick)
            missed += not holds
            print(f"  {shown(figure)}{'' if holds else '  MISSED'}", flush=True)
    except Exception:
        traceback.print_exc(file=sys.stdout)
        missed += 1
    seconds = time.monotonic() - begin
    print(f"{name}: {'MISSED' if missed else 'holds'} ({seconds:.0f} s)", flush=True)
    return missed


def shown(figure: Figure) -> str:
    """A figure for a reader."""
    value = f"{figure.value:,.3f}".rstrip("0").rstrip(".")
    line = f"{figure.name}: {value} {figure.unit}".rstrip()
    if figure.bar is None:
        return line
    least = "least" if figure.least else "most"
    return f"{line} (at {least} {figure.bar:g})"


def main() -> int:
    """Measure the rows."""
    words = row_words(__doc__, ROWS)
    scale = Scale(words.quick, words.kit)
    missed = [name for name in words.rows if not measured(name, scale)]
    print(f"missed: {', '.join(missed) or 'none'}")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
