"""What becomes of a command whose output cannot be written, in processes."""

from __future__ import annotations

import os
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import environment
from tests.store.stores import on_disk, put

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command", "store")


class OutputTests(SynchronousTestCase):
    """A small store, with a body that is not ASCII."""

    def setUp(self) -> None:
        """Make it."""
        self.root = os.path.abspath(self.mktemp())
        store = on_disk(self.root)
        put(store, store.queue("T", 0), "Blüte".encode())
        store.close()

    def test_full(self) -> None:
        """One sentence and 1, if nothing more can be written."""
        for verb in ("ls", "verify", "stats"):
            for output in ("table", "json", "jsonl"):
                with open("/dev/full", "w") as full:
                    done = subprocess.run(
                        [*COMMAND, verb, self.root, "--output", output],
                        stdout=full,
                        stderr=subprocess.PIPE,
                        env=environment(),
                        text=True,
                        check=False,
                    )
                self.assertEqual(done.returncode, 1)
                sentence = (
                    "rocketbroker: the output cannot be written: No space left on"
                )
                self.assertEqual(done.stderr, f"{sentence} device\n")

    def test_closed(self) -> None:
        """A closed output is no reason to fail; the exit status says what is found."""
        for streams in (">&-", ">&- 2>&- <&-"):
            line = f'exec "$0" "$@" {streams}'
            words = [*COMMAND, "verify", self.root]
            done = subprocess.run(["sh", "-c", line, *words], env=environment())
            self.assertEqual(done.returncode, 0)
            with open(os.path.join(self.root, "commitlog", "0" * 20), "r+b") as file:
                file.seek(88)
                kept = file.read(1)
                file.seek(88)
                file.write(b"x")
                file.flush()
                done = subprocess.run(["sh", "-c", line, *words], env=environment())
                file.seek(88)
                file.write(kept)
            self.assertEqual(done.returncode, 1)

    def test_narrow(self) -> None:
        """What an output has no characters for is escaped."""
        done = subprocess.run(
            [*COMMAND, "cat", self.root, "T"],
            stdout=subprocess.PIPE,
            env={**environment(), "PYTHONIOENCODING": "ascii"},
            check=False,
        )
        self.assertEqual(done.returncode, 0)
        self.assertIn(b"Bl\\xfcte", done.stdout)

    def test_unreadable(self) -> None:
        """A disk that refuses is told with what it refused."""
        missing = os.path.join(self.root, "nowhere")
        words = [*COMMAND, "ls", self.root, "--commit-log", missing]
        done = subprocess.run(
            words, stderr=subprocess.PIPE, env=environment(), text=True, check=False
        )
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith("rocketbroker: "), done.stderr)
        self.assertNotIn("Traceback", done.stderr)
