"""Names that users have in their programs, dashboards and files: docs/api.rst."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.settings_page import SECTIONS
from rocketbroker.wire.codes import RequestCode, ResponseCode
from tests.missing import needs

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "api.rst").read_text("utf-8")

#: Names that 0.1.0 had, a line each: kind and name, of a code its number, too.
STABLE = Path(__file__).with_name("stable_names.txt")


def documented() -> dict[str, list[str]]:
    """The names of each module in the page."""
    rows = re.findall(r"^   \* - ``([\w.]+)``\n     - (.*(?:\n       .*)*)", PAGE, re.M)
    return {
        module: re.findall(r"``(\w+)``", names.split(": ")[0]) for module, names in rows
    }


def present() -> set[str]:
    """The names that there are, as lines of the file."""
    metrics = (ROOT / "docs" / "metrics.rst").read_text("utf-8")
    options = (ROOT / "docs" / "spark-options.rst").read_text("utf-8")
    return {
        *(f"setting {k}" for s in SECTIONS for k in s.options.keys()),  # noqa: SIM118
        *(f"request {code.name} {code.value}" for code in RequestCode),
        *(f"response {code.name} {code.value}" for code in ResponseCode),
        *(f"metric {n}" for n in re.findall(r"^   \* - ``(\w+)``$", metrics, re.M)),
        *(f"option {n}" for n in re.findall(r"^   \* - ``(\w+)``$", options, re.M)),
    }


class ImportTests(SynchronousTestCase):
    """What the page lists can be imported."""

    @needs("opentelemetry")
    @needs("pyspark")
    def test_eachNameIsThere(self) -> None:
        """All names of all modules are where the page says."""
        found = documented()
        self.assertGreater(len(found), 8)
        for module, names in found.items():
            there = import_module(module)
            self.assertNotEqual(names, [])
            for name in names:
                self.assertTrue(hasattr(there, name), f"{module}.{name}")
        self.flushWarnings()  # of names that are going

    def test_namesThatPackagesHandOnAreListed(self) -> None:
        """What these packages hand on stands in the page."""
        found = documented()
        for package in ("blocking", "arrow", "threads", "aio", "deferred", "testing"):
            module = f"rocketbroker.{package}"
            handed_on = sorted(import_module(module).__all__)
            self.assertEqual(sorted(found[module]), handed_on)


class StableNameTests(SynchronousTestCase):
    """Names that dashboards, settings files and clients have stay."""

    def test_namesOfFirstReleaseAreThere(self) -> None:
        """None has gone, and no code has another number."""
        listed = STABLE.read_text("utf-8").splitlines()
        self.assertGreater(len(listed), 700)
        self.assertEqual(sorted(set(listed) - present()), [])
