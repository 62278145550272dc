"""Spark writes to a running broker."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.puller import Puller, messages
from rocketbroker.blocking.settings import Settings
from rocketbroker.records.record import StoredMessage
from scripts.lab.servers import Cluster
from tests.integration.spark_process import SparkProcess
from tests.integration.spark_writes import ROWS


class SinkTests(SynchronousTestCase):
    """Our servers, Spark."""

    timeout = 600

    def setUp(self) -> None:
        """Start the servers and make the topics."""
        self.cluster = Cluster()
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        with Client(Settings(self.cluster.names)) as client:
            for topic in ("written", "streamed"):
                client.create_topic(topic, queues=4)

    def stored(self, topic: str) -> list[StoredMessage]:
        """All messages of a topic."""
        with Client(Settings(self.cluster.names)) as client:
            return [
                message
                for queue in client.queues(topic)
                for chunk in Puller(client).read(
                    queue, client.min_offset(queue), client.max_offset(queue)
                )
                for message in messages(chunk.data)
            ]

    def test_writes(self) -> None:
        """Rows of frames and streams become messages; doubles can be told by stamps."""
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        log = str(folder / "log")
        output = SparkProcess.run("writes", self.cluster.names, str(folder), log)
        self.assertEqual(output.returncode, 0, output.stdout)
        told = json.loads(output.stdout.splitlines()[-1])
        self.assertIn('write with .mode("append")', told["overwrite"])
        self.assertIn("column body has to be binary or string", told["type"])
        self.assertIn("topic='no such': ", told["topic"])
        self.assertRegex(told["null"], r"^row \d+ of a partition is no message: its b")

        written = [each for each in self.stored("written") if each.tags is not None]
        numbers = Counter(int(each.properties["number"]) for each in written)
        self.assertEqual(numbers, Counter(range(ROWS)))
        self.assertEqual(len({each.properties["sparkRow"] for each in written}), ROWS)
        one = next(each for each in written if each.properties["number"] == "7")
        self.assertEqual((one.body, one.tags, one.keys), (b"row 7", "odd", ["k7"]))

        streamed = self.stored("streamed")
        stamps = Counter(each.properties["sparkRow"] for each in streamed)
        self.assertEqual((len(stamps), set(stamps.values())), (1500, {2}))
        bodies = {(each.properties["sparkRow"], each.body) for each in streamed}
        self.assertEqual(len(bodies), 1500)
