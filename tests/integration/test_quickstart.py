"""The quickstart, small."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class QuickstartTests(SynchronousTestCase):
    """C{scripts/quickstart.py}."""

    timeout = 600

    def test_small(self) -> None:
        """It sends, receives, exports and compares, and cleans up after itself."""
        folder = Path(self.mktemp()).absolute()
        output = run(
            "quickstart", "--no-install", "--messages", "3000", "--keep", str(folder)
        )
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn(
            "all 3,000 messages were received and exported once, and equal",
            output.stdout,
        )
        self.assertTrue(list(folder.rglob("*.parquet")))
        # Whoever stopped cleanly has removed the mark.
        self.assertFalse((folder / "store" / "abort").exists())

    def test_keepNotEmpty(self) -> None:
        """It does not write among the files of others."""
        folder = Path(self.mktemp())
        folder.mkdir()
        (folder / "file").touch()
        words = "--no-install", "--keep", str(folder.absolute())
        output = run("quickstart", *words)
        self.assertEqual(output.returncode, 2)
        self.assertIn("is not empty", output.stdout)
