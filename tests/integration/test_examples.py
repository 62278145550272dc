"""The example programs of the documentation, as a user runs them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.servers import ROOT, environment, free_base

#: How long a program may take; nothing is asserted about it.
SECONDS = 180.0


class ExampleTests(SynchronousTestCase):
    """Against `rocketbroker standalone --temporary`."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        base = free_base()
        self.names = f"127.0.0.1:{base}"
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.broker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.app.command", "standalone"),
                    *("--temporary", "--namesrv-port", str(base)),
                    *("--port", str(base + 10), "--metrics-port", str(base + 5)),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment(),
            )
        self.addCleanup(self.stop)
        end = time.monotonic() + SECONDS
        while b"ready: name server" not in self.log.read_bytes():
            self.assertIsNone(self.broker.poll(), self.log.read_text())
            self.assertLess(time.monotonic(), end, self.log.read_text())
            time.sleep(0.01)

    def stop(self) -> None:
        """Stop the broker."""
        self.broker.terminate()
        self.broker.wait(SECONDS)
        shutil.rmtree(self.folder)

    def test_orders(self) -> None:
        """Each paid order is billed once, though one failed; nothing is left."""
        program = ROOT / "docs" / "examples" / "orders.py"
        done = subprocess.run(
            [sys.executable, str(program), self.names],
            capture_output=True,
            text=True,
            env=environment(),
            cwd=self.folder,
            timeout=SECONDS,
        )
        self.assertEqual(done.stderr, "")
        self.assertEqual(
            done.stdout,
            "billed 20 orders, 20 different ones\nbilling has 0 messages left\n",
        )
