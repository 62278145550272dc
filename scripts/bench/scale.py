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

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scripts.lab.inside import enter

if __name__ == "__main__":
    enter(__file__)

from scripts.bench import scale_clients, scale_limits, scale_tables
from scripts.lab.rows import Figure, RowWords, measured_row, row_words
from scripts.lab.targets import Scale


class Row(NamedTuple):
    """One row: its load in words, and what measures it."""

    load: str
    measure: Callable[[Scale], Iterator[Figure | str]]

    def figures(self, words: RowWords) -> Iterator[Figure | str]:
        """Measure it as the command line says."""
        yield from self.measure(Scale(words.quick, words.kit))


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
}


def main() -> int:
    """Measure the rows."""
    words = row_words(__doc__, ROWS)
    missed = []
    for name in words.rows:
        row = ROWS[name]
        if measured_row(name, row.figures, words, row.load):
            missed.append(name)
    print(f"missed: {', '.join(missed) or 'none'}")
    return len(missed)


if __name__ == "__main__":
    sys.exit(main())
