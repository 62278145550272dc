# -*- test-case-name: tests.metrics.test_samples -*-
"""The text of one scrape, family by family.

There may be a hundred thousand samples, and prometheus-client takes some 25 us for each
from object to text. So the lines are written here, at once: a family keeps lines, and a
few hundred of them become one piece of bytes. Prometheus's text format and OpenMetrics
differ in the heads of families only.

Series of single topics and groups are in families that are got first and given labels
as text, which serves all samples of a topic or group. Their number is bounded: beyond
the bound they are left out and counted. The totals of a server are always there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

#: So many lines of a family become one piece.
PIECE_LINES: Final = 256

#: Totals have no bound.
UNBOUNDED: Final = 1 << 62


@final
class Bound:
    """How many more samples there may be.

    @ivar left: that number.
    @ivar left_out: how many were left out.
    """

    __slots__ = ("left", "left_out")

    def __init__(self, most: int) -> None:
        self.left = most
        self.left_out = 0

    def takes(self, count: int) -> bool:
        """Whether there may be so many more; they are counted in either case."""
        if count > self.left:
            self.left_out += count
            return False
        self.left -= count
        return True


@final
class Lines:
    """The lines of one family.

    @ivar kind: its type: C{"gauge"}.
    @ivar words: its meaning.
    """

    __slots__ = ("_lines", "_pieces", "kind", "words")

    def __init__(self, kind: str, words: str) -> None:
        self.kind = kind
        self.words = words
        self._lines: list[str] = []
        self._pieces: list[bytes] = []

    def write(self, line: str) -> None:
        """Add a line, or some."""
        self._lines.append(line)
        if len(self._lines) >= PIECE_LINES:
            self._end_piece()

    def _end_piece(self) -> None:
        self._pieces.append("".join(self._lines).encode("utf-8", "replace"))
        self._lines.clear()

    def pieces(self) -> list[bytes]:
        """All lines, in pieces."""
        if self._lines:
            self._end_piece()
        return self._pieces


@final
class Values:
    """A family with one sample for each set of labels."""

    __slots__ = ("_bound", "_is_wanted", "_lines", "_name")

    def __init__(self, name: str, lines: Lines, is_wanted: bool, bound: Bound) -> None:
        self._name = name
        self._lines = lines
        self._is_wanted = is_wanted
        self._bound = bound

    def add(self, labels: str, value: float) -> None:
        """Add a sample.

        @param labels: what L{Samples.labels} made of them.
        """
        if self._is_wanted and self._bound.takes(1):
            self._lines.write(f"{self._name}{labels} {value}\n")


@final
class Histograms:
    """A family with one histogram for each set of labels."""

    __slots__ = ("_bound", "_count", "_lines", "_size", "_starts", "_sum")

    def __init__(
        self,
        name: str,
        lines: Lines,
        names: frozenset[str],
        bounds: Sequence[float],
        bound: Bound,
    ) -> None:
        """
        @param names: the samples that are wanted; empty: all.
        @param bounds: the upper bounds of all classes but the last, which is open.
        """

        def picked(sample: str) -> str:
            return sample if not names or sample in names else ""

        bucket = picked(f"{name}_bucket")
        texts = [*(str(float(each)) for each in bounds), "+Inf"]
        self._starts = [f'{bucket}{{le="{text}"' for text in texts]
        if not bucket:
            self._starts = []
        self._count = picked(f"{name}_count")
        self._sum = picked(f"{name}_sum")
        self._size = len(self._starts) + bool(self._count) + bool(self._sum)
        self._lines = lines
        self._bound = bound

    def add(self, labels: str, counts: Sequence[int], total: float) -> None:
        """Add a histogram.

        @param counts: one number for each class, not added up.
        @param total: the sum of all values.
        """
        if not self._size or not self._bound.takes(self._size):
            return
        rest = f",{labels[1:]}" if labels else "}"
        running = 0
        lines = []
        for start, count in zip(self._starts, counts, strict=bool(self._starts)):
            running += count
            lines.append(f"{start}{rest} {running}\n")
        if self._count:
            lines.append(f"{self._count}{labels} {sum(counts)}\n")
        if self._sum:
            lines.append(f"{self._sum}{labels} {total}\n")
        self._lines.write("".join(lines))


@final
class Samples:
    """All that one scrape shows.

    @ivar common: the labels that every sample has; none of its own may replace one.
    """

    def __init__(
        self,
        common: dict[str, str],
        names: frozenset[str] = frozenset(),
        most: int = UNBOUNDED,
    ) -> None:
        """
        @param names: the samples that are wanted, by their final names; empty: all.
        @param most: so many samples of topics and groups at the most.
        """
        self.common = common
        self._names = names
        self._common = ",".join(pair(*each) for each in common.items())
        self._bound = Bound(most)
        self._totals = Bound(UNBOUNDED)
        self._families: dict[str, Lines] = {}

    @property
    def left_out(self) -> int:
        """How many samples of topics and groups were left out by now."""
        return self._bound.left_out

    def labels(self, **labels: str) -> str:
        """Labels as text, with those of all samples."""
        common = self.common
        pairs = [pair(*each) for each in labels.items() if each[0] not in common]
        if self._common:
            pairs.append(self._common)
        return f"{{{','.join(pairs)}}}" if pairs else ""

    def _lines(self, name: str, kind: str, words: str) -> Lines:
        lines = self._families.get(name)
        if lines is None:
            lines = self._families[name] = Lines(kind, words)
        return lines

    def _values(self, name: str, kind: str, words: str, bound: Bound) -> Values:
        is_wanted = not self._names or name in self._names
        return Values(name, self._lines(name, kind, words), is_wanted, bound)

    # Families of topics and groups.

    def gauges(self, name: str, words: str) -> Values:
        """The family of a value that goes up and down."""
        return self._values(name, "gauge", words, self._bound)

    def counters(self, name: str, words: str) -> Values:
        """The family of a count since the start.

        @param name: ends in C{_total}.
        """
        return self._values(name, "counter", words, self._bound)

    def histograms(self, name: str, words: str, bounds: Sequence[float]) -> Histograms:
        """The family of a distribution.

        @param bounds: the upper bounds of all classes but the last, which is open.
        """
        lines = self._lines(name, "histogram", words)
        return Histograms(name, lines, self._names, bounds, self._bound)

    # Totals of the server.

    def gauge(self, name: str, words: str, value: float, **labels: str) -> None:
        """A value that goes up and down."""
        family = self._values(name, "gauge", words, self._totals)
        family.add(self.labels(**labels), value)

    def counter(self, name: str, words: str, value: float, **labels: str) -> None:
        """A count since the start.

        @param name: ends in C{_total}.
        """
        family = self._values(name, "counter", words, self._totals)
        family.add(self.labels(**labels), value)

    def histogram(
        self,
        name: str,
        words: str,
        bounds: Sequence[float],
        counts: Sequence[int],
        total: float,
        **labels: str,
    ) -> None:
        """How many values fell into each class.

        @param bounds: the upper bounds of all classes but the last, which is open.
        @param counts: one number for each class, not added up.
        @param total: the sum of all values.
        """
        lines = self._lines(name, "histogram", words)
        family = Histograms(name, lines, self._names, bounds, self._totals)
        family.add(self.labels(**labels), counts, total)

    def pieces(self, openmetrics: bool) -> list[bytes]:
        """The text, in pieces; families without samples are not shown.

        @param openmetrics: in that format; else in Prometheus's.
        """
        found: list[bytes] = []
        for name, lines in self._families.items():
            pieces = lines.pieces()
            if pieces:
                shown = name.removesuffix("_total") if openmetrics else name
                head = f"# HELP {shown} {lines.words}\n# TYPE {shown} {lines.kind}\n"
                found += [head.encode(), *pieces]
        if openmetrics:
            found.append(b"# EOF\n")
        return found


def pair(name: str, value: str) -> str:
    """A label as text."""
    if '"' in value or "\\" in value or "\n" in value:
        value = value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    return f'{name}="{value}"'


def constant_labels(text: str) -> dict[str, str]:
    """The labels of metricsLabel: C{key:value,key:value}; others are skipped.

    What a name cannot have becomes an underscore.
    """
    pairs = [item.split(":") for item in text.split(",")]
    return {
        re.sub(r"\W|^(?=\d)", "_", pair[0].strip(), flags=re.ASCII): pair[1].strip()
        for pair in pairs
        if len(pair) == 2 and pair[0].strip()
    }
