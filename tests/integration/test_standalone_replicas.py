"""`rocketbroker standalone --replicas 2`: a pair in one command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.threads import connect
from scripts.lab.servers import environment

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command")

#: How long a process may take to end, or a slave to follow.
SECONDS = 120


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


class PairTests(SynchronousTestCase):
    """A broker and its slave."""

    def setUp(self) -> None:
        """Both are ready, on free ports."""
        words = "standalone --namesrv-port 0 --port 0 --metrics-port off --replicas 2"
        self.folder = Path(self.mktemp()).absolute()
        self.process = subprocess.Popen(
            [*COMMAND, *words.split(), "--dir", str(self.folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
            text=True,
        )
        self.addCleanup(self.process.communicate)
        self.addCleanup(self.process.kill)
        assert self.process.stdout is not None
        ready = self.process.stdout.readline()
        self.assertIn(", slave ", ready)
        self.names = ready.split()[3].rstrip(",")
        task = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        (self.slave,) = map(int, task.read_text().split())

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """What 'broker replicas' shows."""
        words = ["broker", "replicas", "-n", self.names, "-o", "json"]
        done = subprocess.run(
            [*COMMAND, *words], env=environment(), capture_output=True, check=True
        )
        return [row for row in json.loads(done.stdout) if row["kind"] == kind]

    def wait(self, reached: Any, what: str) -> None:
        """Wait until something is so."""
        end = time.monotonic() + SECONDS
        while not reached():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.2)

    def test_copies(self) -> None:
        """What is sent is copied; a signal stops both."""
        with connect(self.names) as session:
            for number in range(5):
                session.send("Copied", b"%d" % number)

        def is_copied() -> bool:
            rows = self.rows("slave")
            return bool(rows) and rows[0]["behind"] == 0

        self.wait(is_copied, "the slave has not caught up")
        (master,), (slave,) = self.rows("master"), self.rows("broker")
        self.assertGreater(master["end"], 0)
        self.assertEqual((slave["end"], slave["id"]), (master["end"], 1))
        self.assertEqual((slave["state"], slave["problem"]), ("TRANSFER", ""))
        self.process.send_signal(signal.SIGINT)
        self.assertEqual(self.process.wait(SECONDS), 0)
        self.assertFalse(is_alive(self.slave))
        self.assertTrue((self.folder / "replica-1" / "commitlog").is_dir())

    def test_slaveDies(self) -> None:
        """When the slave ends, all stop, and it is said why."""
        os.kill(self.slave, signal.SIGKILL)
        _, errors = self.process.communicate(timeout=SECONDS)
        self.assertEqual(self.process.returncode, 1)
        self.assertIn("The slave 1 has ended (-9), and all stop.", errors)
        self.assertIn(str(self.folder / "replica-1" / "broker.log"), errors)

    def test_parentDies(self) -> None:
        """A slave does not outlive the command, however that ends."""
        self.process.kill()
        self.wait(lambda: not is_alive(self.slave), "the slave goes on")
