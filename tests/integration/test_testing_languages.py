"""A broker for tests in other languages: the files to copy, with their examples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from scripts.lab.javaclient import building, why_not
from scripts.lab.servers import ROOT, environment
from tests.heavy import HEAVY
from tests.integration.official import no_node

FILES = ROOT / "docs" / "examples" / "testing"


class LanguageCase(SynchronousTestCase):
    """Runs an example as it stands there."""

    timeout = 900

    def run_in(self, language: str, *words: str) -> str:
        """Run a program in a copy of the files of a language; what it says."""
        folder = Path(self.mktemp()).absolute()
        shutil.copytree(FILES / language, folder)
        program = folder / "rocketbroker"
        command = f"{sys.executable} -m rocketbroker.cli.command"
        program.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        program.chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            words,
            cwd=folder,
            env={**environment(), "PATH": path, "ROCKETBROKER": str(program)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout


class LanguageTests(LanguageCase):
    """What is quickly run."""

    def test_extensionOfJUnitGivesTestsTheirBroker(self) -> None:
        """The class for Testcontainers is compiled with it."""
        reason = why_not()
        if reason is not None:
            raise SkipTest(reason)
        home = f"-DargLine=-Duser.home={Path(self.mktemp()).absolute()}"
        with building():
            said = self.run_in("java", "mvn", "-B", home, "test")
        self.assertIn("Tests run: 3, Failures: 0, Errors: 0, Skipped: 0", said)

    def test_fileForNodeStartsAndStopsABroker(self) -> None:
        """And its topics are made by the command line."""
        reason = no_node()
        if reason is not None:
            raise SkipTest(reason)
        said = self.run_in("node", "node", "--test", "--test-reporter=tap", ".")
        self.assertIn("\n# pass 2\n# fail 0\n", said)


if HEAVY:

    class GoTests(LanguageCase):
        """Go, whose official client is compiled with all that it needs."""

        def test_fileForGoGivesTestsTheirBroker(self) -> None:
            """Messages go from the official producer to the official consumer."""
            if shutil.which("go") is None:
                raise SkipTest("needs Go; not found: go")
            said = self.run_in("go", "go", "test", "-mod=mod", "-v", "./...")
            self.assertIn("--- PASS: TestOrderIsBilled", said)
