"""Forged requests and broken handshakes, at a broker that others use at that time."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.heavy import HEAVY
from tests.integration.scripts import run
from tests.missing import needs

REQUESTS, HANDSHAKES = (200_000, 50_000) if HEAVY else (4_000, 400)


@needs("cryptography")
class AuthFramesTests(SynchronousTestCase):
    """The script C{auth_frames}, for some seconds unless the set is the heavy one."""

    def attack(self, workers: str) -> None:
        """None is let in, and all others are answered."""
        words = ["--frames", str(REQUESTS), "--handshakes", str(HANDSHAKES)]
        words += ["--workers", workers, "--turn", "10"]
        done = run("torture/auth_frames", "--inside", *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"{REQUESTS} requests in", done.stdout)
        self.assertIn(f"{HANDSHAKES} handshakes in", done.stdout)
        self.assertIn(" 0 lost", done.stdout)

    def test_forged(self) -> None:
        """A broker of one process."""
        self.attack("0")

    def test_forgedWithWorkers(self) -> None:
        """One whose workers hand requests on."""
        self.attack("2")
