"""Spark streams a topic from a running broker."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from scripts.lab.servers import Cluster
from tests.integration.spark_process import SparkProcess
from tests.written_by_0_1_0.archive import SIZES, unpack

TOPIC = "streamed"


def fill(names: str, numbers: range) -> None:
    """Send messages to two queues."""
    with Client(Settings(names)) as client:
        client.create_topic(TOPIC, queues=2)
        messages = (
            Message(TOPIC, b"%d" % number, properties={"number": str(number)})
            for number in numbers
        )
        for result in Producer(client).send_all(messages):
            assert result.status == 0


class StreamTests(SynchronousTestCase):
    """Our servers, Spark, Parquet."""

    timeout = 900

    def setUp(self) -> None:
        """Servers that have not started."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.folder = Path(self.mktemp()).absolute()
        self.folder.mkdir()

    def words(self, *words: str) -> str:
        """Carry out a command; what it printed."""
        while True:
            output = SparkProcess.run(*words)
            # Spark gives the process that plans 10 s to start, whatever the machine
            # has to do (PythonWorkerFactory.createSimpleWorker).
            if "failed to connect back" not in output.stdout:
                break
        self.assertEqual(output.returncode, 0, output.stdout)
        return output.stdout

    def stream(self, command: str = "streams", topic: str = TOPIC) -> Any:
        """Stream what there is; what is told of it."""
        folder, log = str(self.folder), str(self.folder / "log")
        output = self.words(command, self.cluster.names, topic, folder, log)
        return json.loads(output.splitlines()[-1])

    def numbers(self) -> Counter[int]:
        """The numbers of the messages in all files."""
        return Counter(
            int(dict(properties)["number"])
            for path in (self.folder / "rows").glob("*.parquet")
            for properties in pq.ParquetFile(path).read(["properties"])[0].to_pylist()
        )

    def test_streams(self) -> None:
        """All there is, then what came since, each once; then the topic is another."""
        self.cluster.start()
        servers = ("--namesrv", self.cluster.names)
        fill(self.cluster.names, range(1000))
        self.words("rocketbroker", "group", "create", "G", *servers)
        first = self.stream()
        self.assertNotIn("error", first, first)
        self.assertEqual(first["batches"], [400, 400, 200])
        self.assertEqual(self.numbers(), Counter(range(1000)))
        self.assertLessEqual(first["requests"], 2)
        self.assertEqual(first["rows"], 1000)
        ends = {TOPIC: {"broker-a": {"0": 500, "1": 500}}}
        self.assertEqual(first["latest"], ends)
        self.assertEqual((first["lags"], first["behind"]), ([0, 1], 300))
        with Client(Settings(self.cluster.names)) as client:
            queues = client.queues(TOPIC)
            committed = sum(client.committed_offset(each, "G") or 0 for each in queues)
        # What the last micro-batch has read is committed when the query goes on.
        self.assertEqual(committed, 800)

        fill(self.cluster.names, range(1000, 1500))
        second = self.stream()
        self.assertEqual(second.get("batches"), [400, 100], second)
        self.assertEqual(self.numbers(), Counter(range(1500)))

        self.words("rocketbroker", "topic", "delete", TOPIC, "--yes", *servers)
        fill(self.cluster.names, range(2000))
        again = self.stream()
        self.assertIn("TOPIC_RECREATED: message 749 of queue", again.get("error", ""))

    def test_checkpointOf010GoesOnAtItsOffsets(self) -> None:
        """Of 100 messages a stream of 0.1.0 has had 60, and has left a micro-batch of
        30 under way: that comes again, then the others, none twice."""
        unpacked = unpack(self.mktemp())
        shutil.copytree(unpacked / "store", self.cluster.store)
        shutil.copytree(unpacked / "checkpoint", self.folder / "checkpoint")
        # Its files may be old.
        self.cluster.broker.set(**SIZES, fileReservedTime=1_000_000)
        self.cluster.start()
        self.assertEqual(self.stream("checkpoint", "Orders"), [30, 10])
        self.assertEqual(self.numbers(), Counter(range(60, 100)))
