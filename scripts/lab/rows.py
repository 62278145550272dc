"""Rows of figures with bars, as the programs print that measure or judge something."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeAlias, TypeVar


class Figure(NamedTuple):
    """One figure of a row.

    @ivar bar: what it may be at the most; None: it is only shown.
    @ivar exact: it is a count, or the like, that the machine's speed does not change:
        it is judged when the loads are small, too.
    @ivar least: the bar is what it has to be at the least.
    """

    name: str
    value: float
    unit: str
    bar: float | None = None
    exact: bool = False
    least: bool = False

    def holds(self, quick: bool) -> bool:
        """Whether it is within its bar."""
        if self.bar is None or (quick and not self.exact):
            return True
        return self.value >= self.bar if self.least else self.value <= self.bar


class RowWords(argparse.Namespace):
    """The words of a command line that names rows.

    @ivar rows: all, if none is named.
    @ivar kit: a kit.py that runs the Java broker.
    """

    rows: list[str]
    quick: bool
    kit: str | None
    realtime: bool


def row_words(
    description: str | None, known: Iterable[str], **numbers: int
) -> RowWords:
    """Read the command line, and obey C{--realtime}.

    @param known: the names of the rows.
    @param numbers: of options that a script has of its own, unless they are given.
    """
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, number in numbers.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    for flag in ("inside", "quick", "compiled"):
        parser.add_argument(f"--{flag}", action="store_true")
    add_rows(parser)
    words = parser.parse_args(namespace=RowWords())
    choose(parser, words, known)
    return words


def add_rows(parser: argparse.ArgumentParser) -> None:
    """Let a command line name rows."""
    parser.add_argument("--realtime", action="store_true")
    parser.add_argument("--kit")
    parser.add_argument("rows", nargs="*", metavar="ROW", default=[])


def choose(
    parser: argparse.ArgumentParser, words: RowWords, known: Iterable[str]
) -> None:
    """Take all rows if none is named, refuse unknown ones, obey C{--realtime}."""
    if unknown := sorted(set(words.rows) - {*known}):
        parser.error(f"no row {', '.join(unknown)}; they are {', '.join(known)}")
    words.rows = words.rows or [*known]
    if words.realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


W = TypeVar("W", bound=RowWords)

#: What measures a row: its figures, and what else is worth telling.
Row: TypeAlias = Callable[[W], Iterator[Figure | str]]


def measured_row(name: str, row: Row[W], words: W, load: str = "") -> int:
    """Measure one row and print it; how many bars it misses.

    @param load: what it is loaded with, in words.
    """
    size = " (small loads)" if load and words.quick else ""
    print(f"{name}: {load}{size}".rstrip(), flush=True)
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


def measure_rows(rows: Mapping[str, Row[W]], words: W) -> int:
    """Measure the rows that are named; how many bars are missed."""
    return sum(measured_row(name, rows[name], words) for name in words.rows)
