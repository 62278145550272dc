"""The offline tools at a store that a broker is writing at the same time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from zlib import crc32

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from scripts.lab.servers import PATIENT, Cluster, environment
from scripts.torture.handover import HandOver

TOPIC = "InUse"
QUEUES = 4

#: Small files, so that some begin while the tools read.
SMALL: dict[str, object] = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 50_000,
    "maxIndexNum": 100_000,
    **PATIENT,
}

VERBS = (
    ("ls",),
    ("cat", TOPIC),
    ("grep", "^7[0-9]*:"),
    ("verify",),
    ("stats",),
)


def body(number: int) -> bytes:
    """One that says itself whether it is whole."""
    text = b"%d:" % number + b"%d" % number * (number % 50 + 1)
    return b"%b:%08x" % (text, crc32(text))


def is_whole(text: str) -> bool:
    """Whether a body is one of these."""
    front, _, crc = text.rpartition(":")
    return crc == f"{crc32(front.encode()):08x}"


class Load:
    """A producer that sends until it is told to stop."""

    def __init__(self, names: str) -> None:
        self._names = names
        self._end = threading.Event()
        self.problem: BaseException | None = None
        self.sent = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with Client(Settings(self._names, seconds=20.0)) as client:
                producer = Producer(client, "PG")
                number = 0
                while not self._end.is_set():
                    several = [
                        Message(TOPIC, body(n), tags=f"t{n % 5}", keys=[str(n)])
                        for n in range(number, number + 20)
                    ]
                    number += 20
                    producer.send_batch(several)
                    producer.send(Message(TOPIC, body(number)))
                    number += 1
                    self.sent = number
                    # The tools want the processor, too.
                    self._end.wait(0.01)
        except BaseException as problem:
            self.problem = problem

    def wait_for(self, count: int) -> None:
        """Wait until it has sent so many."""
        while self.sent < count and self._thread.is_alive():
            time.sleep(0.01)

    def stop(self) -> None:
        """Wait until it has ended."""
        self._end.set()
        self._thread.join()


class InUseTests(SynchronousTestCase):
    """What is published is read, and nothing else; none of it is a fault."""

    timeout = 300

    def call(self, store: Path, *words: str) -> subprocess.CompletedProcess[str]:
        """Call C{rocketbroker store}."""
        return subprocess.run(
            [sys.executable, "-m", "rocketbroker.cli.command", "store", words[0]]
            + [str(store), *words[1:]],
            capture_output=True,
            text=True,
            env=environment(),
            check=False,
        )

    def rows(self, store: Path, *words: str) -> list[dict[str, object]]:
        """The rows that it prints; the status is 0, and nothing is complained of."""
        done = self.call(store, *words, "--output", "jsonl")
        rows: list[dict[str, object]] = [
            json.loads(line) for line in done.stdout.splitlines()
        ]
        faults = [row for row in rows if row["kind"] == "fault"]
        self.assertEqual((done.returncode, faults), (0, []), done.stderr)
        for line in done.stderr.splitlines():
            self.assertIn(" s left", line)
        return rows

    def check(self, names: str, store: Path, rounds: int) -> None:
        """Call all verbs again and again while messages come."""
        meanwhile = 0
        with Client(Settings(names, seconds=30.0)) as client:
            client.create_topic(TOPIC, QUEUES)
            load = Load(names)
            self.addCleanup(load.stop)
            # A broker's first answer may take longer than a tool.
            load.wait_for(1)
            for _ in range(rounds):
                for words in VERBS:
                    before = load.sent
                    rows = self.rows(store, *words)
                    self.assertIs(load.problem, None)
                    meanwhile += load.sent > before
                    getattr(self, f"look_{words[0]}")(client, rows)
                    load.wait_for(before + 1)
            load.stop()
        self.assertIs(load.problem, None)
        self.assertGreater(meanwhile, 0)

    def look_ls(self, client: Client, rows: list[dict[str, object]]) -> None:
        """No queue ends behind what its broker says."""
        for queue in client.queues(TOPIC):
            end = client.max_offset(queue)
            for row in rows:
                if row.get("topic") == TOPIC and row["queue"] == queue.queue_id:
                    self.assertLessEqual(int(str(row["end"])), end)

    def look_cat(self, client: Client, rows: list[dict[str, object]]) -> None:
        """Each body is whole, offsets are dense and not behind the queue's end."""
        offsets: dict[object, list[int]] = {}
        for row in rows:
            self.assertTrue(is_whole(str(row["body"])), row)
            offsets.setdefault(row["queue"], []).append(int(str(row["offset"])))
        for queue in client.queues(TOPIC):
            found = offsets.get(queue.queue_id, [])
            if found:
                self.assertEqual(found, list(range(len(found))))
                self.assertLess(found[-1], client.max_offset(queue))

    def look_grep(self, client: Client, rows: list[dict[str, object]]) -> None:
        """What is found fits."""
        for row in rows:
            self.assertTrue(str(row["body"]).startswith("7"))
            self.assertTrue(is_whole(str(row["body"])), row)

    def look_verify(self, client: Client, rows: list[dict[str, object]]) -> None:
        """All was checked."""
        self.assertGreater(int(str(rows[-1]["records"])), 0)

    def look_stats(self, client: Client, rows: list[dict[str, object]]) -> None:
        """The topic is there."""
        self.assertIn(TOPIC, [row["topic"] for row in rows])

    def test_ours(self) -> None:
        """Beside a broker of ours."""
        cluster = Cluster(**SMALL)
        self.addCleanup(cluster.stop)
        cluster.start()
        self.check(cluster.names, cluster.store, 3)
        self.assertNotIn("Traceback", cluster.logs())

    def test_java(self) -> None:
        """Beside RocketMQ's."""
        over = HandOver("5.3.3", **SMALL)
        self.addCleanup(over.stop)
        over.start_java()
        self.check(over.cluster.names, over.cluster.store, 2)

    def check_log_elsewhere(self, cluster: Cluster, log: Path, process: int) -> None:
        """A copy of the root is not repaired with the log that a process uses, whose
        root and lock lie elsewhere."""
        with Client(Settings(cluster.names, seconds=30.0)) as client:
            client.create_topic(TOPIC, QUEUES)
            Producer(client, "PG").send(Message(TOPIC, body(1)))
        copy = cluster.folder / "copy"
        shutil.copytree(cluster.store, copy)
        words = "repair", "--commit-log", str(log)
        for more in ((), ("--dry-run",)):
            done = self.call(copy, *words, *more)
            sentence = f"rocketbroker: Process {process} uses {log}/"
            self.assertEqual(done.stderr.count("\n"), 1)
            self.assertTrue(done.stderr.startswith(sentence), done.stderr)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertFalse([path for path in copy.iterdir() if "repair-" in path.name])

    def test_logElsewhere(self) -> None:
        """A broker of ours that keeps its log elsewhere."""
        log = Path(tempfile.mkdtemp(prefix="rocketbroker-")).resolve()
        self.addCleanup(shutil.rmtree, log)
        cluster = Cluster(**SMALL, storePathCommitLog=log)
        self.addCleanup(cluster.stop)
        cluster.start()
        assert cluster.broker.process is not None
        self.check_log_elsewhere(cluster, log, cluster.broker.process.pid)
        cluster.broker.stop()
        done = self.call(cluster.folder / "copy", "repair", "--commit-log", str(log))
        self.assertNotIn("uses", done.stderr)

    def test_logElsewhereOfJava(self) -> None:
        """RocketMQ's."""
        log = Path(tempfile.mkdtemp(prefix="rocketbroker-")).resolve()
        self.addCleanup(shutil.rmtree, log)
        over = HandOver("5.3.3", **SMALL, storePathCommitLog=log)
        self.addCleanup(over.stop)
        over.start_java()
        self.check_log_elsewhere(over.cluster, log, over.java.pid)

    def test_pipe(self) -> None:
        """Who reads only the beginning ends the command without a word."""
        cluster = Cluster(**SMALL)
        self.addCleanup(cluster.stop)
        cluster.start()
        with Client(Settings(cluster.names)) as client:
            client.create_topic(TOPIC, QUEUES)
            load = Load(cluster.names)
            self.addCleanup(load.stop)
            load.wait_for(3000)
            load.stop()
        for output in ("jsonl", "table"):
            command = [sys.executable, "-m", "rocketbroker.cli.command", "store"]
            command += ["cat", str(cluster.store), TOPIC, "--output", output]
            with subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment(),
            ) as process:
                assert process.stdout is not None
                assert process.stderr is not None
                self.assertTrue(process.stdout.readline())
                process.stdout.close()
                self.assertEqual(process.stderr.read(), b"")
                self.assertEqual(process.wait(), 141)
