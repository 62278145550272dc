"""Requests of consumers between pulls."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    BrokerError,
    InvalidParameter,
    QueryNotFound,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import Rig


class ConsumerRequestTests(SynchronousTestCase):
    """Requests 38, 14 and 15."""

    def setUp(self) -> None:
        """A broker with a topic of two queues and a group."""
        self.make({})

    def make(self, settings: dict[str, str]) -> None:
        """A broker with these settings."""
        self.rig = Rig(settings)
        self.addCleanup(self.rig.close)
        rig = self.rig
        rig.topic("T", queues=2)
        rig.groups.find("G")
        self.consumers = rig.consumers

    def query(self, **changes: str) -> int:
        """The offset that answers request 14."""
        ext = {"consumerGroup": "G", "topic": "T", "queueId": "0", **changes}
        answer = self.rig.ask(14, ext)
        assert answer.ext is not None
        return int(answer.ext["offset"])

    def update(self, **changes: str) -> str | None:
        """The remark that answers request 15."""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "commitOffset": "5",
            **changes,
        }
        answer = self.rig.ask(15, ext)
        self.assertEqual(answer.code, 0)
        return answer.remark

    def refused(self, error: type[BrokerError], **changes: str) -> None:
        """Request 15 is refused."""
        with self.assertRaises(error):
            self.update(**changes)

    def join(self, connection: IConnection, client: str) -> None:
        """A first heartbeat."""
        data = ConsumerData(group_name="G")
        self.consumers.register(connection, client, "JAVA", 479, data, notify=False)

    def test_members(self) -> None:
        """The client ids of the members that a group has now; an error for a group
        without."""
        with self.assertRaises(SystemFailure) as caught:
            self.rig.ask(38, {"consumerGroup": "G"})
        self.assertEqual(caught.exception.remark, "no consumer for this group, G")
        members = [RecordedConnection(port=number) for number in range(2)]
        for member, client in zip(members, ("b", "a"), strict=True):
            self.join(member, client)
        answer = self.rig.ask(38, {"consumerGroup": "G"})
        self.assertEqual(loads(answer.body), {"consumerIdList": ["b", "a"]})
        members[0].close()
        answer = self.rig.ask(38, {"consumerGroup": "G"})
        self.assertEqual(loads(answer.body), {"consumerIdList": ["a"]})

    def test_membersOfNew(self) -> None:
        """A member whose retry topic was made for it is notified once more when it
        asks for the members: it has not found the topic's queues yet."""
        connection = RecordedConnection()
        self.rig.connection = connection
        self.join(connection, "a")
        self.consumers.retry_topic_made("G")
        self.rig.clock.advance(0)
        for _ in range(2):
            self.rig.ask(38, {"consumerGroup": "G"})
            self.assertEqual([sent.code for sent in connection.answers()], [40, 40])

    def test_committed(self) -> None:
        """A query finds the committed offset, also of an unknown group."""
        self.assertIsNone(self.update(commitOffset="7"))
        self.assertEqual(self.query(), 7)
        self.update(commitOffset="3")
        self.assertEqual(self.query(), 3)
        self.rig.offsets.commit("X", "T", 1, 9)
        self.assertEqual(self.query(consumerGroup="X", queueId="1"), 9)

    def test_emptyQueue(self) -> None:
        """A group without an offset begins an empty queue at 0, so that it skips
        nothing that is stored before its next request."""
        self.assertEqual(self.query(), 0)

    def test_emptyQueueNotZero(self) -> None:
        """A client that does not want 0 is answered that there is no offset."""
        with self.assertRaises(QueryNotFound):
            self.query(setZeroIfNotFound="false")
        self.assertEqual(self.query(setZeroIfNotFound="true"), 0)

    def test_inMemory(self) -> None:
        """A queue whose first message is still in memory is begun at 0."""
        self.rig.append()
        self.rig.scheduler.dispatch()
        self.assertEqual(self.query(), 0)

    def test_cold(self) -> None:
        """A queue whose first message is old is not begun at 0."""
        self.make({"accessMessageInMemoryMaxRatio": "0"})
        self.rig.append()
        self.rig.scheduler.dispatch()
        with self.assertRaises(QueryNotFound):
            self.query()

    def test_noSuchQueue(self) -> None:
        """A queue that is not there has no offset, and does not come to be."""
        before = len(self.rig.store.queues())
        for changes in ({"queueId": "2"}, {"queueId": "-1"}, {"topic": "U"}):
            with self.assertRaises(QueryNotFound):
                self.query(**changes)
        self.assertEqual(len(self.rig.store.queues()), before)

    def test_updateRefused(self) -> None:
        """Offsets are committed by known groups, in known queues, as numbers."""
        self.refused(SubscriptionGroupNotExist, consumerGroup="X")
        self.refused(TopicNotExist, topic="U")
        self.refused(InvalidParameter, queueId="x")
        self.refused(InvalidParameter, commitOffset="")
        self.refused(InvalidParameter, queueId="2")
        self.refused(InvalidParameter, queueId="-1")
        self.assertIsNone(self.rig.groups.config("X"))

    def test_updateOfFormerQueue(self) -> None:
        """A queue that a topic had once can still be committed."""
        self.rig.offsets.commit("G", "T", 7, 1)
        self.update(queueId="7", commitOffset="2")
        self.assertEqual(self.query(queueId="7"), 2)

    def test_updateDuringReset(self) -> None:
        """A commit between a reset and the next pull changes nothing, and says so."""
        self.rig.offsets.reset("G", "T", 0, 2)
        remark = self.update(commitOffset="9")
        self.assertEqual(remark, "Offset has been previously reset")
        self.assertEqual(self.query(), 2)
