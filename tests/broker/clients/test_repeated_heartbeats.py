"""Heartbeats that say again what the last one of their connection has said."""

from __future__ import annotations

from rocketbroker.broker.clients.heartbeats import MAX_GROUPS
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import InvalidParameter
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.topics import TopicConfig
from rocketbroker.wire.command import ONEWAY, RESPONSE, Command
from rocketbroker.wire.fastjson import dumps
from rocketbroker.wire.frames import decode, encode
from tests.broker.clients.heartbeatcase import HeartbeatCase
from tests.broker.rig import answered, heartbeat

STRICT = {"rejectPullConsumerEnable": "true"}


class RepeatedHeartbeatTests(HeartbeatCase):
    """Heartbeats by the hot way and the general one, as a port has them."""

    def make(self, options: BrokerOptions) -> None:
        """The parts, and a client that has sent two: what the first one has made, the
        second one finds."""
        super().make(options)
        self.table = ResponderTable()
        self.heartbeats.register(self.table)
        self.opaque = 0
        self.ask()
        self.ask()

    def ask(
        self,
        content: bytes | None = None,
        connection: RecordedConnection | None = None,
        flag: int = 0,
    ) -> bool:
        """A heartbeat; whether it was taken as a repeated one."""
        connection = connection or self.connection
        self.opaque += 1
        body = heartbeat() if content is None else content
        frame = encode(Command(34, {}, body, opaque=self.opaque, flag=flag))
        head = 8 + int.from_bytes(frame[5:8], "big")
        (entry,) = self.table.hot.values()
        if entry.responder(connection, frame[8:head], frame[head:]):
            return True
        self.general = answered(
            self.heartbeats.heart_beat(connection, decode(frame[4:]))
        )
        return False

    def test_same(self) -> None:
        """It is answered as by the general way, and its members were seen."""
        self.clock.advance(100)
        self.assertTrue(self.ask())
        frame = self.connection.frames[-1]
        self.general.opaque, self.general.flag = self.opaque, RESPONSE
        self.assertEqual(frame, encode(self.general))
        (consumer,) = self.consumers.members_on(self.connection)
        (producer,) = self.producers.members_on(self.connection)
        self.assertEqual((consumer.seen, producer.seen), (100.0, 100.0))
        self.assertEqual(self.heartbeats.received, 3)

    def test_first(self) -> None:
        """The one that makes the members may be repeated, if others have made the
        group."""
        other = RecordedConnection(port=2)
        content = heartbeat(clientID="b")
        self.assertFalse(self.ask(content, other))
        self.assertTrue(self.ask(content, other))

    def test_different(self) -> None:
        """One that says anything else goes the general way, and replaces it."""
        content = heartbeat(clientID="b")
        self.assertFalse(self.ask(content))
        self.assertFalse(self.ask())
        self.assertTrue(self.ask())
        self.assertFalse(self.ask(content))
        self.assertTrue(self.ask(content))

    def test_otherConnection(self) -> None:
        """Each connection has its own."""
        self.assertFalse(self.ask(connection=RecordedConnection(port=2)))

    def test_changes(self) -> None:
        """Once topics, groups, subscriptions or settings have changed it goes the
        general way once."""
        other = RecordedConnection(port=2)
        newer = heartbeat(topics=["T", "U"], clientID="b")
        where = heartbeat(clientID="b").replace(b"LAST_OFFSET", b"FIRST_OFFSET")
        for change in (
            lambda: self.topics.put([TopicConfig(topic_name="V")]),
            lambda: self.groups.find("another"),
            lambda: self.heartbeats.configure(BrokerSettings.from_properties(STRICT)),
            lambda: self.ask(newer, other),
            lambda: self.ask(where, other),
        ):
            self.assertTrue(self.ask())
            change()
            self.assertFalse(self.ask())

    def test_retryTopicGone(self) -> None:
        """A retry topic that was deleted is made again."""
        self.topics.delete("%RETRY%G")
        self.assertFalse(self.ask())
        self.assertIsNotNone(self.topics.config("%RETRY%G"))

    def test_unregistered(self) -> None:
        """A client that left one of its groups joins it again."""
        ext = {"clientID": "10.0.0.9@1", "consumerGroup": "G"}
        self.heartbeats.unregister(self.connection, Command(35, ext))
        self.assertFalse(self.ask())
        self.assertEqual(len(self.consumers.members_on(self.connection)), 1)
        self.assertTrue(self.ask())

    def test_fewerGroups(self) -> None:
        """One that does not name all groups of its connection is never repeated: their
        members would be seen with it."""
        content = heartbeat(producerDataSet=[])
        self.assertFalse(self.ask(content))
        self.assertFalse(self.ask(content))

    def test_noGroups(self) -> None:
        """The same for one without any groups."""
        connection = RecordedConnection(port=2)
        content = heartbeat(producerDataSet=[], consumerDataSet=[])
        self.assertFalse(self.ask(content, connection))
        self.assertFalse(self.ask(content, connection))

    def test_secondVersion(self) -> None:
        """Heartbeats of the second version go the general way."""
        content = heartbeat(heartbeatFingerprint=5)
        self.assertFalse(self.ask(content))
        self.assertFalse(self.ask(content))

    def test_oneway(self) -> None:
        """One that wants no answer gets none."""
        self.ask(flag=ONEWAY)
        self.assertFalse(self.ask(flag=ONEWAY))

    def test_refused(self) -> None:
        """One that is refused is refused again."""
        producers = [{"groupName": str(n)} for n in range(MAX_GROUPS + 1)]
        content = heartbeat(producerDataSet=producers)
        for _ in range(2):
            self.assertRaises(InvalidParameter, self.ask, content)

    def test_expired(self) -> None:
        """A client that is heard by such heartbeats stays."""
        for _ in range(3):
            self.clock.advance(80)
            self.assertTrue(self.ask())
            self.consumers.scan(120)
            self.producers.scan(120)
        self.assertEqual(self.consumers.expired + self.producers.expired, 0)
        self.assertFalse(self.connection.closed)

    def test_unusualHeader(self) -> None:
        """A header without an opaque of the usual form goes the general way."""
        (entry,) = self.table.hot.values()
        header = dumps({"code": 34, "opaque": -1})
        self.assertFalse(entry.responder(self.connection, header, heartbeat()))
