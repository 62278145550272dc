"""The rules of the house that a machine can check."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parent.parent
OURS = ("rocketbroker", "pyspark_rocketmq", "scripts", "tests", "twisted_plugins")
#: A longer module fails. Above 500 lines, look again at what it holds.
MAX_LINES = 800
MAX_LINES_A_FUNCTION = 80
MAX_COLUMNS = 88
#: Spark takes its data source from the top of a package, and from nowhere else. The
#: others are packages that users import: they hand names on.
CODE_IN_INIT = {
    "pyspark_rocketmq/__init__.py",
    *(
        f"rocketbroker/{package}/__init__.py"
        for package in ("blocking", "arrow", "aio", "threads", "deferred", "testing")
    ),
}
#: A module's docstring names the module's noun first, and asks nothing.
NO_NOUNS = {"How", "What", "When", "Where", "Whether", "Which", "Who", "Why"}
SETTERS = ("setattr", "delattr")
VAGUE = {"manager", "handler", "engine", "helper", "util", "utils", "common", "base"}


def files(*folders: str) -> Iterator[Path]:
    """All Python files below C{folders}."""
    for folder in folders or OURS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not path.name.endswith("_pb2.py"):  # made by scripts/proto.py
                yield path


def name(path: Path) -> str:
    """A file's path inside the repository."""
    return str(path.relative_to(ROOT))


def holding(pattern: str, *folders: str) -> list[str]:
    """The names of all files below C{folders} with a line that matches."""
    compiled = re.compile(pattern, re.MULTILINE)
    return [name(p) for p in files(*folders) if compiled.search(p.read_text("utf-8"))]


def private_assignments(tree: ast.AST) -> Iterator[ast.expr]:
    """Where a private attribute, or an item of one, is set or deleted; those of C{self}
    and C{cls} are left out."""
    for node in ast.walk(tree):
        whose, attribute = None, ""
        if isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
            target = node
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute):
                whose, attribute = target.value, target.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in SETTERS:
            whose, attribute = node.args[0], ast.unparse(node.args[1]).strip("'")
        own = isinstance(whose, ast.Name) and whose.id in ("self", "cls")
        private = attribute.startswith("_") and not attribute.endswith("__")
        if private and not own:
            assert isinstance(node, ast.expr)
            yield node


class HouseTests(SynchronousTestCase):
    """Size, naming and heads of modules."""

    def test_lines(self) -> None:
        """No module is longer than a reader can hold in the head: L{MAX_LINES}."""
        long = [
            f"{name(path)}: {count}"
            for path in files()
            if (count := len(path.read_text("utf-8").splitlines())) > MAX_LINES
        ]
        self.assertEqual(long, [])

    def test_columns(self) -> None:
        """No line is wider than 88 columns."""
        wide = [
            f"{name(path)}:{number}"
            for path in files()
            for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
            if len(line) > MAX_COLUMNS
        ]
        self.assertEqual(wide, [])

    def test_functions(self) -> None:
        """No function is longer than a screen."""
        long = []
        for path in files():
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    count = (node.end_lineno or 0) - node.lineno + 1
                    if count > MAX_LINES_A_FUNCTION:
                        long.append(f"{name(path)}: {node.name}: {count}")
        self.assertEqual(long, [])

    def test_heads(self) -> None:
        """A module names its tests and itself, and postpones annotations."""
        wrong = []
        for path in files("rocketbroker", "pyspark_rocketmq"):
            text = path.read_text("utf-8")
            first = text.split("\n", 1)[0]
            match = re.fullmatch(r"# -\*- test-case-name: ([\w.]+) -\*-", first)
            if not match:
                wrong.append(f"{name(path)}: first line")
                continue
            tests = ROOT.joinpath(*match[1].split("."))
            if not tests.with_suffix(".py").exists() and not tests.is_dir():
                wrong.append(f"{name(path)}: {match[1]} does not exist")
            tree = ast.parse(text)
            words = (ast.get_docstring(tree) or "").split()
            if not words:
                wrong.append(f"{name(path)}: no docstring")
            elif words[0] in NO_NOUNS:
                wrong.append(f"{name(path)}: the docstring begins with {words[0]}")
            if path.name == "__init__.py":
                if len(tree.body) != 1 and name(path) not in CODE_IN_INIT:
                    wrong.append(f"{name(path)}: code in __init__")
            elif "from __future__ import annotations" not in text:
                wrong.append(f"{name(path)}: annotations are not postponed")
        self.assertEqual(wrong, [])

    def test_scriptsForUsersSayWhichPythonTheyNeed(self) -> None:
        """Those that a user starts with the Python of the system can be read by an
        older one, and the first that they do is to refuse it."""
        settings = configparser.ConfigParser()
        settings.read(ROOT / "setup.cfg", "utf-8")
        least = settings["options"]["python_requires"].removeprefix(">=").split(".")
        check = f"sys.version_info < ({', '.join(least)})"
        for script in ("quickstart", "test", "wheel"):
            text = (ROOT / "scripts" / f"{script}.py").read_text("utf-8")
            # What this does not refuse: postponed annotations, which came with 3.7.
            _, _, first, *_ = ast.parse(text, feature_version=(3, 6)).body
            assert isinstance(first, ast.If), script
            self.assertEqual(ast.unparse(first.test), check)
            self.assertNotIn("from __future__", text)

    def test_names(self) -> None:
        """No module or class has a name that could mean anything."""
        wrong = []
        for path in files("rocketbroker"):
            if path.stem in VAGUE:
                wrong.append(name(path))
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef):
                    last = re.findall(r"[A-Z][a-z]*", node.name)[-1:]
                    if last and last[0].lower() in VAGUE:
                        wrong.append(f"{name(path)}: {node.name}")
        self.assertEqual(wrong, [])

    def test_testsSayWhat(self) -> None:
        """Each test method states the behaviour that it shows."""
        wrong = [
            f"{name(path)}: {node.name}"
            for path in files("tests")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
            and not ast.get_docstring(node)
        ]
        self.assertEqual(wrong, [])

    def test_packages(self) -> None:
        """setup.cfg names every package."""
        config = configparser.ConfigParser()
        config.read(ROOT / "setup.cfg")
        named = set(config["options"]["packages"].split()) - {"twisted.plugins"}
        found = {
            ".".join(path.parent.relative_to(ROOT).parts)
            for top in ("rocketbroker", "pyspark_rocketmq")
            for path in (ROOT / top).rglob("__init__.py")
        }
        self.assertEqual(named, found)

    def test_filesBesideModulesAreInstalled(self) -> None:
        """setup.cfg names each as data of its package."""
        config = configparser.ConfigParser()
        config.read(ROOT / "setup.cfg")
        named = {
            f"{package.replace('.', '/')}/{file}"
            for package, files in config["options.package_data"].items()
            for file in files.split()
        }
        found = {
            name(path)
            for path in (ROOT / "rocketbroker").rglob("*.*")
            if path.suffix not in (".py", ".pyc", ".so")
        }
        self.assertEqual(named, found)

    def test_noMocks(self) -> None:
        """Doubles are verified fakes; a mock accepts a misspelled method."""
        pattern = r"^\s*(import|from) .*\bmock\b|self\.patch\("
        self.assertEqual(holding(pattern, "tests", "rocketbroker"), [])

    def test_noAssignmentsToPrivateAttributes(self) -> None:
        """What a test must replace is given to the constructor of what it tests: a test
        that reaches into an object breaks when its inside is written anew."""
        wrong = [
            f"{name(path)}:{node.lineno}: {ast.unparse(node)}"
            for path in files("tests")
            for node in private_assignments(ast.parse(path.read_text("utf-8")))
        ]
        self.assertEqual(wrong, [])

    def test_eachWayToAssignToPrivateAttributesIsFound(self) -> None:
        """Those of C{self} are the test's own; to read one is no assignment."""
        for statement in (
            "a._b = 1",
            "a.b._c += 1",
            "self.a._b: int = 1",
            "x, (y, a._b) = z",
            "a._b[1][2] = 3",
            "del a._b",
            "for a._b in z: pass",
            "with z as a._b: pass",
            "setattr(a, '_b', 1)",
        ):
            found = [*private_assignments(ast.parse(statement))]
            self.assertEqual(len(found), 1, statement)
        for statement in ("self._b = a._b", "a.b[c._d] = 1", "a.__doc__ = ''"):
            found = [*private_assignments(ast.parse(statement))]
            self.assertEqual(found, [], statement)

    def test_oneSetUp(self) -> None:
        """Trial calls setUp once for each test; nothing else does."""
        self.assertEqual(holding(r"self\.setUp\(", "tests"), [])

    def test_noTestsOfOthers(self) -> None:
        """What several test modules need stands in a module without tests: a test class
        that comes along with an import would run twice."""
        module = r"^\s*(import|from) tests\.(\w+\.)*test_"
        whole = r"^\s*from tests\S* import .*\btest_"
        self.assertEqual(holding(f"{module}|{whole}", "tests"), [])
