"""The quickstart, small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

ROOT = Path(__file__).resolve().parents[2]


class QuickstartTests(SynchronousTestCase):
    """C{scripts/quickstart.py}."""

    timeout = 600

    def test_small(self) -> None:
        """It sends, receives, exports and compares, and cleans up after itself."""
        folder = Path(self.mktemp()).absolute()
        said = subprocess.run(
            [sys.executable, "scripts/quickstart.py", "--no-install"]
            + ["--messages", "3000", "--keep", str(folder)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertIn(
            "all 3,000 messages were received and exported once, and equal",
            said.stdout,
        )
        self.assertTrue(list(folder.rglob("*.parquet")))
        # Whoever stopped cleanly has removed the mark.
        self.assertFalse((folder / "store" / "abort").exists())

    def test_keepNotEmpty(self) -> None:
        """It does not write among the files of others."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "file").touch()
        said = subprocess.run(
            [sys.executable, "scripts/quickstart.py", "--no-install"]
            + ["--keep", str(folder.absolute())],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(said.returncode, 2)
        self.assertIn("is not empty", said.stderr)
