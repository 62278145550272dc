# -*- test-case-name: tests.export.report.test_charts -*-
"""The shapes of charts, as numbers; pure.

The page's template draws them as inline SVG: no script, no font and no picture from
elsewhere. Colours and sizes of letters are in its style sheet, by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs

#: The drawing's size; it is scaled to the page.
WIDTH: Final = 920
HEIGHT: Final = 220

#: Room for numbers at the left, for names below, and above the highest bar.
LEFT: Final = 64
BELOW: Final = 26
ABOVE: Final = 14

#: Where the bars stand.
BASE: Final = HEIGHT - BELOW

#: The size of a line of parts.
SPAN_WIDTH: Final = 300
SPAN_HEIGHT: Final = 12

#: Lines for the eye behind the bars.
GRID_LINES: Final = 4

#: How wide a letter of a name is, about, and the room between two names.
LETTER: Final = 7
BETWEEN: Final = 14

#: No bar is wider: two bars in a chart are still bars.
MAX_BAR_WIDTH: Final = 72


@attrs.frozen
class Bar:
    """One bar.

    @ivar name: stands below it, where there is room.
    @ivar value: how high it is.
    @ivar missing: a part of another colour, on top.
    @ivar text: what the mouse shows.
    """

    name: str
    value: float
    missing: float = 0.0
    text: str = ""


def grid_step(highest: float) -> float:
    """The distance of the lines behind the bars: 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return 1.0
    rough = highest / GRID_LINES
    power = 10.0 ** math.floor(math.log10(rough))
    return float(next(n * power for n in (1, 2, 5, 10) if n * power >= rough))


def short(value: float) -> str:
    """A number in few signs: 950, 12.5 k, 3 M."""
    for size, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


@attrs.frozen
class Box:
    """A rectangle.

    @ivar kind: the class of its colour.
    """

    kind: str
    x: float
    y: float
    width: float
    height: float


@attrs.frozen
class Label:
    """A text beside or below the bars.

    @ivar at: where: C{x} of a name, C{y} of a number at the left.
    """

    at: float
    text: str


@attrs.frozen
class Column:
    """All of one bar.

    @ivar text: what the mouse shows.
    @ivar boxes: what is drawn; the first answers to the mouse, where the bar is low,
        too.
    @ivar name: what stands below it; None if there is no room.
    """

    text: str
    boxes: tuple[Box, ...]
    name: Label | None


@attrs.frozen
class Chart:
    """A chart with a bar for each value, from left to right.

    @ivar title: what it shows, for those who do not see it.
    @ivar lines: for the eye, behind the bars, each with its number.
    @ivar mark: a line before one of the bars, and what stands beside it.
    """

    title: str
    lines: tuple[Label, ...]
    columns: tuple[Column, ...]
    mark: Label | None


@attrs.frozen
class Span:
    """A line of parts beside one another, as long as their numbers are large."""

    title: str
    boxes: tuple[Box, ...]


def coordinate(value: float) -> str:
    """A coordinate as SVG has it."""
    return f"{value:.1f}".removesuffix(".0")


def bar_chart(
    title: str,
    bars: Sequence[Bar],
    mark: tuple[int, str] | None = None,
    shown: Callable[[float], str] = short,
) -> Chart:
    """The chart of some bars.

    @param title: what it shows.
    @param mark: a line before the bar of this number, and what stands beside it.
    @param shown: how the numbers at the left are written.
    """
    highest = max((bar.value + bar.missing for bar in bars), default=0.0)
    step = grid_step(highest)
    top = max(step, math.ceil(highest / step) * step)
    scale = (BASE - ABOVE) / top
    room = (WIDTH - LEFT) / max(1, len(bars))
    width = min(MAX_BAR_WIDTH, room * 0.8)
    name_width = LETTER * max((len(bar.name) for bar in bars), default=1)
    every = max(1, math.ceil((name_width + BETWEEN) / room))
    columns = []
    for place, bar in enumerate(bars):
        middle = LEFT + (place + 0.5) * room
        fits = place % every == 0 and middle + name_width / 2 <= WIDTH
        columns.append(
            Column(
                bar.text or bar.name,
                tuple(boxes(bar, middle - width / 2, width, scale)),
                Label(middle, bar.name) if fits else None,
            )
        )
    return Chart(
        title,
        tuple(
            Label(BASE - line * step * scale, shown(line * step))
            for line in range(round(top / step) + 1)
        ),
        tuple(columns),
        None if mark is None else Label(LEFT + mark[0] * room, mark[1]),
    )


def boxes(bar: Bar, x: float, width: float, scale: float) -> Iterator[Box]:
    """What is drawn of a bar; its smallest part is still seen."""
    yield Box("column", x, ABOVE, width, BASE - ABOVE)
    base = float(BASE)
    for value, kind in ((bar.value, "bar"), (bar.missing, "missing")):
        if value > 0:
            height = max(1.5, value * scale)
            base -= height
            yield Box(kind, x, base, width, height)


def span_bar(title: str, parts: Sequence[tuple[str, int]]) -> Span:
    """The line of some parts.

    @param parts: of each the class of its colour, and how long it is.
    """
    whole = sum(size for _, size in parts)
    found = []
    x = 0.0
    for kind, size in parts:
        if size > 0:
            width = max(2.0, SPAN_WIDTH * size / whole)
            found.append(Box(kind, min(x, SPAN_WIDTH - 2), 0, width, SPAN_HEIGHT))
            x += width
    return Span(title, tuple(found))
