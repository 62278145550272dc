"""Exports by a standalone Spark cluster of a master and two workers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.export.history import read_history
from rocketbroker.export.open_storage import open_storage
from scripts.lab.servers import Cluster
from tests.integration.exports import COMMAND, COUNT, TOPIC, expected, fill, rows
from tests.integration.spark_cluster import SparkCluster


class ClusterTests(SynchronousTestCase):
    """Our servers, a cluster, Parquet."""

    timeout = 900

    def setUp(self) -> None:
        """Start servers and cluster, and fill a topic."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        fill(self.cluster.names, range(COUNT))
        self.spark = SparkCluster()
        self.addCleanup(self.spark.stop)
        self.spark.start()

    def output(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a program says."""
        return subprocess.run(
            words,
            env=self.spark.variables(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )

    def test_cluster(self) -> None:
        """The command with C{--master}, and a caller's own session, export there."""
        root = Path(self.mktemp()).absolute()
        words = [TOPIC, "--namesrv", self.cluster.names, "--to", str(root / "command")]
        settings = [word for each in self.spark.settings for word in ("--conf", each)]
        words += ["--master", self.spark.master, *settings, "--file-size", "60k"]
        done = self.output(*COMMAND, "export", "run", *words)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"rows={COUNT} expected={COUNT} missing=0", done.stdout)
        self.assertEqual(rows(root / "command"), expected(COUNT))
        files = len([*root.rglob("*.parquet")])
        self.assertTrue(files > 4, done.stdout)

        module = "tests.integration.spark_exports"
        words = [self.spark.master, self.cluster.names, TOPIC, str(root)]
        done = self.output(sys.executable, "-m", module, *words, *self.spark.settings)
        self.assertEqual(done.returncode, 0, done.stdout)
        found = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(found["context"][::2], [COUNT, {TOPIC: 0}])
        self.assertEqual(found["again"], [0, 0, {TOPIC: 3}])
        self.assertEqual(found["frame"], found["context"])
        self.assertEqual(found["failed"], "there is no topic nope")
        self.assertEqual(found["alive"], 3)
        self.assertEqual(rows(root / "context"), expected(COUNT))
        digests = []
        for name in ("command", "context", "frame"):
            history = read_history(open_storage(str(root / name)))
            digests.append([(file.path, file.crc) for file in history.files()])
        self.assertEqual(digests[0], digests[1])
        self.assertEqual(digests[0], digests[2])
