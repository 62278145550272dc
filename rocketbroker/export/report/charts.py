# -*- test-case-name: tests.export.report.test_charts -*-
"""Charts as inline SVG: no script, no font and no picture from elsewhere; pure.

Colours and sizes of letters are in the page's style sheet, by class.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import Final

import attrs

#: The drawing's size; it is scaled to the page.
WIDTH: Final = 920
HEIGHT: Final = 220

#: Room for numbers at the left, for names below, and above the highest bar.
LEFT: Final = 64
BELOW: Final = 26
ABOVE: Final = 14

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


def number(value: float) -> str:
    """A coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def bar_chart(
    title: str,
    bars: Sequence[Bar],
    mark: tuple[int, str] | None = None,
    shown: Callable[[float], str] = short,
) -> str:
    """A chart with a bar for each value, from left to right.

    @param title: what it shows, for those who do not see it.
    @param mark: a line before the bar of this number, and what stands beside it.
    @param shown: how the numbers at the left are written.
    """
    highest = max((bar.value + bar.missing for bar in bars), default=0.0)
    step = grid_step(highest)
    top = max(step, math.ceil(highest / step) * step)
    base = HEIGHT - BELOW
    scale = (base - ABOVE) / top
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
    ]
    for line in range(round(top / step) + 1):
        y = number(base - line * step * scale)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y}" y2="{y}"/>')
        text = escape(shown(line * step))
        parts.append(f'<text class="y" x="{LEFT - 8}" y="{y}" dy="4">{text}</text>')
    room = (WIDTH - LEFT) / max(1, len(bars))
    width = min(MAX_BAR_WIDTH, room * 0.8)
    name_width = LETTER * max((len(bar.name) for bar in bars), default=1)
    every = max(1, math.ceil((name_width + BETWEEN) / room))
    for place, bar in enumerate(bars):
        middle = LEFT + (place + 0.5) * room
        parts.append(one_bar(bar, middle - width / 2, width, base, scale))
        if place % every == 0 and middle + name_width / 2 <= WIDTH:
            parts.append(
                f'<text class="x" x="{number(middle)}" y="{HEIGHT - 8}">'
                f"{escape(bar.name)}</text>"
            )
    if mark is not None:
        x = number(LEFT + mark[0] * room)
        parts.append(f'<line class="mark" x1="{x}" x2="{x}" y1="4" y2="{base}"/>')
        parts.append(
            f'<text class="mark" x="{x}" y="12" dx="6">{escape(mark[1])}</text>'
        )
    return "".join([*parts, "</svg>"])


def one_bar(bar: Bar, x: float, width: float, base: float, scale: float) -> str:
    """A bar; its smallest part is still seen."""
    parts = [f"<g><title>{escape(bar.text or bar.name)}</title>"]
    # All of the column answers to the mouse, where the bar is low, too.
    parts.append(
        f'<rect class="column" x="{number(x)}" width="{number(width)}" '
        f'y="{ABOVE}" height="{number(base - ABOVE)}"/>'
    )
    for value, kind in ((bar.value, "bar"), (bar.missing, "missing")):
        if value > 0:
            height = max(1.5, value * scale)
            base -= height
            parts.append(
                f'<rect class="{kind}" x="{number(x)}" width="{number(width)}" '
                f'y="{number(base)}" height="{number(height)}"/>'
            )
    return "".join([*parts, "</g>"])


def span_bar(title: str, parts: Sequence[tuple[str, int]]) -> str:
    """A line of parts beside one another, as long as their numbers are large.

    @param parts: of each the class of its colour, and how long it is.
    """
    whole = sum(size for _, size in parts)
    found = [
        f'<svg class="span" viewBox="0 0 300 12" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}"><title>{escape(title)}</title>'
    ]
    x = 0.0
    for kind, size in parts:
        if size > 0:
            width = max(2.0, 300 * size / whole)
            found.append(
                f'<rect class="{kind}" x="{number(min(x, 298))}" y="0" '
                f'width="{number(width)}" height="12"/>'
            )
            x += width
    return "".join([*found, "</svg>"])
