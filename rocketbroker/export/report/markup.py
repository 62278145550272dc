# -*- test-case-name: tests.export.report.test_page -*-
"""Pieces of a report's page: numbers for people, tables and sections; pure."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from html import escape

from rocketbroker.export.report.charts import short
from rocketbroker.export.report.figures import MAX_LINES


def moment(ms: int) -> str:
    """A time, in UTC; a sign of no time for less than 1."""
    if ms <= 0:
        return "-"
    found = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=ms)
    return f"{found:%Y-%m-%d %H:%M} UTC"


def bytes_text(size: float) -> str:
    """Bytes for people."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:,.1f} TiB"


def whole_or_short(value: int) -> str:
    """A number with all its digits, if they are not more than seven."""
    return f"{value:,}" if value < 10_000_000 else short(value)


def span_text(ms: int | None) -> str:
    """A duration in its largest unit."""
    if ms is None:
        return "-"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000)):
        if ms >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{ms / 1000:.0f} s"


def count_of(number: int, one: str, many: str = "") -> str:
    """A number and its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def table(
    titles: Sequence[str], rows: Iterable[Sequence[object]], more: str = ""
) -> str:
    """A table; numbers stand to the right, L{Markup} as it is.

    @param more: a last line, over all columns.
    """
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    lines = "".join(f"<tr>{''.join(map(table_cell, row))}</tr>" for row in rows)
    if more:
        lines += (
            f'<tr class="more"><td colspan="{len(titles)}">{escape(more)}</td></tr>'
        )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table>"


class Markup(str):
    """A text that is HTML already."""


def table_cell(value: object) -> str:
    """A cell."""
    if isinstance(value, Markup):
        return f"<td>{value}</td>"
    if isinstance(value, int):
        return f'<td class="number">{value:,}</td>'
    return f"<td>{'-' if value is None else escape(str(value))}</td>"


def section(title: str, *parts: str, note: str = "") -> str:
    """A part of the page."""
    said = f'<p class="note">{escape(note)}</p>' if note else ""
    return f"<section><h2>{escape(title)}</h2>{said}{''.join(parts)}</section>"


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def left_out(whole: int, what: str) -> str:
    """What is said of lines that a list does not have; nothing if it has all."""
    rest = whole - MAX_LINES
    return f"and {count_of(rest, what)} more" if rest > 0 else ""
