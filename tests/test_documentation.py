"""The pages of docs/, and that they can be built: C{scripts/docs.py}."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.docs import PARTS
from scripts.test import ROOT
from tests.heavy import HEAVY

PAGES = ROOT / "docs"


class PageTests(SynchronousTestCase):
    """What can be seen without building them."""

    def test_everyPageStandsInTheIndex(self) -> None:
        """Who reads the built pages finds all of them."""
        index = (PAGES / "index.rst").read_text("utf-8")
        listed = re.findall(r"^   ([a-z][\w/-]*)$", index, re.M)
        there = [path.stem for path in PAGES.glob("*.rst") if path.stem != "index"]
        self.assertEqual(sorted(listed), sorted([*there, "facts/index"]))

    def test_namesOfPagesAreThoseOfFiles(self) -> None:
        """A page that another one names exists: Sphinx makes a link of the name."""
        wrong = []
        for path in (*PAGES.rglob("*.rst"), *ROOT.glob("*.rst")):
            text = path.read_text("utf-8")
            for name in re.findall(r"``(docs/[\w/.-]+\.(?:rst|md))``", text):
                if not (ROOT / name).exists():
                    wrong.append(f"{path.relative_to(ROOT)}: {name}")
        self.assertEqual(wrong, [])


if HEAVY:

    class BuildTests(SynchronousTestCase):
        """The whole build, which takes a minute or two of a processor."""

        timeout = 1800

        def test_buildHasNoWarning(self) -> None:
            """Neither Sphinx nor pydoctor finds a link, a table or a list wrong."""
            folder = Path(self.mktemp()).absolute()
            done = subprocess.run(
                [sys.executable, "scripts/docs.py", "--no-install", "--into", folder],
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            self.assertEqual(done.returncode, 0, done.stdout)
            for part in PARTS:
                self.assertTrue((folder / part / "index.html").exists(), part)
