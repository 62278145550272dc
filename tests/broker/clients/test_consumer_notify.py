"""Notices to consumers."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.consumer_notify import ConsumerNotify
from rocketbroker.broker.clients.consumers import ConsumerGroup, Member
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.testing.connections import RecordedConnection


class NoticesTests(SynchronousTestCase):
    """CONSUMER_IDS_CHANGED."""

    def setUp(self) -> None:
        """A group of two."""
        self.group = ConsumerGroup("G")
        self.connections = [RecordedConnection(port=1), RecordedConnection(port=2)]
        for connection in self.connections:
            self.group.members[connection] = Member(connection, "c", "JAVA", 479, 0.0)

    def told(self) -> list[list[tuple[int, dict[str, str] | None, bool]]]:
        """The requests that each connection was sent."""
        return [
            [(command.code, command.ext, command.is_oneway) for command in sent.oneways]
            for sent in self.connections
        ]

    def test_atOnce(self) -> None:
        """Each member gets request 40 with the group's name, oneway."""
        notices = ConsumerNotify(BrokerOptions())
        notices.consumer_ids_changed(self.group, self.connections)
        self.assertEqual(self.told(), [[(40, {"consumerGroup": "G"}, True)]] * 2)
        self.assertEqual(notices.sent, 2)
        notices.deliver()
        self.assertEqual(notices.sent, 2)

    def test_some(self) -> None:
        """Some members can be told alone."""
        notices = ConsumerNotify(BrokerOptions())
        notices.consumer_ids_changed(self.group, self.connections[1:])
        self.assertEqual([len(sent) for sent in self.told()], [0, 1])

    def test_congested(self) -> None:
        """A member that does not read is not told: that would pile up."""
        self.connections[0].congested = True
        notices = ConsumerNotify(BrokerOptions())
        notices.consumer_ids_changed(self.group, self.connections)
        self.assertEqual([len(sent) for sent in self.told()], [0, 1])
        self.assertEqual(notices.sent, 1)

    def test_late(self) -> None:
        """Without realTimeNotifyConsumerChange each group is told once in a while."""
        notices = ConsumerNotify(BrokerOptions(real_time_notify_consumer_change=False))
        notices.consumer_ids_changed(self.group, self.connections)
        notices.consumer_ids_changed(self.group, self.connections)
        self.assertEqual(self.told(), [[], []])
        notices.deliver()
        self.assertEqual([len(sent) for sent in self.told()], [1, 1])
        notices.deliver()
        self.assertEqual([len(sent) for sent in self.told()], [1, 1])

    def test_never(self) -> None:
        """Without notifyConsumerIdsChangedEnable nobody is told."""
        notices = ConsumerNotify(
            BrokerOptions(notify_consumer_ids_changed_enable=False)
        )
        notices.consumer_ids_changed(self.group, self.connections)
        notices.deliver()
        self.assertEqual(self.told(), [[], []])
