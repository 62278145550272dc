"""The table and the picture of benchmark.py."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from xml.sax.saxutils import escape

from scripts.bench.benchmark_loads import Sample

#: Between these lines of a page stands the table.
BEGIN, END = "..\n   begin of the table\n", "..\n   end of the table\n"

#: The picture: heights and widths of its parts.
BAR, LABEL, PLOT = 20, 200, 420


class Row(NamedTuple):
    """The medians of one load.

    @ivar yardstick: of the C server, at the load that the bar names.
    """

    name: str
    ours: Sample
    java: Sample | None
    yardstick: Sample | None
    bar: float | None

    @property
    def multiple(self) -> float | None:
        """Our cost as a multiple of the yardstick's."""
        return self.ours.cost / self.yardstick.cost if self.yardstick else None

    @property
    def is_missed(self) -> bool:
        """Whether it costs more than its bar, or has a lower rate than Java's."""
        if self.java is not None and self.ours.rate < self.java.rate:
            return True
        if self.bar is None or self.multiple is None:
            return False
        return self.multiple > self.bar

    def cells(self) -> tuple[str, ...]:
        """It as a line of the table."""
        java = self.java
        return (
            self.name,
            f"{self.ours.cost:.2f}",
            f"{java.cost:.2f}" if java else "",
            f"{java.cost / self.ours.cost:.1f}" if java else "",
            f"{self.multiple:.2f}" if self.multiple else "",
            f"{self.bar}" if self.bar else "",
            f"{self.ours.rate:,.0f}",
            f"{java.rate:,.0f}" if java else "",
            spread(self.ours),
            spread(java) if java else "",
        )


HEAD = (
    *("load", "us", "Java", "Java/ours", "ours/C", "bar"),
    *("messages/s", "Java", "p50/p99/p99.9 ms", "Java"),
)


def spread(one: Sample) -> str:
    """Latencies in a cell."""
    return "/".join(f"{each:.1f}" for each in one.latencies)


def table(rows: list[Row], held: dict[str, float]) -> Iterator[str]:
    """Lines of a table in reStructuredText, and of the memory of the servers."""
    lines = [HEAD, *(row.cells() for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    rule = "  ".join("=" * width for width in widths)
    yield rule
    for number, line in enumerate(lines):
        # An empty first cell would go on with the line before.
        yield "  ".join(map(str.ljust, line, widths)).rstrip()
        if number == 0:
            yield rule
    yield rule
    yield ""
    yield "Memory after it, in MiB: " + "; ".join(
        f"{name}: {size:.0f}" for name, size in held.items()
    )


def written(page: str, lines: Iterator[str]) -> str:
    """A page with the table between its marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, *lines, "", END + after])


def svg(rows: list[Row]) -> str:
    """A picture of how many times ours the Java broker's CPU per message is."""
    ratios = [(row.name, row.java.cost / row.ours.cost) for row in rows if row.java]
    most = max((ratio for _, ratio in ratios), default=1.0)
    height = BAR * (len(ratios) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LABEL + PLOT + 60}" '
        f'height="{height}" font-family="sans-serif" font-size="12">',
        f'<text x="4" y="{BAR - 6}">CPU per message of the Java broker 5.3.3, '
        "as a multiple of rocketbroker's</text>",
    ]
    for number, (name, ratio) in enumerate(ratios, 1):
        top = BAR * number
        width = ratio / most * PLOT
        lines.append(
            f'<text x="{LABEL - 6}" y="{top + 14}" text-anchor="end">{escape(name)}'
            f'</text><rect x="{LABEL}" y="{top + 3}" width="{width:.0f}" '
            f'height="{BAR - 6}" fill="#3a6ea5"/>'
            f'<text x="{LABEL + width + 4:.0f}" y="{top + 14}">{ratio:.1f}</text>'
        )
    x = LABEL + PLOT / most
    lines.append(
        f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{BAR}" y2="{height - BAR}" '
        'stroke="#a33" stroke-dasharray="3"/></svg>'
    )
    return "\n".join(lines) + "\n"
