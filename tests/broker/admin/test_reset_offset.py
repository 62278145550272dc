"""Groups that are to go on from an offset, or from a time."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.reset_offset import FIRST_RESETTABLE
from rocketbroker.errors import (
    BrokerError,
    InvalidParameter,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.bodies.queues import MessageQueue
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import WALL_MS, Rig, answered, logged, pull_ext


class ResetCase(SynchronousTestCase):
    """Topic T with two queues; three messages in the first, a second apart."""

    server_side = True

    def setUp(self) -> None:
        """Group G has consumed all."""
        side = {"useServerSideResetOffset": str(self.server_side).lower()}
        self.rig = rig = Rig(side)
        self.addCleanup(rig.close)
        rig.topic("T", queues=2)
        rig.groups.find("G")
        for _ in range(3):
            rig.clock.advance(1)
            rig.append()
        rig.offsets.commit("G", "T", 0, 3)
        rig.offsets.commit("G", "T", 1, 0)

    def ask(self, language: str = "JAVA", **ext: str) -> dict[int, int]:
        """The offset by queue that answers request 222."""
        fields = {
            "group": "G",
            "topic": "T",
            "timestamp": str(WALL_MS + 1500),
            "isForce": "true",
            **ext,
        }
        request = Command(222, fields, language=language)
        responder = self.rig.table.responders[222]
        answer = answered(responder(RecordedConnection(), request))
        self.assertEqual(answer.code, 0)
        found: Any = loads(answer.body)
        return {
            MessageQueue.from_json(queue).queue_id: offset
            for queue, offset in found["offsetTable"].items()
        }

    def refused(self, error: type[BrokerError], **ext: str) -> str:
        """The remark of a refusal."""
        with self.assertRaises(error) as caught:
            self.ask(**ext)
        return str(caught.exception.remark)


class ServerSideTests(ResetCase):
    """By what the next pulls are answered."""

    def test_time(self) -> None:
        """Each queue goes on with the first message of that time; -1 is the end."""
        self.assertEqual(self.ask(), {0: 1, 1: 0})
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 1)
        self.assertTrue(self.rig.hot(RequestCode.PULL_MESSAGE, pull_ext(3)))
        (answer,) = self.rig.answers()
        self.assertEqual(answer.remark, "OFFSET_RESET")
        self.assertEqual(self.ask(timestamp="-1"), {0: 3, 1: 0})
        self.assertEqual(self.ask(timestamp="0"), {0: 0, 1: 0})

    def test_logged(self) -> None:
        """A reset is one line of the log, with the address it came from."""
        (line,) = logged(self.ask)
        self.assertEqual(
            line,
            "127.0.0.1:50000 reset the offsets of group 'G' in topic 'T': 0: 1, 1: 0",
        )

    def test_oneQueue(self) -> None:
        """One queue alone, by time or to an offset."""
        self.assertEqual(self.ask(queueId="0"), {0: 1})
        self.assertEqual(self.ask(queueId="0", offset="-1"), {0: 1})
        self.assertEqual(self.ask(queueId="0", offset="2"), {0: 2})
        self.assertEqual(self.ask(queueId="0", offset="4"), {0: 4})
        self.assertFalse(self.rig.offsets.has_reset("G", "T", 1))

    def test_refused(self) -> None:
        """Unknown topics, groups, queues and offsets are refused."""
        self.refused(TopicNotExist, topic="X")
        self.refused(SubscriptionGroupNotExist, group="X")
        self.refused(InvalidParameter, queueId="2")
        remark = self.refused(SystemFailure, queueId="0", offset="5")
        self.assertIn("5 not in consume queue range [0-3]", remark)
        self.refused(SystemFailure, queueId="0", offset="-2")
        queue = self.rig.store.queue("T", 0)
        assert isinstance(queue, Queue)
        queue.set_offsets(2, 3)  # the first two were cleaned away
        remark = self.refused(SystemFailure, queueId="0", offset="1")
        self.assertIn("1 not in consume queue range [2-3]", remark)
        self.rig.topic("N", queues=0)
        self.refused(SystemFailure, topic="N")
        self.assertEqual(self.rig.offsets.resets, {})


class MembersTests(ResetCase):
    """By what the members of the group are asked."""

    server_side = False

    def join(self, version: int = 479) -> RecordedConnection:
        """A member of the group."""
        connection = RecordedConnection()
        self.rig.consumers.register(
            connection, "id", "JAVA", version, ConsumerData(group_name="G"), False
        )
        return connection

    def test_asked(self) -> None:
        """Each member is told the offsets of all queues, and nothing changes here."""
        members = [self.join(), self.join()]
        self.assertEqual(self.ask(), {0: 1, 1: 0})
        for member in members:
            (notified,) = member.oneways
            self.assertEqual(notified.code, 220)
            self.assertEqual((notified.ext or {})["group"], "G")
            self.assertEqual(
                notified.body,
                b'{"offsetTable":{{"brokerName":"broker-a","queueId":0,"topic":"T"}:1,'
                b'{"brokerName":"broker-a","queueId":1,"topic":"T"}:0}}',
            )
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 3)

    def test_likeC(self) -> None:
        """Administrators of the C++ client get a list sent instead of a table."""
        member = self.join()
        self.ask(language="CPP")
        (notified,) = member.oneways
        content: Any = loads(notified.body)
        queue = {"brokerName": "broker-a", "topic": "T"}
        self.assertEqual(
            content["offsetTable"],
            [
                {**queue, "queueId": 0, "offset": 1},
                {**queue, "queueId": 1, "offset": 0},
            ],
        )

    def test_notForwards(self) -> None:
        """Without force nobody is sent over messages that he has not seen."""
        self.join()
        self.rig.offsets.commit("G", "T", 0, 1)
        self.assertEqual(self.ask(timestamp="-1", isForce="false"), {0: 1, 1: 0})
        self.assertEqual(self.ask(timestamp="0", isForce="false"), {0: 0, 1: 0})
        self.assertEqual(self.ask(timestamp="-1"), {0: 3, 1: 0})

    def test_refused(self) -> None:
        """Nobody there, somebody too old, or nothing consumed yet."""
        with self.assertRaises(BrokerError) as caught:
            self.ask()
        self.assertEqual(caught.exception.code, ResponseCode.CONSUMER_NOT_ONLINE)
        young, old = self.join(), self.join(FIRST_RESETTABLE - 1)
        self.refused(SystemFailure)
        self.assertEqual((young.oneways, old.oneways), ([], []))
        self.refused(SystemFailure, group="X")
