"""C{rocketbroker export follow}: a process that exports as messages come."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from scripts.lab.servers import Cluster, environment

TOPIC = "followed"

#: How long anything may take; nothing is asserted about it.
SECONDS = 120.0


class FollowTests(SynchronousTestCase):
    """Our servers, and a process that follows."""

    timeout = 600

    def setUp(self) -> None:
        """Start the servers."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        with Client(Settings(self.cluster.names)) as client:
            client.create_topic(TOPIC, queues=2)
        self.root = Path(self.mktemp()).absolute()
        self.out = Path(self.mktemp()).absolute()

    def send(self, numbers: range, size: int = 1) -> None:
        """Send messages."""
        with Client(Settings(self.cluster.names, seconds=30)) as client:
            messages = (Message(TOPIC, b"%d," % number * size) for number in numbers)
            for result in Producer(client).send_all(messages):
                self.assertEqual(result.status, 0)

    def follow(self, *words: str) -> subprocess.Popen[bytes]:
        """Begin to follow."""
        with open(self.out, "wb") as out:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "rocketbroker.cli.command", "export"),
                    *("follow", TOPIC, "--namesrv", self.cluster.names, "--cores=2"),
                    *("--to", str(self.root), "--output", "jsonl", *words),
                ],
                env=environment(),
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: subprocess.Popen[bytes]) -> None:
        """Leave nothing running."""
        if process.poll() is None:
            process.kill()
            process.wait()

    def events(self, kind: str) -> list[dict[str, Any]]:
        """What was said so far, of one kind."""
        # The last line may not be whole yet.
        lines = self.out.read_text().split("\n")[:-1]
        rows = [json.loads(line) for line in lines if line.startswith("{")]
        return [row for row in rows if row["kind"] == kind]

    def until(self, process: subprocess.Popen[bytes], rows: int) -> None:
        """Wait until it has begun, and so many rows are committed."""
        end = time.monotonic() + SECONDS
        while (
            not self.events("following")
            or sum(row["rows"] for row in self.events("exported")) < rows
        ):
            self.assertIsNone(process.poll(), self.out.read_text())
            self.assertLess(time.monotonic(), end, self.out.read_text())
            time.sleep(0.05)

    def bodies(self) -> list[int]:
        """The numbers of all exported messages, sorted."""
        found: list[int] = []
        for path in self.root.rglob("*.parquet"):
            for value in pq.ParquetFile(path).read(["body"])["body"].to_pylist():
                found.append(int(value.split(b",")[0]))
        return sorted(found)

    def stopped(self, process: subprocess.Popen[bytes], number: int) -> None:
        """Stop it; it ends soon, well, with all its workers."""
        process.send_signal(number)
        self.assertEqual(process.wait(SECONDS), 0, self.out.read_text())
        self.assertEqual(len(self.events("stopped")), 1)
        end = time.monotonic() + SECONDS
        while group_lives(process.pid):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_restart(self) -> None:
        """A broker that restarts is waited for; each message is exported once."""
        self.send(range(300))
        process = self.follow("--every", "1s")
        self.until(process, 300)
        self.cluster.broker.stop()
        end = time.monotonic() + SECONDS
        while not self.events("no_answer"):
            self.assertLess(time.monotonic(), end, self.out.read_text())
            time.sleep(0.05)
        self.cluster.broker.start()
        self.send(range(300, 700))
        self.until(process, 700)
        self.assertEqual(len(self.events("answers_again")), 1)
        self.stopped(process, signal.SIGTERM)
        self.assertEqual(self.bodies(), list(range(700)))

    def test_interrupted(self) -> None:
        """In the middle of copies it stops, too; who exports next finishes the plan."""
        self.send(range(1000), 20_000)
        process = self.follow("--every", "1s", "--file-size", "4m")
        end = time.monotonic() + SECONDS
        while not self.events("exporting"):
            self.assertLess(time.monotonic(), end, self.out.read_text())
            time.sleep(0.01)
        self.stopped(process, signal.SIGINT)
        pending = self.events("stopped")[0]["pending"]
        process = self.follow("--every", "1s")
        self.until(process, 1000 if pending else 0)
        self.stopped(process, signal.SIGTERM)
        self.assertEqual(len(self.events("replaying")), pending)
        self.assertEqual(self.bodies(), list(range(1000)))
        self.assertEqual([*self.root.rglob(".*.tmp")], [])

    def test_workerKilled(self) -> None:
        """A worker that is killed costs a try, no message."""
        self.send(range(100))
        process = self.follow("--every", "1s")
        self.until(process, 100)
        for worker in children(process.pid):
            os.kill(worker, signal.SIGKILL)
        self.send(range(100, 200))
        self.until(process, 200)
        self.stopped(process, signal.SIGTERM)
        self.assertEqual(self.bodies(), list(range(200)))

    def test_killed(self) -> None:
        """If it is killed itself, its workers end, and the next one goes on."""
        self.send(range(100))
        process = self.follow("--every", "1s")
        self.until(process, 100)
        process.kill()
        process.wait()
        end = time.monotonic() + SECONDS
        while group_lives(process.pid):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)
        self.send(range(100, 200))
        process = self.follow("--every", "1s")
        self.until(process, 100)
        self.stopped(process, signal.SIGTERM)
        self.assertEqual(self.bodies(), list(range(200)))


def group_lives(number: int) -> bool:
    """Whether any process of a group is there."""
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def children(number: int) -> list[int]:
    """The workers of a process: its children that copy."""
    found = Path(f"/proc/{number}/task/{number}/children").read_text().split()
    return [
        int(child)
        for child in found
        if b"multiprocessing-fork" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]
