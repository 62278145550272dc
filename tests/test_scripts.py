"""Who imports whom in C{scripts/}."""

from __future__ import annotations

import ast
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"

#: What each room may import of the others; "" are the scripts beside the rooms.
ROOMS: dict[str, set[str]] = {
    "": set(),
    "lab": {""},
    "bench": {"", "lab"},
    "torture": {"", "lab"},
}


def imported(path: Path) -> set[str]:
    """The modules, and names in them, that a file imports anywhere in it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(module: str) -> str:
    """The room of a module of C{scripts}."""
    room = module.split(".")[1]
    return room if room in ROOMS else ""


class ScriptsTests(SynchronousTestCase):
    """C{scripts/} and its rooms."""

    def test_nothingImportsTests(self) -> None:
        """Scripts run without tests; those may import parts of scripts."""
        wrong = [
            f"{path.relative_to(SCRIPTS)}: {name}"
            for path in SCRIPTS.rglob("*.py")
            for name in imported(path)
            if name.split(".")[0] == "tests"
        ]
        self.assertEqual(wrong, [])

    def test_measurementsAndTortureDoNotImportEachOther(self) -> None:
        """What both need is in C{lab}, which imports neither."""
        wrong = []
        for path in SCRIPTS.rglob("*.py"):
            room = path.parent.name if path.parent != SCRIPTS else ""
            for name in imported(path):
                if name.startswith("scripts."):
                    other = room_of(name)
                    if other != room and other not in ROOMS[room]:
                        wrong.append(f"{path.relative_to(SCRIPTS)}: {name}")
        self.assertEqual(wrong, [])
