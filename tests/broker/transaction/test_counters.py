"""Tests of L{rocketbroker.broker.transaction.counters}."""

from __future__ import annotations

from twisted.internet.task import Clock

from rocketbroker.broker.json_table import JsonTable
from rocketbroker.broker.transaction.counters import TransactionCounters
from rocketbroker.testing.threads import at_once
from tests.broker.transactions import COMMIT, TransactionCase

PATH = "/store/config/transactionMetrics"


class CountsTests(TransactionCase):
    """The counts and their file."""

    def counts(self) -> TransactionCounters:
        """Counts over the file."""
        file = JsonTable(self.rig.disk, PATH, at_once, Clock())
        counts = TransactionCounters(file, self.rig.wall_ms)
        counts.load()
        return counts

    def test_file(self) -> None:
        """It is RocketMQ's, and only written when something changed."""
        counts = self.counts()
        counts.save()
        self.assertFalse(self.rig.disk.exists(PATH))
        counts.ended("T", True, 0, True)
        counts.begin({"T": 2})
        counts.save()
        content = self.rig.disk.read(PATH)
        self.assertIn(b'"transactionCount":{"T":{"count":2,"timeStamp":17000', content)
        self.assertIn(b'"dataVersion":{', content)
        again = self.counts()
        self.assertEqual(again.topics["T"].open, 2)
        again.begin({"T": 3})
        again.save()
        self.assertIn(b'"counter":2', self.rig.disk.read(PATH))

    def test_nonsense(self) -> None:
        """What makes no sense in it is left out."""
        content = (
            b'{"transactionCount":{"A":{"count":-1},"B":3,"C":{"count":"4"},'
            b'"D":{"count":4611686018427387904}}}'
        )
        file = self.rig.disk.open(PATH, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()
        topics = self.counts().topics
        self.assertEqual({name: one.open for name, one in topics.items()}, {"C": 4})

    def test_found(self) -> None:
        """What the start has found wins against the file."""
        counts = self.counts()
        counts.begin({"A": 3})
        counts.begin({"B": 1})
        self.assertEqual(counts.topics["A"].open, 0)
        self.assertEqual(counts.topics["B"].open, 1)

    def test_refused(self) -> None:
        """A half message that is not stored does not count, nor does an end that was
        before."""
        half = self.half()
        self.end(half, COMMIT)
        self.end(half, COMMIT)
        counts = self.rig.transactions.counts.topics["T"]
        self.assertEqual((counts.open, counts.commits), (0, 1))
