"""Which package may import which, so that imports only ever go down."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parent.parent / "rocketbroker"

BELOW_BROKER = {
    "records",
    "wire",
    "filtering",
    "routing",
    "config",
    "files",
    "store",
    "remoting",
    "replication",
    "allocation",
}

#: What each package may import of ours, besides itself and errors.
TABLE: dict[str, set[str]] = {
    "records": set(),
    "wire": set(),
    "config": set(),
    "files": set(),
    "filtering": {"records"},
    "allocation": {"records"},
    "routing": {"records", "wire"},
    "store": {"records", "config", "files"},
    "blocking": {"records", "wire", "routing"},
    "remoting": {"wire", "config"},
    "nameserver": {"wire", "routing", "remoting", "config", "files"},
    "replication": {"wire", "store", "remoting", "config"},
    "client": {
        "records",
        "wire",
        "filtering",
        "allocation",
        "routing",
        "remoting",
        "config",
        "files",
    },
    "broker": BELOW_BROKER,
    "metrics": BELOW_BROKER | {"broker", "nameserver", "client"},
    "spark": {"records", "wire", "routing", "blocking", "store", "files", "config"},
    "export": {"spark", "records", "blocking", "files", "config"},
    "admin": BELOW_BROKER | {"blocking"},
    "testing": BELOW_BROKER | {"broker", "nameserver", "client", "blocking"},
    "app": BELOW_BROKER
    | {"broker", "nameserver", "client", "blocking", "metrics", "spark", "export"}
    | {"admin"},
}

#: Packages that know nothing of Twisted.
WITHOUT_TWISTED = {
    "records",
    "wire",
    "filtering",
    "allocation",
    "routing",
    "config",
    "files",
    "store",
    "blocking",
    "spark",
    "export",
}

#: What pure packages may not touch: the outside world and the time.
IMPURE = {"socket", "select", "threading", "subprocess", "asyncio", "time"}
PURE = {"records", "wire", "filtering", "allocation", "routing"}


def imports(path: Path) -> Iterator[str]:
    """The absolute names of all modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules() -> Iterator[tuple[str, Path, set[str]]]:
    """C{(package, file, imported names)} of each module of ours."""
    for path in sorted(ROOT.rglob("*.py")):
        inside = path.relative_to(ROOT).parts
        if len(inside) > 1:
            yield inside[0], path, set(imports(path))


class TierTests(SynchronousTestCase):
    """The table above holds."""

    def test_packages(self) -> None:
        """Each package of the tree stands in the table."""
        found = {package for package, _, _ in modules()}
        self.assertEqual(found - set(TABLE), set())

    def test_downwards(self) -> None:
        """A package imports only itself, errors, and what the table allows."""
        wrong = []
        for package, path, names in modules():
            for name in names:
                parts = name.split(".")
                if parts[0] != "rocketbroker" or len(parts) < 2:
                    continue
                if parts[1] not in {package, "errors"} | TABLE[package]:
                    wrong.append(f"{path.relative_to(ROOT)} imports {name}")
        self.assertEqual(wrong, [])

    def test_exportAndSparkOfTheStore(self) -> None:
        """Spark sees of the store nothing but its reader."""
        allowed = {"rocketbroker.store", "rocketbroker.store.reader"}
        wrong = [
            name
            for package, _, names in modules()
            if package == "spark"
            for name in names
            if name.startswith("rocketbroker.store")
            and name not in allowed
            and not name.startswith("rocketbroker.store.reader.")
        ]
        self.assertEqual(wrong, [])

    def test_withoutTwisted(self) -> None:
        """What runs in executors and tools does not import Twisted."""
        wrong = [
            str(path)
            for package, path, names in modules()
            if package in WITHOUT_TWISTED
            and any(name.split(".")[0] == "twisted" for name in names)
        ]
        self.assertEqual(wrong, [])

    def test_pure(self) -> None:
        """Pure packages have no I/O and no clock."""
        wrong = [
            f"{path.relative_to(ROOT)} imports {name}"
            for package, path, names in modules()
            if package in PURE
            for name in names
            if name.split(".")[0] in IMPURE
        ]
        self.assertEqual(wrong, [])

    def test_reactor(self) -> None:
        """Only the programs import the reactor."""
        wrong = [
            str(path.relative_to(ROOT))
            for package, path, names in modules()
            if package != "app" and "twisted.internet.reactor" in names
        ]
        self.assertEqual(wrong, [])
