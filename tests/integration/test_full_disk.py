"""A disk that becomes full, small."""

from __future__ import annotations

import os
import sys

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.integration.scripts import run


class FullDiskTests(SynchronousTestCase):
    """C{scripts/full_disk.py}."""

    timeout = 300

    def test_quick(self) -> None:
        """A broker on a full disk refuses with the figures, loses nothing, comes up
        after any stop, and takes messages again by itself."""
        if not sys.platform.startswith("linux") or os.geteuid() != 0:
            raise SkipTest("only root may mount a small tmpfs")
        said = run("full_disk", "--inside", "--quick")
        if said.returncode == 2:
            raise SkipTest(said.stdout.strip())
        self.assertEqual(said.returncode, 0, said.stdout)
        self.assertEqual(said.stdout.count("sends refused"), 3, said.stdout)
        self.assertIn("the disk is full: ", said.stdout)
        self.assertIn("are free", said.stdout)
