"""A disk that becomes full, small."""

from __future__ import annotations

import os
import sys

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.integration.scripts import run


class FullDiskTests(SynchronousTestCase):
    """C{scripts/torture/full_disk.py}."""

    timeout = 300

    def test_quick(self) -> None:
        """A broker on a full disk refuses with the figures, loses nothing, comes up
        after any stop, and takes messages again by itself."""
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise SkipTest("only root may mount a small tmpfs")
        output = run("torture/full_disk", "--inside", "--quick")
        if output.returncode == 2:
            raise SkipTest(output.stdout.strip())
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertEqual(output.stdout.count("sends refused"), 3, output.stdout)
        self.assertIn("the disk is full: ", output.stdout)
        self.assertIn("are free", output.stdout)
