# -*- test-case-name: tests.cli.test_formats -*-
"""Numbers that people read as sizes and times, and programs as numbers.

In a table they are texts (C{1.5 MiB}), in JSON the numbers: bytes and milliseconds.
"""

from __future__ import annotations

import re
import time
from fnmatch import fnmatchcase
from typing import Final, final

from rocketbroker.errors import ConfigurationError

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")

#: What is later is no time.
_YEAR_10000_MS: Final = 253_402_300_800_000

#: Milliseconds in each unit of a duration.
SPANS: Final = {
    "ms": 1,
    "s": 1000,
    "m": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_SPAN: Final = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")


@final
class Size(int):
    """Bytes."""

    def __str__(self) -> str:
        size = float(self)
        for unit in _UNITS:
            if abs(size) < 1024 or unit == _UNITS[-1]:
                break
            size /= 1024
        return f"{int(self)} B" if unit == "B" else f"{size:.1f} {unit}"


@final
class Moment(int):
    """Milliseconds since 1970, shown in local time with its zone; 0 and less: never."""

    def __str__(self) -> str:
        if self <= 0:
            return "-"
        if self >= _YEAR_10000_MS:
            return int.__repr__(self)
        local = time.localtime(self // 1000)
        hours, minutes = divmod(abs(local.tm_gmtoff) // 60, 60)
        zone = f"{'-' if local.tm_gmtoff < 0 else '+'}{hours:02d}:{minutes:02d}"
        day = time.strftime("%Y-%m-%d %H:%M:%S", local)
        return f"{day}.{self % 1000:03d}{zone}"


@final
class Span(int):
    """Milliseconds that something takes; the two largest units are shown."""

    def __str__(self) -> str:
        left = abs(self)
        parts: list[str] = []
        for unit, size in reversed(SPANS.items()):
            if left >= size and len(parts) < 2:
                parts.append(f"{left // size} {unit}")
                left %= size
            elif parts:
                break
        return ("-" if self < 0 else "") + (" ".join(parts) or "0 ms")


def count_of(count: int, noun: str) -> str:
    """A number of things, as C{1 message} or C{2 messages}."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def matches(name: str, pattern: str) -> bool:
    """Whether a name is wanted: C{Order*} is the whole name, C{rder} a part of it."""
    if any(each in pattern for each in "*?["):
        return fnmatchcase(name, pattern)
    return pattern in name


def parse_span(text: str) -> int:
    """Milliseconds of a text as C{90s}, C{2h}, C{1d}.

    @raise ConfigurationError: it is no duration.
    """
    found = _SPAN.fullmatch(text)
    if found is None:
        raise ConfigurationError(f"{text!r} is no duration such as 90s, 10m, 2h or 1d")
    return int(found[1]) * SPANS[found[2]]


def without_zone(text: str) -> bool:
    """Whether a text is a date and time that does not say in which zone."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).tzinfo is None
    except ValueError:
        return False


def parse_moment(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of a text.

    @param text: C{now}; how long ago, as C{2h}; C{2026-11-23T07:30} with seconds,
        milliseconds and offset from UTC if wanted, else in local time; or milliseconds
        since 1970.
    @raise ConfigurationError: it is none of these.
    """
    if text == "now":
        return now_ms
    if _SPAN.fullmatch(text):
        return now_ms - parse_span(text)
    if text.isdecimal() and len(text) == 13:
        return int(text)
    from datetime import datetime  # only here: it costs a start some milliseconds

    try:
        return int(datetime.fromisoformat(text).timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ConfigurationError(
            f"{text!r} is no time: give 2026-11-23T07:30:00, 2h for two hours ago, "
            "now, or milliseconds since 1970"
        ) from None
