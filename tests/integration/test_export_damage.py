"""Exports of damaged, hidden and recreated topics of a real broker, and of its files.

Without Spark: this process copies.
"""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.client import Client
from rocketbroker.blocking.messages import Message
from rocketbroker.blocking.producer import Producer
from rocketbroker.blocking.settings import Settings
from rocketbroker.export.history import read_history
from rocketbroker.export.ledger import Ledger
from rocketbroker.export.open_storage import open_storage
from rocketbroker.export.progress import LineDisplay
from rocketbroker.export.runs import (
    DATA_LOSS,
    DONE,
    FAILED,
    NOTHING_NEW,
    ExportRuns,
    Job,
)
from rocketbroker.export.verify import check_manifest
from rocketbroker.sources.open_source import open_origin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.admin import DeleteTopicRequestHeader
from scripts.lab.servers import Cluster
from tests.export.worlds import Died, LocalCopying

COUNT = 40


class Case(SynchronousTestCase):
    """Name server, broker, and exports of what they have."""

    timeout = 300

    def setUp(self) -> None:
        """Start the servers."""
        self.cluster = Cluster(brokerPermission=6)
        self.addCleanup(self.cluster.stop)
        self.cluster.start()
        self.out = io.StringIO()
        self.live: dict[str, Any] = {"name_server": self.cluster.names}
        store = str(self.cluster.store)
        self.offline: dict[str, Any] = {"store": store, "broker_name": "broker-a"}

    def send(self, topic: str, queues: int, count: int = COUNT) -> None:
        """Make or change a topic, and send messages."""
        with Client(Settings(self.cluster.names, seconds=30)) as client:
            client.create_topic(topic, queues=queues)
            found = Producer(client).send_all(
                Message(topic, b"body %03d of %s" % (n, topic.encode()))
                for n in range(count)
            )
            assert all(result.status == 0 for result in found)

    def export(self, root: Path, die: bool = False, **words: Any) -> int:
        """One run; its exit status."""
        options = ReadOptions(retry_timeout_ms=10_000, **words)
        origin = open_origin(options)
        self.addCleanup(origin.close)
        copying = LocalCopying(origin)
        copying.die_after = 0 if die else None
        display = LineDisplay(self.out, lambda: 0.0)
        return ExportRuns(
            open_storage(str(root)), copying, display, lambda: 1, Job(options)
        ).run()

    def folder(self) -> Path:
        """A place for an export."""
        return Path(self.mktemp()).absolute()


class DamageTests(Case):
    """Messages that are damaged in the log."""

    def bodies(self, root: Path) -> list[bytes]:
        """The bodies that are exported, sorted."""
        found = []
        for path in root.rglob("*.parquet"):
            found += pq.ParquetFile(path).read(["body"])["body"].to_pylist()
        return sorted(found)

    def damage(self, topic: str, *numbers: int) -> None:
        """Change a byte of these messages in the log of the stopped broker."""
        self.cluster.broker.stop()
        (log,) = (self.cluster.store / "commitlog").iterdir()
        data = log.read_bytes()
        with open(log, "r+b") as file:
            for number in numbers:
                place = data.index(b"body %03d of %s" % (number, topic.encode()))
                file.seek(place)
                file.write(b"B")
        self.cluster.broker.start()

    def test_damaged(self) -> None:
        """First, middle and last messages: one topic is blocked, or has holes."""
        self.send("Damaged", 1)
        self.send("Whole", 1)
        bad = (0, 17, 18, COUNT - 1)
        self.damage("Damaged", *bad)
        expected = [b"body %03d of Damaged" % n for n in range(COUNT) if n not in bad]
        for place in (self.live, self.offline):
            root = self.folder()
            words = {"topics": ("Damaged", "Whole"), **place}
            status = self.export(root, **words)
            self.assertEqual(status, DATA_LOSS, self.out.getvalue())
            ends = Ledger(open_storage(str(root))).ends()
            self.assertEqual({queue.topic for queue in ends}, {"Whole"})
            loss = {**words, "fail_on_data_loss": False}
            self.assertEqual(self.export(root, **loss), DONE, self.out.getvalue())
            history = read_history(open_storage(str(root)))
            self.assertEqual(list(check_manifest(history)), [])
            gaps = [gap for commit in history.commits for gap in commit.gaps]
            found = [
                number
                for gap in gaps
                for number in range(gap.wanted.start, gap.wanted.until)
            ]
            self.assertEqual(found, list(bad))
            self.assertTrue(all(gap.reason for gap in gaps))
            damaged = [body for body in self.bodies(root) if b"Damaged" in body]
            self.assertEqual(damaged, expected)
            self.assertEqual(self.export(root, **words), NOTHING_NEW)
        # The last one exported is damaged; the one before it tells the queue.
        self.send("Damaged", 1, 3)
        for place in (self.live, self.offline):
            words = {"topics": ("Damaged",), **place}
            self.assertEqual(
                self.export(root, **words),
                DONE if place is self.live else NOTHING_NEW,
                self.out.getvalue(),
            )


class TopicTests(Case):
    """Topics that are changed."""

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        with Client(Settings(self.cluster.names)) as client:
            header = DeleteTopicRequestHeader(topic=topic)
            code = RequestCode.DELETE_TOPIC_IN_BROKER
            client.ask_server(self.cluster.address, code, header.to_ext())
            code = RequestCode.DELETE_TOPIC_IN_NAMESRV
            client.ask_server(self.cluster.names, code, header.to_ext())

    def test_fewerQueues(self) -> None:
        """What is behind in queues that are gone is named, and exported offline."""
        root = self.folder()
        words: dict[str, Any] = {"topics": ("Fewer",)}
        self.send("Fewer", 4)
        self.assertEqual(self.export(root, **words, **self.live), DONE)
        self.send("Fewer", 4)
        with Client(Settings(self.cluster.names)) as client:
            client.create_topic("Fewer", queues=2)
            while len(client.routes.view("Fewer", refresh=True).read) > 2:
                time.sleep(0.1)
        status = self.export(root, **words, **self.live)
        said = self.out.getvalue()
        self.assertEqual(status, DATA_LOSS, said)
        self.assertIn("Fewer has 20 messages in queues that cannot be read now", said)
        self.assertEqual(self.export(root, **words, **self.offline), DONE)
        history = read_history(open_storage(str(root)))
        self.assertEqual(sum(commit.rows for commit in history.commits), 2 * COUNT)
        self.assertEqual(self.export(root, **words, **self.live), NOTHING_NEW)

    def test_notReadable(self) -> None:
        """A topic that may not be read says so."""
        self.send("Closed", 1)
        with Client(Settings(self.cluster.names)) as client:
            client.create_topic("Closed", perm=2)
            while client.routes.view("Closed", refresh=True).read:
                time.sleep(0.1)
        root = self.folder()
        self.assertEqual(self.export(root, topics=("Closed",), **self.live), FAILED)
        self.assertIn("Closed may not be read", self.out.getvalue())

    def test_recreated(self) -> None:
        """A plan of a topic that was made again is not carried out with the new one."""
        self.send("Again", 1)
        root = self.folder()
        words: dict[str, Any] = {"topics": ("Again",), **self.live}
        self.assertRaises(Died, self.export, root, die=True, **words)
        self.delete("Again")
        self.send("Again", 1)
        self.assertEqual(self.export(root, **words), DATA_LOSS)
        said = self.out.getvalue()
        self.assertIn("TOPIC_RECREATED: queue 0 of Again", said)
        self.assertIn(f"`rocketbroker export abandon {root} Again`", said)
        ledger = Ledger(open_storage(str(root)))
        ledger.take_lease({})
        ledger.abandon(ledger.pending()["Again"], 1)
        ledger.release()
        self.assertEqual(self.export(root, **words), DONE)
