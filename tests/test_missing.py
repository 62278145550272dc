"""Test modules that need what is not installed."""

from __future__ import annotations

import configparser
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from unittest import TestResult

from twisted.trial.unittest import SynchronousTestCase

from tests.missing import EXTRAS, SkippingLoader, needs

ROOT = Path(__file__).resolve().parent.parent

#: Packages of this name are none.
NONE = "rocketbroker_has_no_such_package"


class MissingTests(SynchronousTestCase):
    """Imports that fail, and the tests that stand for a module then."""

    def load(self, text: str) -> ModuleType:
        """A test module with this text, of whose packages one may be missing."""
        path = Path(self.mktemp())
        path.write_text(text)
        loader = SkippingLoader("tests.test_some", str(path), {NONE: "integration"})
        spec = spec_from_file_location("tests.test_some", path, loader=loader)
        assert spec is not None
        module = module_from_spec(spec)
        loader.exec_module(module)
        return module

    def test_moduleThatNeedsAMissingPackageIsOneSkippedTest(self) -> None:
        """The reason names the package, and the extra that brings it."""
        for text in (f"import {NONE}", f"from {NONE}.inner import some"):
            tests = self.load(text).NotInstalledTests
            why = f"{NONE} is missing: pip install --editable '.[test,integration]'"
            self.assertEqual(tests.skip, why)
            test = tests("test_module")
            self.assertEqual(test.id(), "tests.test_some.NotInstalledTests.test_module")

    def test_otherImportsThatFailAreErrors(self) -> None:
        """A misspelled module of ours is no package that is missing."""
        self.assertRaises(ModuleNotFoundError, self.load, "import rocketbroker.no")
        self.assertRaises(ImportError, self.load, "from rocketbroker import no")

    def test_modulesWithAllPackagesAreLoadedAsTheyAre(self) -> None:
        """Nothing is put into them."""
        module = self.load("import twisted; answer = 42")
        self.assertEqual(module.answer, 42)
        self.assertFalse(hasattr(module, "NotInstalledTests"))

    def test_testsThatImportLateSayWhatTheyNeed(self) -> None:
        """They are skipped, too, and run where it is there."""

        class LateTests(SynchronousTestCase):
            @needs("pyarrow")
            def test_arrow(self) -> None:
                """It needs Arrow."""
                import pyarrow  # noqa: F401

        result = TestResult()
        LateTests("test_arrow").run(result)
        self.assertTrue(result.wasSuccessful())
        if result.skipped:
            self.assertIn("'.[test,spark]'", result.skipped[0][1])

    def test_extrasAreThoseOfSetupCfg(self) -> None:
        """A package that may be missing is not among those of unit tests."""
        settings = configparser.ConfigParser()
        settings.read(ROOT / "setup.cfg", "utf-8")
        extras = settings["options.extras_require"]
        self.assertLessEqual(set(EXTRAS.values()), set(extras))
        for package, extra in EXTRAS.items():
            self.assertNotIn(package.replace("_", "-"), extras["test"], extra)
