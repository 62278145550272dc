"""Frames changed at random, at servers that others use at the same time."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.integration.scripts import run


class FramesTests(SynchronousTestCase):
    """The script C{frames}, for some seconds."""

    def attack(self, server: str, frames: int) -> None:
        """Nothing is wrong with a server after so many frames."""
        words = ["--server", server, "--frames", str(frames), "--turn", "10"]
        done = run("torture/frames", "--inside", *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"{frames} frames in", done.stdout)
        self.assertIn(" 0 lost", done.stdout)

    def test_broker(self) -> None:
        """A broker with two workers."""
        self.attack("broker", 15_000)

    def test_nameServer(self) -> None:
        """A name server."""
        self.attack("namesrv", 5_000)
