"""The command line as a user has it: processes and pipes, against a standalone."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.lab.servers import environment

COMMAND = (sys.executable, "-m", "rocketbroker.cli.command")

#: How long anything may take; nothing is asserted about it.
SECONDS = 60.0


class CommandTests(SynchronousTestCase):
    """Verbs of all nouns."""

    def setUp(self) -> None:
        """A broker on free ports."""
        words = "standalone --temporary --namesrv-port 0 --port 0 --metrics-port off"
        self.broker = subprocess.Popen(
            [*COMMAND, *words.split()],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            text=True,
        )
        self.addCleanup(self.stop)
        assert self.broker.stdout is not None
        ready = self.broker.stdout.readline()
        self.names = ready.split()[3].rstrip(",")

    def stop(self) -> None:
        """Stop it."""
        self.broker.terminate()
        self.broker.communicate(timeout=30)

    def call(self, line: str, stdin: str = "", status: int = 0) -> str:
        """Run the command; its output. What it says besides is one sentence."""
        done = subprocess.run(
            [*COMMAND, *line.split()],
            input=stdin,
            capture_output=True,
            text=True,
            env={**environment(), "ROCKETMQ_NAMESRV": self.names},
            check=False,
        )
        self.assertEqual(done.returncode, status, (line, done.stdout, done.stderr))
        self.assertNotIn("Traceback", done.stderr)
        if status:
            self.assertTrue(done.stderr.startswith("rocketbroker: "), done.stderr)
        return done.stdout

    def test_verbs(self) -> None:
        """A topic's life, with pipes, a group, and statuses that scripts can use."""
        self.call("topic show Orders", status=3)
        self.assertIn("created", self.call("topic create Orders -q 2"))
        self.assertEqual(self.call("topic ls --names"), "Orders\n")
        self.call("message send Orders --key-separator :", "k1:one\nk2:two\nk3:three\n")
        bodies = self.call("message receive Orders -g billing -c 2").split()
        self.assertEqual(len(bodies), 2)
        rows = json.loads(self.call("group ls -o json"))
        self.assertEqual([(row["group"], row["lag"]) for row in rows], [("billing", 1)])
        bodies += self.call("message receive Orders -g billing").split()
        self.assertEqual(sorted(bodies), ["one", "three", "two"])
        self.call("group reset billing Orders --to earliest", status=2)
        self.call("group reset billing Orders --to earliest --yes")
        again = self.call("message receive Orders -g billing")
        self.assertEqual(sorted(again.split()), sorted(bodies))
        self.assertIn("three", self.call("message find Orders -k k3"))
        self.assertIn("V5", self.call("cluster ls"))
        self.call("topic delete Orders --yes")
        self.assertEqual(self.call("topic ls"), "")

    def test_membersShareTheWorkOfAGroup(self) -> None:
        """Of two that follow each has queues of its own; at a signal they leave."""
        self.call("topic create Shared -q 2")
        members, files = [], []
        for _ in range(2):
            files.append(Path(self.mktemp()))
            with open(files[-1], "wb") as out:
                member = subprocess.Popen(
                    [*COMMAND, *"message receive Shared -g sharing --follow".split()],
                    stdout=out,
                    env={**environment(), "ROCKETMQ_NAMESRV": self.names},
                )
            members.append(member)
            self.addCleanup(member.wait)
            self.addCleanup(member.kill)
        sent: set[str] = set()
        found: list[list[str]] = [[], []]
        end = time.monotonic() + SECONDS
        while not all(found) or {*found[0], *found[1]} < sent:
            self.assertLess(time.monotonic(), end, found)
            if not all(found):
                more = [str(len(sent) + number) for number in range(4)]
                self.call("message send Shared", "\n".join(more))
                sent.update(more)
            time.sleep(0.2)
            found = [each.read_text().split() for each in files]
        for member in members:
            member.send_signal(signal.SIGTERM)
        self.assertEqual([member.wait(SECONDS) for member in members], [143, 143])
        self.assertEqual({*found[0], *found[1]}, sent)
        self.assertEqual(self.call("message receive Shared -g sharing"), "")
        (row,) = json.loads(self.call("bench receive Shared -g all --count 4 -o json"))
        self.assertEqual(row["received"], 4)

    def test_pipeline(self) -> None:
        """What one command writes another one reads; a reader that goes is no error."""
        self.call("topic create From -q 2")
        self.call("topic create To -q 2")
        lines = "".join(f"line {number}\n" for number in range(2000))
        self.call("message send From", lines)
        folder = Path(self.mktemp())
        folder.mkdir()
        script = (
            '"$@" message receive From -o jsonl | "$@" message send To -i jsonl && '
            '"$@" message receive To > copy && "$@" message receive To | head -n 1'
        )
        done = subprocess.run(
            ["sh", "-c", script, "sh", *COMMAND],
            cwd=folder,
            capture_output=True,
            text=True,
            env={**environment(), "ROCKETMQ_NAMESRV": self.names},
            check=False,
        )
        self.assertEqual((done.returncode, done.stdout[:5]), (0, "line "))
        self.assertNotIn("Traceback", done.stderr)
        copied = (folder / "copy").read_text().splitlines()
        self.assertEqual(sorted(copied), sorted(lines.splitlines()))
