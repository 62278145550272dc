"""Programs of users are clean for pyright, too; mypy checks them with all else."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from scripts.lab.servers import ROOT
from tests.integration.official import no_node, node_package

PYRIGHT: Final = "1.1.414"


class PyrightTests(SynchronousTestCase):
    """Pyright, which is installed by npm; pyproject.toml says what it checks."""

    timeout = 300

    def test_programsAndFacesAreClean(self) -> None:
        """As a user sees them who asks for all that can be told."""
        reason = no_node()
        if reason is not None:
            raise SkipTest(reason)
        program = node_package("pyright", PYRIGHT) / "pyright" / "index.js"
        done = subprocess.run(
            ["node", str(program), "--pythonpath", sys.executable],
            capture_output=True,
            text=True,
            cwd=ROOT,
            check=False,
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
