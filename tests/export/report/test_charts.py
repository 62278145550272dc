"""Charts as SVG."""

from __future__ import annotations

from xml.etree import ElementTree

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.report.charts import (
    HEIGHT,
    WIDTH,
    Bar,
    bar_chart,
    grid_step,
    short,
    span_bar,
)


def classes(svg: str) -> list[str]:
    """The classes of its shapes, in order."""
    tree = ElementTree.fromstring(svg)
    found = (each.get("class") for each in tree.iter())
    return [each for each in found if each]


class ChartTests(SynchronousTestCase):
    """L{bar_chart} and L{span_bar}."""

    def test_bars(self) -> None:
        """Each value has a bar, on top of it what is missing, inside the drawing."""
        svg = bar_chart("T", [Bar("a", 3, 1), Bar("b", 0), Bar("c<", 5)], (1, "here"))
        found = classes(svg)
        self.assertEqual((found.count("bar"), found.count("missing")), (2, 1))
        self.assertEqual(found.count("mark"), 2)
        self.assertIn("c&lt;", svg)
        for shape in ElementTree.fromstring(svg).iter("rect"):
            x, y, width, height = (
                float(shape.attrib[name]) for name in ("x", "y", "width", "height")
            )
            self.assertTrue(x >= 0 and x + width <= WIDTH, svg)
            self.assertTrue(y >= 0 and y + height <= HEIGHT, svg)

    def test_names(self) -> None:
        """Of many bars only some have names, so that these do not overlap."""
        found = classes(bar_chart("T", [Bar(str(n), n) for n in range(120)]))
        self.assertEqual(found.count("bar"), 119)
        self.assertEqual(found.count("x"), 24)
        long = classes(bar_chart("T", [Bar(f"11-21 {n:05}", n) for n in range(120)]))
        self.assertEqual(long.count("x"), 9)
        self.assertEqual(classes(bar_chart("T", [])).count("bar"), 0)

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
        svg = span_bar("q", [("gone", 0), ("bar", 10**9), ("wait", 1)])
        self.assertEqual(classes(svg), ["span", "bar", "wait"])
        self.assertEqual(classes(span_bar("q", [("bar", 0)])), ["span"])
