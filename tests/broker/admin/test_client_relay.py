"""Questions of operators to a group's members, through the broker."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.client_relay import (
    ANSWER_SECONDS,
    FIRST_WITH_INFO,
    FIRST_WITH_STATUS,
    MAX_ASKED,
    STATUS_LANES,
    ClientRelay,
)
from rocketbroker.errors import (
    BrokerError,
    ConnectionLost,
    RequestTimeout,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.records.ids import offset_id
from rocketbroker.records.record import decode
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.testing.threads import at_once
from rocketbroker.wire.bodies.heartbeats import ConsumerData
from rocketbroker.wire.codes import ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.fastjson import loads
from tests.broker.rig import HOST, Rig, answered


class RelayCase(SynchronousTestCase):
    """Group G has a member."""

    def setUp(self) -> None:
        """Nobody has asked it yet."""
        self.rig = rig = Rig({})
        self.addCleanup(rig.close)
        rig.topic("T", topic_sys_flag=2)
        rig.groups.find("G")
        self.relay = ClientRelay(
            rig.store, "broker-a", rig.topics, rig.groups, rig.consumers, at_once
        )
        self.relay.register(rig.table)
        self.member = self.join("id")

    def join(self, client_id: str, version: int = 479) -> RecordedConnection:
        """A member of the group."""
        connection = RecordedConnection()
        self.rig.consumers.register(
            connection, client_id, "JAVA", version, ConsumerData(group_name="G"), False
        )
        return connection

    def ask(self, code: int, **ext: str) -> object:
        """A request that may be under way when this returns."""
        return self.rig.begin(code, ext)

    def info(self, **ext: str) -> object:
        """Request 307."""
        return self.ask(307, **{"consumerGroup": "G", "clientId": "id", **ext})

    def failed(self, answer: object) -> BrokerError:
        """Why a request was refused."""
        assert isinstance(answer, Deferred)
        error = self.failureResultOf(answer, BrokerError).value
        assert isinstance(error, BrokerError)
        return error


class RunningInfoTests(RelayCase):
    """Request 307."""

    def test_passedOn(self) -> None:
        """The member is asked; its answer is the answer, whatever its code."""
        for code in (0, 1):
            answer = self.info(jstackEnable="true", AccessKey="a", Signature="s")
            ((asked, reply),) = self.member.requests
            self.assertEqual(asked.code, 307)
            self.assertEqual(
                asked.ext,
                {"consumerGroup": "G", "clientId": "id", "jstackEnable": "true"},
            )
            reply.callback(Command(code, body=b"{}", remark="r", opaque=99))
            found = answered(answer)
            self.assertEqual((found.code, found.body), (code, b"{}"))
            self.assertEqual((found.remark, found.opaque), ("r", 1))
            self.member.requests.clear()
        self.assertEqual(self.relay.asked, {})

    def test_newest(self) -> None:
        """A client that is connected twice is asked over the newer connection."""
        newer = self.join("id")
        self.info()
        self.assertEqual((len(self.member.requests), len(newer.requests)), (0, 1))

    def test_late(self) -> None:
        """A member that does not answer in time has a code of its own."""
        self.assertEqual(ANSWER_SECONDS, 10)
        answer = self.info()
        ((_, reply),) = self.member.requests
        reply.errback(RequestTimeout(f"{ANSWER_SECONDS} s"))
        self.assertEqual(self.failed(answer).code, ResponseCode.CONSUME_MSG_TIMEOUT)
        self.assertEqual(self.relay.asked, {})

    def test_gone(self) -> None:
        """So has one that vanishes while it is asked: an error in words."""
        answer = self.info()
        ((_, reply),) = self.member.requests
        reply.errback(ConnectionLost("gone"))
        error = self.failed(answer)
        self.assertIsInstance(error, SystemFailure)
        self.assertEqual(error.remark, "invoke consumer <G> <id> Exception: gone")

    def test_notThere(self) -> None:
        """A member that is gone or older than 3.1.8 is not asked."""
        self.assertEqual(FIRST_WITH_INFO, 62)
        old = self.join("old", FIRST_WITH_INFO - 1)
        for changes in ({"clientId": "x"}, {"consumerGroup": "x"}, {"clientId": "old"}):
            self.assertIsInstance(self.failed(self.info(**changes)), SystemFailure)
        self.assertEqual((self.member.requests, old.requests), ([], []))

    def test_tooMany(self) -> None:
        """One member is asked so much at a time, others still are, and none that does
        not read."""
        other = self.join("other", FIRST_WITH_INFO)
        for _ in range(MAX_ASKED):
            self.info()
        self.assertIsInstance(self.failed(self.info()), SystemBusy)
        self.info(clientId="other")
        self.assertEqual(len(other.requests), 1)
        _, reply = self.member.requests[0]
        reply.callback(Command(0))
        self.member.congested = True
        self.assertIsInstance(self.failed(self.info()), SystemBusy)


class ConsumeTests(RelayCase):
    """Request 309."""

    def consume(self, message_id: str, **ext: str) -> object:
        """Request 309."""
        fields = {"consumerGroup": "G", "clientId": "id", "topic": "T", **ext}
        return self.ask(309, msgId=message_id, **fields)

    def test_message(self) -> None:
        """The member gets the message as it is stored, and what flags it has."""
        position = self.rig.append(b"again").position
        answer = self.consume(offset_id(HOST, position))
        ((asked, reply),) = self.member.requests
        self.assertEqual(decode(asked.body).body, b"again")
        ext = asked.ext or {}
        self.assertEqual(ext["brokerName"], "broker-a")
        self.assertEqual((ext["topicSysFlag"], ext["groupSysFlag"]), ("2", "0"))
        reply.callback(Command(0, body=b"result"))
        self.assertEqual(answered(answer).body, b"result")

    def test_noMessage(self) -> None:
        """A position without a message is not consumed by any member."""
        with self.assertRaises(SystemFailure):
            self.consume("nonsense")
        error = self.failed(self.consume(offset_id(HOST, 4096)))
        self.assertEqual(error.remark, "can not find message by the offset, 4096")
        position = self.rig.append().position
        error = self.failed(self.consume(offset_id(HOST, position), clientId=""))
        self.assertEqual(error.remark, "The Consumer <G> <> not online")
        self.assertEqual(self.member.requests, [])


class StatusTests(RelayCase):
    """Request 223."""

    def status(self, **ext: str) -> object:
        """Request 223."""
        return self.ask(223, **{"group": "G", "topic": "T", **ext})

    def table(self, answer: object) -> dict[str, Any]:
        """Offsets by client and queue."""
        content: Any = loads(answered(answer).body)
        return {
            name: [offset for _, offset in sorted(queues.items(), key=str)]
            for name, queues in content["consumerTable"].items()
        }

    def test_all(self) -> None:
        """Every member is asked at once; who fails or makes no sense is left out."""
        others = [self.join(name) for name in ("two", "three", "four", "five")]
        answer = self.status()
        replies = []
        for connection in (self.member, *others):
            ((asked, reply),) = connection.requests
            self.assertEqual(
                (asked.code, asked.ext), (221, {"group": "G", "topic": "T"})
            )
            replies.append(reply)
        good = b'{"messageQueueTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}'
        replies[0].callback(Command(0, body=good))
        replies[1].errback(RequestTimeout("late"))
        replies[2].callback(Command(1, body=good))
        replies[3].callback(Command(0, body=b"nonsense"))
        replies[4].callback(Command(0, body=good))
        self.assertEqual(self.table(answer), {"id": [7], "five": [7]})

    def test_one(self) -> None:
        """One member alone."""
        other = self.join("two")
        self.status(clientAddr="two")
        self.assertEqual((len(self.member.requests), len(other.requests)), (0, 1))

    def test_refused(self) -> None:
        """Nobody is there, or one who would not understand."""
        with self.assertRaises(SystemFailure):
            self.status(group="X")
        self.join("old", FIRST_WITH_STATUS - 1)
        with self.assertRaises(SystemFailure):
            self.status()
        self.assertEqual(self.member.requests, [])

    def test_many(self) -> None:
        """Of a large group some are asked at a time, and silent ones stop no others."""
        members = [self.member, *(self.join(f"m{n}") for n in range(STATUS_LANES + 9))]
        answer = self.status()
        asked = [member for member in members if member.requests]
        self.assertEqual(len(asked), STATUS_LANES)
        good = b'{"messageQueueTable":{{"brokerName":"b","queueId":0,"topic":"T"}:7}}'
        for number, member in enumerate(members):
            ((_, reply),) = member.requests
            if number in (3, 8):
                reply.errback(RequestTimeout("late"))
            else:
                reply.callback(Command(0, body=good))
        self.assertEqual(len(self.table(answer)), len(members) - 2)
        self.assertEqual(self.relay.asked, {})

    def test_limit(self) -> None:
        """A member that is asked too much already is left out."""
        self.relay.asked[self.member] = MAX_ASKED
        self.assertEqual(self.table(self.status()), {})
