# -*- test-case-name: tests.export.report.test_page -*-
"""Numbers, times and sizes as people read them; pure."""

from __future__ import annotations

import datetime

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


def left_out(whole: int, what: str) -> str:
    """What is said of lines that a list does not have; nothing if it has all."""
    rest = whole - MAX_LINES
    return f"and {count_of(rest, what)} more" if rest > 0 else ""
