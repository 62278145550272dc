"""Offsets of one group from those of others."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.clone_offsets import NO_CORRECTION, STEP_OFFSETS
from rocketbroker.errors import SubscriptionGroupNotExist
from rocketbroker.remoting.cooperative_tasks import FEW_STEPS
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData, SubscriptionData
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import Rig, answered, logged


class OffsetAdminCase(SynchronousTestCase):
    """Topics T and U; group G is somewhere in both."""

    def setUp(self) -> None:
        """Two queues of T, one of U, and one of a topic that is gone."""
        self.make()

    def make(self, **settings: str) -> None:
        """A broker with these settings."""
        self.rig = rig = Rig(settings)
        self.addCleanup(rig.close)
        for name in ("T", "U"):
            rig.topic(name, queues=2)
        for topic, queue_id, offset in (
            ("T", 0, 5),
            ("T", 1, 6),
            ("U", 0, 7),
            ("gone", 0, 8),
        ):
            rig.offsets.commit("G", topic, queue_id, offset)


class CloneTests(OffsetAdminCase):
    """Request 314."""

    def clone(self, **ext: str) -> dict[str, dict[int, int]]:
        """The offsets of group H afterwards, by topic."""
        answer = self.rig.ask(314, {"srcGroup": "G", "destGroup": "H", **ext})
        self.assertEqual(answer.code, 0)
        offsets = self.rig.offsets
        return {name: offsets.queues("H", name) for name in offsets.topics_of("H")}

    def test_topic(self) -> None:
        """One topic, whatever the group had there; its other queues stay."""
        self.rig.offsets.commit("H", "T", 0, 99)
        self.assertEqual(self.clone(topic="T"), {"T": {0: 5, 1: 6}})

    def test_all(self) -> None:
        """All topics that there are."""
        self.assertEqual(self.clone(), {"T": {0: 5, 1: 6}, "U": {0: 7}})

    def test_manyQueues(self) -> None:
        """Thousands of offsets are copied, and compared, in slices."""
        count = (FEW_STEPS + 2) * STEP_OFFSETS
        self.rig.topic("W", count)
        for number in range(count):
            self.rig.offsets.commit("G", "W", number, number)
        for code, ext in (
            (314, {"srcGroup": "G", "destGroup": "H", "topic": "W"}),
            (308, {"topic": "W", "filterGroups": "", "compareGroup": "G"}),
        ):
            steps = self.rig.broker.slices.steps
            asked = self.rig.begin(code, ext)
            self.rig.clock.advance(0)
            self.assertEqual(answered(asked).code, 0)
            self.assertGreaterEqual(self.rig.broker.slices.steps - steps, 2)
        self.assertEqual(len(self.rig.offsets.queues("H", "W")), count)

    def test_logged(self) -> None:
        """A copy is one line of the log, with the address it came from."""
        (line,) = logged(self.clone)
        self.assertIn("10.0.0.2:4711 copied the offsets of group 'G' to ", line)
        self.assertTrue(line.endswith(" in the topics T, U"), line)

    def test_online(self) -> None:
        """Of a group that is online only what it subscribes to, unless told."""
        wanted = [SubscriptionData(topic="U", sub_string="*")]
        data = ConsumerData(group_name="G", subscription_data_set=wanted)
        self.rig.consumers.register(
            RecordedConnection(), "id", "JAVA", 479, data, False
        )
        self.assertEqual(self.clone(), {"U": {0: 7}})
        self.assertEqual(self.clone(topic="T"), {"U": {0: 7}})
        self.assertEqual(set(self.clone(offline="true")), {"T", "U"})

    def test_unknownGroup(self) -> None:
        """A group that may not be made gets no offsets."""
        self.make(autoCreateSubscriptionGroup="false")
        with self.assertRaises(SubscriptionGroupNotExist):
            self.clone(topic="T")


class CorrectionTests(OffsetAdminCase):
    """Request 308."""

    def correction(self, **ext: str) -> dict[int, int]:
        """The offsets by queue."""
        fields = {"compareGroup": "C", "topic": "T", **ext}
        found: Any = loads(self.rig.ask(308, fields).body)
        return dict(found["correctionOffsets"])

    def test_least(self) -> None:
        """The least far of all groups, but those that are left out, which stay."""
        self.rig.offsets.commit("H", "T", 0, 2)
        self.rig.offsets.commit("I", "T", 0, 1)
        self.assertEqual(self.correction(filterGroups="I,X"), {0: 2, 1: 6})
        self.assertEqual(self.rig.offsets.query("I", "T", 0), 1)
        self.assertEqual(self.correction(topic="X"), {})

    def test_cleaned(self) -> None:
        """Where messages are gone nobody needs a correction to them."""
        queue = self.rig.store.queue("T", 0)
        assert isinstance(queue, Queue)
        queue.set_offsets(6, 9)
        self.assertEqual(self.correction(), {1: 6})
        self.rig.offsets.commit("H", "T", 0, 6)
        self.assertEqual(self.correction(), {0: 6, 1: 6})

    def test_compared(self) -> None:
        """A queue in which the compared group is behind needs none."""
        self.rig.offsets.commit("C", "T", 0, 3)
        self.rig.offsets.commit("C", "T", 1, 9)
        self.rig.offsets.commit("C", "T", 7, 9)
        found = self.correction(filterGroups="C")
        self.rig.offsets.commit("C", "T", 0, 5)
        self.assertEqual(self.correction(filterGroups="C"), {0: 5, 1: 6})
        self.assertEqual(found, {0: NO_CORRECTION, 1: 6})
