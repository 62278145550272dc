"""README and the pages, walked from the top to the bottom as a new reader would."""

from __future__ import annotations

import os

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from tests.heavy import HEAVY
from tests.integration.scripts import run


class WalkTests(SynchronousTestCase):
    """C{scripts/walk.py}."""

    timeout = 3600

    def test_everyStepWorks(self) -> None:
        """No command, program or query of a page fails as it stands.

        The large form is in a new Debian, where only what the pages say is installed.
        """
        if os.geteuid() != 0:
            raise SkipTest("namespaces need root")
        output = run("walk", *(["--bare"] if HEAVY else []))
        self.assertEqual(output.returncode, 0, output.stdout)
        self.assertIn(", 0 failed", output.stdout.splitlines()[-1])
