"""Contract suites: they are mix-ins, and each is run by more than one class."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from pathlib import Path
from unittest import TestCase

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.testing.contracts import case

TESTS = Path(__file__).resolve().parent.parent


def suites() -> dict[str, type]:
    """All suites, by their names."""
    found = {}
    for path in Path(case.__file__).parent.glob("*.py"):
        module = import_module(f"rocketbroker.testing.contracts.{path.stem}")
        for name, each in inspect.getmembers(module, inspect.isclass):
            if name.endswith("Contract"):
                found[name] = each
    return found


class ContractsTests(SynchronousTestCase):
    """The package L{rocketbroker.testing.contracts}."""

    def test_suitesAreNoTestCasesByThemselves(self) -> None:
        """Trial would run a suite that is one where a module imports it."""
        self.assertGreater(len(suites()), 7)
        wrong = [name for name, each in suites().items() if issubclass(each, TestCase)]
        self.assertEqual(wrong, [])

    def test_eachSuiteIsRunByTwoClassesAtLeast(self) -> None:
        """A suite that one class runs says nothing of a double."""
        counts = dict.fromkeys(suites().keys() - {"Contract"}, 0)
        for path in TESTS.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    for base in map(ast.unparse, node.bases):
                        if base in counts:
                            counts[base] += 1
        self.assertEqual([name for name, count in counts.items() if count < 2], [])
