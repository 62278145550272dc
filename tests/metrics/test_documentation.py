"""The list of metrics in the documentation."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parent.parent.parent

NAME = re.compile(r"(rocketmq|rocketbroker)_[a-z0-9_]+")


def constants() -> Iterator[tuple[str, bool]]:
    """The strings in the code of metrics, and whether each is a part of one only."""
    package = ROOT / "rocketbroker"
    for path in [*(package / "metrics").glob("*.py"), package / "spark" / "lag.py"]:
        tree = ast.parse(path.read_text("utf-8"))
        parts = {
            part
            for node in ast.walk(tree)
            if isinstance(node, ast.JoinedStr)
            for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value, node in parts


class DocumentationTests(SynchronousTestCase):
    """C{docs/metrics.rst}."""

    def test_whole(self) -> None:
        """Names of metrics stand in the code as a whole, so that they can be found."""
        parts = [text for text, is_part in constants() if is_part]
        self.assertEqual([text for text in parts if NAME.match(text)], [])

    def test_complete(self) -> None:
        """The list names every metric that there is, and no other."""
        names = {text for text, _ in constants() if NAME.fullmatch(text)}
        text = (ROOT / "docs" / "metrics.rst").read_text("utf-8")
        listed = re.findall(r"^   \* - ``(\w+)``$", text, re.M)
        self.assertEqual(sorted(listed), sorted(names))

    def test_types(self) -> None:
        """Counters end in _total, and nothing else does."""
        text = (ROOT / "docs" / "metrics.rst").read_text("utf-8")
        rows = re.findall(r"^   \* - ``(\w+)``\n     - (\w+)$", text, re.M)
        self.assertGreater(len(rows), 50)
        for name, kind in rows:
            self.assertEqual(kind == "counter", name.endswith("_total"), name)

    def test_used(self) -> None:
        """Rules and dashboard use metrics that there are."""
        text = (ROOT / "docs" / "metrics.rst").read_text("utf-8")
        listed = set(re.findall(r"^   \* - ``(\w+)``$", text, re.M))
        rules = (ROOT / "etc" / "prometheus" / "rocketbroker.rules.yml").read_text()
        used = set(re.findall(r"\b(?:rocketmq|rocketbroker)_\w+", rules))
        dashboard = json.loads(
            (ROOT / "etc" / "grafana" / "rocketbroker.json").read_text()
        )
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                used.update(
                    re.findall(r"\b(?:rocketmq|rocketbroker)_\w+", target["expr"])
                )
        names = {name.removesuffix("_bucket") for name in used}
        self.assertGreater(len(names), 30)
        self.assertEqual(names - listed, set())
