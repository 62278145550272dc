"""The pages about exports and Spark: each command and program, as it stands there."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.open_storage import open_storage
from rocketbroker.export.plans import FileTask, Plan, file_path, read_plan
from rocketbroker.export.report.snippets import snippets
from rocketbroker.sources.ranges import Range
from scripts import walk_pages
from scripts.lab.servers import ROOT, Cluster, environment
from tests.integration.s3server import running_s3
from tests.integration.spark_process import SparkProcess

#: How long anything may take; nothing is asserted about it.
SECONDS = 120.0

#: What a command of C{export run} may end with besides 0.
NOTHING_NEW = 3


def blocks(page: str) -> list[tuple[str, str]]:
    """The programs of a page: of each its language, and its text."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return [
        (block.language, "\n".join(block.lines) + "\n")
        for block in walk_pages.blocks(text)
        if block.language
    ]


class PageTests(SynchronousTestCase):
    """C{docs/export.rst} and C{docs/spark.rst}, with servers and S3 of this machine."""

    timeout = 900

    def setUp(self) -> None:
        """Servers with the topics of which the pages speak."""
        running = running_s3()
        self.s3 = running.__enter__()
        self.addCleanup(running.__exit__, None, None, None)
        self.begin()

    def begin(self) -> None:
        """A new cluster, and a new folder."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()
        with Client(Settings(self.cluster.names)) as client:
            for topic in ("Orders", "Payments", "Invoices", "Copies"):
                client.create_topic(topic, queues=2)
            for topic, count in (("Orders", 200), ("Payments", 10)):
                messages = (
                    Message(topic, b"%d" % n, "paid" if n % 2 else "open")
                    for n in range(count)
                )
                for result in Producer(client).send_all(messages):
                    self.assertEqual(result.status, 0)

    def here(self, text: str) -> str:
        """A program with the places of this test."""
        for there, here in (
            ("127.0.0.1:9876", self.cluster.names),
            ("s3://lake/exports?region=eu-central-1", self.s3.uri("exports")),
            ("/var/rocketmq/store", str(self.cluster.store)),
            ("~/store", str(self.cluster.store)),
            ("/data/", f"{self.folder}/"),
        ):
            text = text.replace(there, here)
        return text

    def run_line(self, line: str) -> None:
        """Run a command; statuses are those that the page names."""
        line, _, otherwise = self.here(line).partition(" || ")
        self.assertIn(otherwise, ("", f"[ $? -eq {NOTHING_NEW} ]"))
        words = shlex.split(line)
        if words[1:3] == ["export", "follow"]:
            self.follow(words)
            return
        if words[1:3] == ["export", "abandon"]:
            self.leave_plan(words[3])
        done = SparkProcess.run(*words)
        is_run = words[1:3] == ["export", "run"]
        wanted = (0, NOTHING_NEW) if is_run else (0,)
        self.assertIn(done.returncode, wanted, (line, done.stdout))

    def leave_plan(self, root: str) -> None:
        """Leave a plan as a run that died, which nobody can carry out."""
        storage = open_storage(root)
        ledger = Ledger(storage)
        last = read_plan(storage.read("_rocketbroker/plans/00000001.json"))
        wanted = Range(last.ranges[0].queue, 10**6, 10**6 + 1)
        file = FileTask(file_path([wanted], 0), (wanted,))
        plan = Plan(ledger.next_number(), last.topic, 1, (wanted,), (file,))
        ledger.take_lease({})
        ledger.write_plan(plan)
        ledger.release()

    def follow(self, words: list[str]) -> None:
        """Follow until there is nothing to do, then stop it."""
        out = self.folder / "follow"
        with open(out, "wb") as file:
            process = subprocess.Popen(
                [sys.executable, "-m", "rocketbroker.cli.command", *words[1:]]
                + ["--output", "jsonl"],
                stdout=file,
                stderr=file,
                env=environment(),
            )
        end = time.monotonic() + SECONDS
        while '"waiting"' not in out.read_text() and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(SECONDS), 0, out.read_text())
        kinds = [json.loads(line)["kind"] for line in out.read_text().splitlines()]
        self.assertEqual((kinds[0], kinds[-1]), ("following", "stopped"))

    def run_program(self, text: str) -> str:
        """What a Python program prints that has a session in the end."""
        done = self.try_program(text)
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def try_program(self, text: str) -> subprocess.CompletedProcess[str]:
        """The same, with its exit status."""
        program = self.folder / "program.py"
        program.write_text(f"{self.here(text)}\nspark.stop()\n")
        return SparkProcess.run("python", str(program))

    def test_export(self) -> None:
        """Each command of the page on exports does what it says."""
        for language, text in blocks("export.rst"):
            if language == "sql":
                rows = duckdb.connect().execute(self.here(text)).fetchall()
                self.assertEqual(sum(row[-1] for row in rows), 200)
                continue
            if language == "python":
                self.assertEqual(self.run_program(text).split()[-2:], ["200", "1"])
                continue
            self.assertEqual(language, "bash")
            for line in text.splitlines():
                self.run_line(line)
        report = (self.folder / "report.html").read_text("utf-8")
        self.assertIn("Whole: every offset", report)
        self.run_program(dict(snippets(f"{self.folder}/lake", "Orders"))["Spark"])

    def test_spark(self) -> None:
        """The programs of the page on Spark run, one after the other, in a session."""
        parts = []
        for language, text in blocks("spark.rst"):
            if language == "python":
                parts.append(text)
        # Spark gives the process that plans a stream 10 s to start, whatever the
        # machine has to do (PythonWorkerFactory.createSimpleWorker).
        while (done := self.try_program("\n".join(parts))).returncode:
            self.assertIn("failed to connect back", done.stdout)
            self.cluster.stop()
            self.begin()
        output = done.stdout
        numbers = [line for line in output.splitlines() if line.isdecimal()]
        self.assertEqual(numbers, ["200", "100", "200"], output)
        with Client(Settings(self.cluster.names)) as client:
            for topic, count in (("Invoices", 1000), ("Copies", 200)):
                ends = [client.max_offset(queue) for queue in client.queues(topic)]
                self.assertEqual(sum(ends), count, topic)
