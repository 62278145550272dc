"""Exports and reads by Spark, from a running broker and from its files."""

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

from rocketbroker.arrow.columns import NATIVE
from scripts.lab.servers import Cluster, environment
from tests.integration.exports import (
    COMMAND,
    COUNT,
    TOPIC,
    body,
    expected,
    export,
    fill,
    rows,
)
from tests.integration.spark_process import SparkProcess


class ExportTests(SynchronousTestCase):
    """Our servers, Spark, Parquet."""

    timeout = 900

    def setUp(self) -> None:
        """Start the servers and fill a topic."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        fill(self.cluster.names, range(COUNT))

    def folder(self) -> Path:
        """A place for an export."""
        return Path(self.mktemp()).absolute()

    def test_runs(self) -> None:
        """Everything once, then nothing new, then what came since: also offline."""
        root = self.folder()
        words = (TOPIC, "--namesrv", self.cluster.names, "--to", str(root))
        first = export(*words)
        self.assertEqual(first.returncode, 0, first.stdout)
        self.assertIn(f"rows={COUNT} expected={COUNT} missing=0", first.stdout)
        self.assertEqual(rows(root), expected(COUNT))
        again = export(*words)
        self.assertEqual(again.returncode, 3, again.stdout)
        store = ("--store", str(self.cluster.store), "--broker-name", "broker-a")
        offline = export(TOPIC, *store, "--to", str(root))
        self.assertEqual(offline.returncode, 3, offline.stdout)
        other = self.folder()
        offline = export(TOPIC, *store, "--to", str(other))
        self.assertEqual(offline.returncode, 0, offline.stdout)
        self.assertEqual(rows(other), expected(COUNT))

    def test_killed(self) -> None:
        """A run that is killed is carried out again; nothing is lost or doubled."""
        root = self.folder()
        words = (TOPIC, "--namesrv", self.cluster.names, "--to", str(root))
        killed = subprocess.Popen(
            [*COMMAND, "export", "run", *words],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + 300
        while killed.poll() is None and time.monotonic() < end:
            if list(root.rglob("*.parquet")) or list(root.rglob(".*.tmp")):
                break
            time.sleep(0.01)
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        again = export(*words)
        self.assertIn(again.returncode, (0, 3), again.stdout)
        self.assertEqual(rows(root), expected(COUNT))
        self.assertEqual(list(root.rglob(".*.tmp")), [])

    def test_reads(self) -> None:
        """The data source gives the columns, ranges and refusals that it promises."""
        log = str(Path(self.mktemp()).absolute())
        store = str(self.cluster.store)
        output = SparkProcess.run("reads", self.cluster.names, store, TOPIC, log)
        self.assertEqual(output.returncode, 0, output.stdout)
        found: dict[str, Any] = json.loads(output.stdout.splitlines()[-1])
        expected = [[name, column.ddl] for name, column in NATIVE.items()]
        self.assertEqual(found["schema"], expected)
        self.assertEqual(found["numbers"], list(range(COUNT)))
        self.assertEqual(found["sizes"], sum(len(body(n)) for n in range(COUNT)))
        self.assertEqual(found["tags"], COUNT // 2)
        self.assertEqual(found["offline"], COUNT)
        self.assertEqual(found["sql"], [COUNT // 2, COUNT // 2])
        self.assertEqual(
            found["chosen"], [["queueOffset", "bigint"], ["tags", "string"]]
        )
        self.assertEqual(found["before the end"], 14)
        self.assertEqual(found["pattern"], COUNT)
        self.assertEqual(found["assigned"], [1])
        self.assertEqual(found["pushed"], [[0, 5], [0, 6], [0, 7]])
        self.assertEqual(found["pushed tags"], found["tags"])
        self.assertEqual(found["pushed times"], [COUNT, 0])
        self.assertIn("queue 9 of", found["unknown queue"])
        self.assertEqual(found["kafka"], [[0, 5]])
        self.assertEqual(found["partitions"], COUNT // 100)
        self.assertEqual(found["nothing"], 0)
        self.assertIn("unknown option 'endingofsets'", found["unknown option"])
        self.assertIn("there is no column 'bdy'", found["unknown column"])
        self.assertIn("there is no topic nope", found["unknown topic"])
        self.assertIn("ends at", found["data loss"])

    def test_refusals(self) -> None:
        """What cannot be exported is one line and exit status 1."""
        for words, sentence in (
            (("nope", "--namesrv", self.cluster.names), "there is no topic nope"),
            (("T", "--namesrv", "127.0.0.1:1"), "cannot connect to 127.0.0.1:1"),
            (("T", "--store", "/nowhere"), "There is no store in /nowhere"),
        ):
            output = export(*words, "--to", str(self.folder()))
            self.assertEqual(output.returncode, 1, output.stdout)
            (line,) = output.stdout.splitlines()
            self.assertIn(sentence, line)


class ImportTests(SynchronousTestCase):
    """What is not imported."""

    def imported(self, code: str) -> set[str]:
        """The top-level modules that a piece of code imports."""
        code = f"import sys; {code}; print(*sys.modules)"
        output = subprocess.run(
            [sys.executable, "-c", code],
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return {name.split(".")[0] for name in output.stdout.split()}

    def test_command(self) -> None:
        """The command's help needs neither Twisted nor any extra."""
        found = self.imported("import rocketbroker.cli.command")
        self.assertEqual(found & {"twisted", "pyspark", "pyarrow", "numpy"}, set())

    def test_source(self) -> None:
        """Spark's scan for data sources imports nothing heavy of ours."""
        before = self.imported("import pyspark.sql.datasource")
        after = self.imported("import pyspark.sql.datasource, pyspark_rocketmq")
        self.assertEqual((after - before) & {"pyarrow", "numpy", "twisted"}, set())
