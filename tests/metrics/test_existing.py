"""Tests of which topics and groups have samples."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.metadata.deletions import KEPT_MS
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.bodies.topics import DataVersion
from tests.broker.rig import Rig
from tests.metrics.scraped import existing

HOUR = KEPT_MS / 1000


class ExistingTests(SynchronousTestCase):
    """Topics and groups that come and go."""

    def setUp(self) -> None:
        """Topic T and group G."""
        self.rig = Rig({"enableLmq": "true"})
        self.addCleanup(self.rig.close)
        self.existing = existing(self.rig)
        self.rig.topic("T")
        self.rig.groups.put([SubscriptionGroupConfig(group_name="G")])

    def test_hereForAnHourAfterDeletion(self) -> None:
        """A topic and a group, each by itself."""
        self.assertTrue(self.existing.both("G", "T"))
        self.rig.topics.delete("T")
        self.assertTrue(self.existing.both("G", "T"))
        self.rig.clock.advance(HOUR)
        self.assertEqual((self.existing.topic("T"), self.existing.group("G")), (0, 1))
        self.rig.groups.delete("G")
        self.assertTrue(self.existing.group("G"))
        self.rig.clock.advance(HOUR)
        self.assertFalse(self.existing.group("G"))
        self.rig.topic("T")
        self.assertTrue(self.existing.topic("T"))

    def test_slaveShowsWhatItsMasterHasDeleted(self) -> None:
        """For an hour from when it hears of that."""
        version = DataVersion(timestamp=0)
        self.rig.topics.become([], ["T"], version)
        self.rig.groups.become([], ["G"], version)
        self.assertTrue(self.existing.both("G", "T"))
        self.rig.clock.advance(HOUR)
        self.assertEqual((self.existing.topic("T"), self.existing.group("G")), (0, 0))

    def test_systemIsAlwaysThere(self) -> None:
        """Its topics and groups are in no table as a rule, and so are LMQs."""
        for topic in ("SCHEDULE_TOPIC_XXXX", "rmq_sys_wheel_timer", "%LMQ%a"):
            self.assertTrue(self.existing.topic(topic), topic)
        self.assertTrue(self.existing.group("CID_RMQ_SYS_A"))
        self.assertFalse(self.existing.both("CID_RMQ_SYS_A", "Never"))
