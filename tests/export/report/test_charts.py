"""The shapes of charts."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.report.charts import (
    HEIGHT,
    LEFT,
    WIDTH,
    Bar,
    Chart,
    bar_chart,
    grid_step,
    short,
    span_bar,
)


def names(chart: Chart) -> int:
    """How many bars have names."""
    return sum(column.name is not None for column in chart.columns)


class ChartTests(SynchronousTestCase):
    """L{bar_chart} and L{span_bar}."""

    def test_bars(self) -> None:
        """Each value has a bar, on top of it what is missing, inside the drawing."""
        chart = bar_chart("T", [Bar("a", 3, 1), Bar("b", 0), Bar("c", 5)], (1, "here"))
        shapes = [box for column in chart.columns for box in column.boxes]
        found = [box.kind for box in shapes]
        self.assertEqual((found.count("bar"), found.count("missing")), (2, 1))
        self.assertEqual(found.count("column"), 3)
        assert chart.mark is not None
        self.assertEqual(chart.mark.text, "here")
        self.assertTrue(LEFT < chart.mark.at < WIDTH)
        for box in shapes:
            self.assertTrue(box.x >= 0 and box.x + box.width <= WIDTH, box)
            self.assertTrue(box.y >= 0 and box.y + box.height <= HEIGHT, box)

    def test_names(self) -> None:
        """Of many bars only some have names, so that these do not overlap."""
        chart = bar_chart("T", [Bar(str(n), n) for n in range(120)])
        kinds = [box.kind for column in chart.columns for box in column.boxes]
        self.assertEqual(kinds.count("bar"), 119)
        self.assertEqual(names(chart), 24)
        long = bar_chart("T", [Bar(f"11-21 {n:05}", n) for n in range(120)])
        self.assertEqual(names(long), 9)
        self.assertEqual(bar_chart("T", []).columns, ())

    def test_numbers(self) -> None:
        """Numbers at the side are round and short."""
        self.assertEqual(
            [grid_step(n) for n in (0, 1, 4, 7, 999, 12_000)],
            [1.0, 0.5, 1.0, 2.0, 500.0, 5000.0],
        )
        self.assertEqual(
            [short(n) for n in (0, 0.5, 950, 12_500, 3_000_000, 4e9, 5e12)],
            ["0", "0.5", "950", "12.5 k", "3 M", "4 G", "5 T"],
        )

    def test_span(self) -> None:
        """Parts lie beside one another; an empty one is not there, a small one is
        seen."""
        span = span_bar("q", [("gone", 0), ("bar", 10**9), ("wait", 1)])
        self.assertEqual([box.kind for box in span.boxes], ["bar", "wait"])
        self.assertEqual(span_bar("q", [("bar", 0)]).boxes, ())
