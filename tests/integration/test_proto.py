"""The generated messages of the proxy, beside their interface file."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.proto import ROOT

MADE = ("messages_pb2.py", "messages_pb2.pyi")


class GeneratedTests(SynchronousTestCase):
    """C{scripts/proto.py}."""

    timeout = 300

    def test_messagesAreMadeOfTheInterfaceFile(self) -> None:
        """By the generator whose protobuf setup.cfg names, which is too old for the
        environment of what users get today."""
        with tempfile.TemporaryDirectory() as folder:
            script = [sys.executable, "scripts/proto.py", "--into", folder]
            subprocess.run(script, cwd=ROOT, check=True)
            for name in MADE:
                place = Path("rocketbroker", "proxy", name)
                new = (Path(folder) / place).read_text("utf-8")
                self.assertEqual(new, (ROOT / place).read_text("utf-8"), name)
