"""Rooms of a broker, made from a context in memory and no more."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.clients.room import ClientsRoom
from rocketbroker.broker.metadata.room import MetadataRoom
from rocketbroker.broker.registration.room import RegistrationRoom
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.contexts import memory_context
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.bodies.topics import TopicConfig


class RoomTests(SynchronousTestCase):
    """Each room does its work on the rooms below it alone."""

    def test_tablesThatWereSavedAreLoadedByTheNext(self) -> None:
        """The disk is all that two metadata rooms share."""
        disk = MemoryDisk()
        before = MetadataRoom(memory_context({}, disk=disk))
        before.load()
        before.topics.put([TopicConfig(topic_name="T", read_queue_nums=3)])
        before.offsets.commit("G", "T", 2, 7)
        self.successResultOf(before.save())
        after = MetadataRoom(memory_context({}, disk=disk))
        after.load()
        found = after.topics.config("T")
        assert found is not None
        self.assertEqual(found.read_queue_nums, 3)
        self.assertEqual(after.offsets.query("G", "T", 2), 7)

    def test_silentClientLeavesItsGroup(self) -> None:
        """Clients are scanned by the time of the context."""
        clock = Clock()
        context = memory_context({"channelExpiredTimeout": "5000"}, clock)
        metadata = MetadataRoom(context)
        registration = RegistrationRoom(context, metadata)
        clients = ClientsRoom(context, metadata, registration)
        data = ConsumerData(group_name="G")
        connection = RecordedConnection()
        clients.consumers.register(connection, "one", "JAVA", 479, data, False)
        clients.scan()
        self.assertIsNotNone(clients.consumers.group("G"))
        clock.advance(5.1)
        clients.scan()
        group = clients.consumers.group("G")
        self.assertTrue(group is None or not group.members)
