"""Notices to consumers."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.consumer_notify import ConsumerNotify
from rocketbroker.broker.clients.consumers import ConsumerGroup
from rocketbroker.broker.clients.members import Member
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.testing.connections import RecordedConnection


class NoticesTests(SynchronousTestCase):
    """CONSUMER_IDS_CHANGED."""

    def setUp(self) -> None:
        """A group of two."""
        self.clock = Clock()
        self.group = ConsumerGroup("G")
        self.connections = [self.join(port) for port in (1, 2)]

    def join(self, port: int) -> RecordedConnection:
        """One more member."""
        connection = RecordedConnection(port=port)
        self.group.add(Member(connection, f"c{port}", "JAVA", 479, 0.0))
        return connection

    def make(self, options: BrokerOptions | None = None) -> ConsumerNotify:
        """Notices as options have them."""
        return ConsumerNotify(self.clock, options or BrokerOptions())

    def notified(self) -> list[int]:
        """How many notices each connection was sent."""
        return [len(sent.frames) for sent in self.connections]

    def test_quiet(self) -> None:
        """Each member of a group that was quiet gets request 40 with the group's name,
        oneway, when the turn that brought the change is over; all the same bytes."""
        notices = self.make()
        notices.consumer_ids_changed(self.group)
        self.assertEqual(self.notified(), [0, 0])
        self.clock.advance(0)
        one, two = (connection.frames[0] for connection in self.connections)
        self.assertIs(one, two)
        (command,) = self.connections[0].answers()
        self.assertEqual(command.code, 40)
        self.assertEqual(command.ext, {"consumerGroup": "G"})
        self.assertTrue(command.is_oneway)
        self.assertEqual((self.notified(), notices.sent), ([1, 1], 2))

    def test_oneTurn(self) -> None:
        """All changes of one turn are one notice, and a group without a change after
        it gets no other."""
        notices = self.make()
        for _ in range(100):
            notices.consumer_ids_changed(self.group)
        self.clock.pump([0.0, 0.05, 0.05, 10.0])
        self.assertEqual(self.notified(), [1, 1])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_gathered(self) -> None:
        """Changes within a tenth of a second after a notice are one more, at its end;
        then the group is left alone for a tenth again."""
        notices = self.make()
        for _ in range(60):
            notices.consumer_ids_changed(self.group)
            self.clock.advance(0.005)
        self.assertEqual(self.notified(), [3, 3])
        self.clock.advance(0.1)
        self.assertEqual(self.notified(), [4, 4])
        self.clock.advance(0.1)
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0)
        self.assertEqual(self.notified(), [5, 5])

    def test_groups(self) -> None:
        """No group waits for another."""
        notices = self.make()
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0.05)
        other = ConsumerGroup("H")
        other.members = self.group.members
        notices.consumer_ids_changed(other)
        self.clock.advance(0)
        self.assertEqual(self.notified(), [2, 2])

    def test_largeGroup(self) -> None:
        """Of a large group some members are notified at a time, and who has joined
        since when all others are: what they ask for then leaves time for everything
        else."""
        self.connections += [self.join(port) for port in range(3, 501)]
        notices = self.make()
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0)
        self.assertEqual(self.notified(), [1] * 200 + [0] * 300)
        self.connections.append(self.join(501))
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0.1)
        self.assertEqual(self.notified(), [1] * 400 + [0] * 101)
        self.connections[450].close()
        self.clock.advance(0.1)
        self.assertEqual(self.notified(), [1] * 450 + [0] + [1] * 49 + [0])
        self.assertEqual(notices.sent, 499)
        self.clock.advance(0.1)
        self.assertEqual(self.notified(), [2] * 200 + [1] * 250 + [0] + [1] * 49 + [0])
        self.clock.pump([0.1] * 3)
        self.assertEqual(self.notified(), [2] * 450 + [0] + [2] * 49 + [1])
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_newGroup(self) -> None:
        """Notified are the members of the group as it is then, even if all others
        have left and it was begun anew."""
        notices = self.make()
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0)
        notices.consumer_ids_changed(self.group)
        self.group = ConsumerGroup("G")
        third = self.join(3)
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0.1)
        self.assertEqual((self.notified(), len(third.frames)), ([1, 1], 1))

    def test_oneMember(self) -> None:
        """One member can be notified alone, at once."""
        notices = self.make()
        notices.consumer_ids_changed(self.group, self.connections[1])
        self.assertEqual(self.notified(), [0, 1])

    def test_congested(self) -> None:
        """A member that does not read is not notified: that would pile up."""
        self.connections[0].congested = True
        notices = self.make()
        notices.consumer_ids_changed(self.group)
        self.clock.advance(0)
        self.assertEqual((self.notified(), notices.sent), ([0, 1], 1))

    def test_late(self) -> None:
        """Without realTimeNotifyConsumerChange a group is notified once in a while."""
        notices = self.make(BrokerOptions(real_time_notify_consumer_change=False))
        notices.consumer_ids_changed(self.group)
        notices.consumer_ids_changed(self.group, self.connections[0])
        self.clock.advance(1)
        self.assertEqual(self.notified(), [0, 0])
        for _ in range(2):
            notices.deliver()
            self.clock.advance(15)
            self.assertEqual(self.notified(), [1, 1])

    def test_never(self) -> None:
        """Without notifyConsumerIdsChangedEnable nobody is notified."""
        notices = self.make(BrokerOptions(notify_consumer_ids_changed_enable=False))
        notices.consumer_ids_changed(self.group)
        notices.consumer_ids_changed(self.group, self.connections[0])
        self.clock.advance(1)
        notices.deliver()
        self.assertEqual(self.notified(), [0, 0])
