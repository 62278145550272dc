"""The example programs of the documentation, as a user runs them."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import ROOT, environment, free_base

#: How long a program may take; nothing is asserted about it.
SECONDS = 180.0


class ExampleTests(SynchronousTestCase):
    """Against `rocketbroker standalone --temporary`."""

    def setUp(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="rocketbroker-"))
        base = free_base()
        self.metrics_port = base + 5
        self.names = f"127.0.0.1:{base}"
        self.log = self.folder / "log"
        with open(self.log, "wb") as log:
            self.broker = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.cli.command", "standalone"),
                    *("--temporary", "--namesrv-port", str(base)),
                    *(
                        "--port",
                        str(base + 10),
                        "--metrics-port",
                        str(self.metrics_port),
                    ),
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

    def health_check(self, port: int) -> subprocess.Popen[str]:
        """The health check of containers, at work."""
        return subprocess.Popen(
            [sys.executable, "-I", str(ROOT / "etc/container/healthy.py"), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def test_containerIsHealthyWhenClientsCanUseIt(self) -> None:
        """The health check succeeds; not if the answer is another, or there is none."""
        check = self.health_check(self.metrics_port)
        self.assertEqual((check.communicate()[0], check.returncode), ("ok\n", 0))
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            check = self.health_check(port)
            connection = server.accept()[0]
            with connection:
                self.assertIn(b"GET /healthz/ready HTTP/1.1\r\n", connection.recv(4096))
                connection.sendall(b"HTTP/1.0 503 No\r\n\r\nnot registered\n")
            said = check.communicate()[0]
            self.assertEqual((said, check.returncode), ("503: not registered\n", 1))
        check = self.health_check(port)
        said = check.communicate()[0]
        self.assertIn(f"The port {port} of metrics does not answer: ", said)
        self.assertEqual(check.returncode, 1)
