"""The workflows test what setup.cfg promises."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import Any

import yaml
from twisted.trial.unittest import SynchronousTestCase

from scripts.release import MINORS
from scripts.test import EXTRAS, ROOT

FOLDER = ROOT / ".github"


def parsed(path: Path) -> Any:
    """A YAML file as a value."""
    return yaml.safe_load(path.read_text("utf-8"))


class WorkflowTests(SynchronousTestCase):
    """C{.github/workflows}, beside setup.cfg."""

    def setUp(self) -> None:
        """Both, as values."""
        self.settings = configparser.ConfigParser()
        self.settings.read(ROOT / "setup.cfg")
        self.jobs = parsed(FOLDER / "workflows" / "tests.yml")["jobs"]

    def pythons(self) -> list[str]:
        """The Pythons that setup.cfg names."""
        start = "Programming Language :: Python :: 3."
        lines = self.settings["metadata"]["classifiers"].split("\n")
        found = [line.removeprefix(start) for line in lines if line.startswith(start)]
        return [f"3.{minor}" for minor in found]

    def test_matrixHasThePythonsOfSetupCfg(self) -> None:
        """Each Python that is promised is tested, and has its compiled wheel."""
        matrix = self.jobs["fast"]["strategy"]["matrix"]
        self.assertEqual(matrix["python"], self.pythons())
        self.assertEqual([f"3.{minor}" for minor in MINORS], self.pythons())
        least = self.settings["options"]["python_requires"]
        self.assertEqual(f">={self.pythons()[0]}", least)

    def test_matrixHasNewestAndOldestDependencies(self) -> None:
        """Both ends of what setup.cfg allows are installed."""
        matrix = self.jobs["fast"]["strategy"]["matrix"]
        ways = {row["dependencies"]: row["resolution"] for row in matrix["include"]}
        self.assertEqual(list(ways), matrix["dependencies"])
        self.assertEqual(ways, {"newest": "highest", "oldest": "lowest-direct"})

    def test_extrasOfTheWorkflowsExist(self) -> None:
        """What is installed has a name in setup.cfg."""
        text = (FOLDER / "workflows" / "tests.yml").read_text("utf-8")
        extras = set(self.settings["options.extras_require"])
        for line in text.splitlines():
            if "'.[" in line:
                named = line.split("'.[")[1].split("]")[0].split(",")
                self.assertLessEqual(set(named), extras, line)

    def test_unitTestsRunWithTheirExtraAlone(self) -> None:
        """And once with all extras."""
        unit, fast = ([*self.jobs[name]["steps"]] for name in ("unit", "fast"))
        self.assertIn("'.[test]'", unit[-2]["run"])
        self.assertIn(f"'.[{EXTRAS}]'", fast[-2]["run"])

    def test_scriptsOfTheWorkflowsExist(self) -> None:
        """What is run lies in the checkout."""
        for job in self.jobs.values():
            for step in job["steps"]:
                for word in step.get("run", "").split():
                    if word.startswith("scripts/"):
                        self.assertTrue((ROOT / word).exists(), word)


class TemplateTests(SynchronousTestCase):
    """C{.github/ISSUE_TEMPLATE}."""

    def test_formsHaveNamesAndFields(self) -> None:
        """GitHub leaves out a form without a name, a description or a body."""
        forms = sorted((FOLDER / "ISSUE_TEMPLATE").glob("*.yml"))
        self.assertGreater(len(forms), 1)
        for path in forms:
            form = parsed(path)
            if path.name != "config.yml":
                self.assertTrue(form["name"] and form["description"], path.name)
                fields = [field["id"] for field in form["body"] if "id" in field]
                self.assertEqual(len(fields), len(set(fields)), path.name)
                self.assertTrue(fields, path.name)
