"""Who imports whom in C{scripts/}, and how those that kill judge what is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from itertools import islice
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.torture.harness import judge, noted, options, parsed

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "scripts"

#: An import of ours that stands in a text, for another process.
IMPORT = re.compile(r"(?m)^from (rocketbroker[.\w]*) import ([\w, ]+)$")

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


def imported_in_texts(path: Path) -> Iterator[tuple[str, str]]:
    """The modules of ours, and names in them, that programs in texts import."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in IMPORT.findall(node.value):
                for name in names.split(","):
                    yield module, name.split()[0]


def exists(module: str, name: str) -> bool:
    """Whether a module of ours is there, and has a name or a module of that name."""
    path = ROOT.joinpath(*module.split("."))
    if not path.is_dir():
        file = path.with_suffix(".py")
        text = file.read_text("utf-8") if file.exists() else ""
        return bool(re.search(rf"\b{name}\b", text))
    handed_on = f'"{name}"' in (path / "__init__.py").read_text("utf-8")
    return handed_on or (path / name).is_dir() or (path / f"{name}.py").exists()


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

    def test_programsInTextsImportWhatIsThere(self) -> None:
        """A rename finds them, too: no checker of types reads them."""
        found = {
            (str(path.relative_to(ROOT)), *one)
            for path in (
                *SCRIPTS.rglob("*.py"),
                *(ROOT / "tests" / "integration").rglob("*.py"),
            )
            for one in imported_in_texts(path)
        }
        wrong = [one for one in sorted(found) if not exists(*one[1:])]
        self.assertEqual(wrong, [])
        self.assertGreater(len(found), 10)


class VerdictTests(SynchronousTestCase):
    """L{judge} and what it is told."""

    def test_allThatWasAcknowledgedIsThereOnce(self) -> None:
        """What was sent and not acknowledged may be there, and is told."""
        verdict = judge({1, 2}, [2, 1, 3])
        self.assertTrue(verdict.is_good)
        self.assertEqual((verdict.acknowledged, verdict.stored), (2, 3))
        self.assertEqual(verdict.strange, ["3"])

    def test_missingAndRepeatedMessagesAreNamed(self) -> None:
        """Each with an example."""
        verdict = judge({1, 2}, [1, 1])
        self.assertFalse(verdict.is_good)
        self.assertEqual([*verdict.examples()], ["missing: 2", "twice: 1"])

    def test_nothingAcknowledgedIsNotGood(self) -> None:
        """Nor is a load that has sent nothing."""
        self.assertFalse(judge(set(), []).is_good)

    def test_unfinishedLineOfANoteIsLeftOut(self) -> None:
        """Its producer was killed in the middle of it."""
        note = Path(self.mktemp())
        note.write_text("1.1 0 0\n1.2 0")
        self.assertEqual([*noted(note, 3)], [["1.1", "0", "0"]])


class OptionsTests(SynchronousTestCase):
    """The options of all that kill."""

    def numbers(self, *line: str) -> list[int]:
        """The first rounds of a command line, at most five."""
        return [*islice(parsed(options(None), 3, 1, line=line).numbers(), 5)]

    def test_roundsAreThoseOfTheScriptUnlessGiven(self) -> None:
        """C{--quick} has a number of its own."""
        self.assertEqual(self.numbers(), [0, 1, 2])
        self.assertEqual(self.numbers("--quick"), [0])
        self.assertEqual(self.numbers("--quick", "--rounds", "2"), [0, 1])

    def test_secondsAloneAreNoNumberOfRounds(self) -> None:
        """Rounds begin until the time is over."""
        self.assertEqual(self.numbers("--seconds", "1000"), [0, 1, 2, 3, 4])
        self.assertEqual(self.numbers("--seconds", "1e-9"), [])
        self.assertEqual(self.numbers("--seconds", "1000", "--rounds", "2"), [0, 1])

    def test_directoryWithFilesIsRefused(self) -> None:
        """A store of another run would be read."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "x").touch()
        said = StringIO()
        with redirect_stderr(said):
            self.assertRaises(SystemExit, self.numbers, "--directory", str(folder))
        self.assertIn(f"{folder} is not empty", said.getvalue())
