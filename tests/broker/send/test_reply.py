"""Replies find the client that asked."""

from __future__ import annotations

import zlib

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.send.reply import PUSH_SECONDS
from rocketbroker.errors import (
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    RequestTimeout,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.records import properties
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.send import (
    ReplyMessageRequestHeader,
    SendMessageRequestHeaderV2,
)
from tests.broker.rig import HOST_TEXT, WALL_MS, Rig, answered, send_ext

TOPIC = "cluster-a_REPLY_TOPIC"

OWN = (
    "CORRELATION_ID\x01id-1\x02REPLY_TO_CLIENT\x01asker\x02MSG_TYPE\x01reply\x02"
    "TTL\x013000\x02UNIQ_KEY\x01u1\x02"
)


class ReplyTests(SynchronousTestCase):
    """Requests 324, 325 and 326."""

    def setUp(self) -> None:
        """A broker, and a client that asked."""
        self.make()

    def make(self, **settings: str) -> None:
        """A broker with these settings."""
        self.rig = rig = Rig(settings)
        self.addCleanup(rig.close)
        self.replies = rig.broker.send.replies
        self.asker = RecordedConnection(port=7)
        self.rig.producers.register(self.asker, "asker", "JAVA", 479, "PG")

    def reply(
        self, body: bytes = b"pong", own: str = OWN, code: int = 325, **more: str
    ) -> Deferred[Command | None]:
        """A reply, in a turn of its own."""
        ext = send_ext(TOPIC, properties=own, **more)
        if code == 324:
            header = SendMessageRequestHeaderV2.from_ext(ext).to_v1()
            ext = header.to_ext()
        answer = self.rig.begin(code, ext, body)
        self.rig.batcher.flush()
        assert isinstance(answer, Deferred)
        return answer

    def answer_push(self, code: int = 0) -> None:
        """The client that asked says whether it takes the reply."""
        ((_, fires),) = self.asker.requests
        fires.callback(Command(code))

    def check(self, answer: object, code: int, offset: int | None = 0) -> str | None:
        """What the one who replied hears; its remark."""
        got = answered(answer)
        self.assertEqual(got.code, code)
        assert got.ext is not None
        stored = offset is not None
        self.assertEqual(got.ext["queueOffset"], str(offset or 0))
        self.assertEqual(got.ext["queueId"], "0")
        self.assertEqual(got.ext["msgId"] != "0", stored)
        if stored:
            self.assertTrue(got.ext["msgId"].startswith(HOST_TEXT))
        return got.remark

    def test_pushed(self) -> None:
        """A reply goes to the client that asked, with all that it carries; the one who
        replied is answered when it was taken. The address in it is the proxy's."""
        self.rig.connection.peer = "203.0.113.7:56324"
        answer = self.reply(h="3", j="2")
        ((command, _),) = self.asker.requests
        self.assertEqual((command.code, command.body), (326, b"pong"))
        header = ReplyMessageRequestHeader.from_ext(command.ext)
        own = properties.parse(header.properties or "")
        self.assertEqual(own.pop("PUSH_REPLY_TIME"), str(WALL_MS))
        region = {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
        self.assertEqual(own, {**properties.parse(OWN), **region})
        self.assertEqual(
            (header.producer_group, header.topic, header.queue_id, header.flag),
            ("PG", TOPIC, 0, 3),
        )
        self.assertEqual(header.born_timestamp, 1_700_000_000_000)
        self.assertEqual(header.reconsume_times, 2)
        self.assertEqual(header.born_host, "10.0.0.2:4711")
        self.assertEqual(header.store_host, "10.0.0.1:10911")
        self.assertEqual(header.store_timestamp, WALL_MS)
        self.assertFalse(answer.called)
        self.answer_push()
        self.assertIsNone(self.check(answer, 0))
        self.assertEqual((self.replies.pushed, self.replies.lost), (1, 0))

    def test_stored(self) -> None:
        """A reply is stored as it came, besides; counted like a send."""
        self.reply()
        (message,) = self.rig.records(topic=TOPIC)
        self.assertEqual(message.body, b"pong")
        own = message.properties
        self.assertEqual(own["CORRELATION_ID"], "id-1")
        self.assertNotIn("PUSH_REPLY_TIME", own)
        (counter,) = self.rig.sending.counters()
        self.assertEqual((counter.topic, counter.messages), (TOPIC, 1))

    def test_notStored(self) -> None:
        """With storeReplyMessageEnable=false it is only pushed."""
        self.make(storeReplyMessageEnable="false")
        answer = self.reply()
        self.answer_push()
        self.check(answer, 0, None)
        self.assertEqual(self.rig.records(topic=TOPIC), [])

    def test_longNames(self) -> None:
        """Request 324 is the same under the long names."""
        answer = self.reply(code=324)
        self.answer_push()
        self.check(answer, 0)
        self.assertEqual(len(self.rig.records(topic=TOPIC)), 1)

    def test_anyQueue(self) -> None:
        """Who does not mind the queue gets one, and hears which."""
        answer = self.reply(e="-1")
        ((command, _),) = self.asker.requests
        self.assertEqual(ReplyMessageRequestHeader.from_ext(command.ext).queue_id, 0)
        self.answer_push()
        self.check(answer, 0)

    def test_compressed(self) -> None:
        """A compressed reply is pushed and stored as it is, with the flag of it."""
        body = zlib.compress(b"pong" * 2000)
        self.reply(body, f=str(0x301))
        ((command, _),) = self.asker.requests
        self.assertEqual(command.body, body)
        header = ReplyMessageRequestHeader.from_ext(command.ext)
        self.assertEqual(header.sys_flag, 0x301)
        (message,) = self.rig.records(topic=TOPIC)
        self.assertEqual((message.body, message.sys_flag), (body, 0x301))

    def test_withoutBody(self) -> None:
        """A reply that says nothing is handed over, but there is nothing to store: the
        Go client forgets what it should say."""
        answer = self.reply(b"")
        ((command, _),) = self.asker.requests
        self.assertEqual(command.body, b"")
        self.answer_push()
        self.check(answer, 0, None)
        self.assertEqual(self.rig.records(topic=TOPIC), [])

    def test_nobody(self) -> None:
        """A client that is not there cannot be told; the reply is stored."""
        self.asker.close()
        remark = self.check(self.reply(), 1)
        self.assertEqual(
            remark, "push reply message fail, channel of <asker> not found."
        )
        self.assertEqual(len(self.rig.records(topic=TOPIC)), 1)
        self.assertEqual((self.replies.pushed, self.replies.lost), (0, 1))

    def test_noAddress(self) -> None:
        """A reply that does not say for whom it is."""
        remark = self.check(self.reply(own="A\x01b\x02"), 1)
        self.assertEqual(remark, "reply message properties[REPLY_TO_CLIENT] is null")

    def test_refused(self) -> None:
        """The client that asked does not take it."""
        answer = self.reply()
        self.answer_push(1)
        remark = self.check(answer, 1)
        self.assertEqual(remark, "push reply message to askerfail.")

    def test_silent(self) -> None:
        """The client that asked goes, or says nothing for ten seconds."""
        answer = self.reply()
        ((_, fires),) = self.asker.requests
        fires.errback(RequestTimeout(f"{PUSH_SECONDS} s"))
        remark = self.check(answer, 1)
        self.assertEqual(remark, "push reply message to askerfail.")

    def test_congested(self) -> None:
        """Nothing is pushed to a client that does not read."""
        self.asker.congested = True
        remark = self.check(self.reply(), 1)
        self.assertEqual(remark, "push reply message to askerfail.")
        self.assertEqual(self.asker.requests, [])

    def test_cannotBeStored(self) -> None:
        """A reply that is not stored reaches the one who asked all the same: its queue
        cannot be made, or the store takes nothing more."""
        for first in (False, True):
            self.make()
            if first:
                self.reply()
                self.asker.requests.clear()
            self.rig.store.close()
            answer = self.reply()
            self.answer_push()
            self.check(answer, 0, None)
            self.assertEqual(self.rig.batcher.refused["unavailable"], 1)

    def test_checks(self) -> None:
        """What a send is refused for, a reply is refused for, and is not pushed."""
        with self.assertRaises(InvalidParameter):
            self.reply(e="1")
        with self.assertRaises(NoPermission):
            self.reply(b="SELF_TEST_TOPIC")
        with self.assertRaises(MessageIllegal):
            self.reply(f="128")
        with self.assertRaises(SystemFailure):
            self.rig.begin(324, None, b"x")
        self.assertEqual(self.asker.requests, [])

    def test_tooMany(self) -> None:
        """While no send may be taken, no reply may."""
        self.make(flushDiskType="SYNC_FLUSH", sendThreadPoolQueueCapacity="0")
        with self.assertRaises(SystemBusy):
            self.reply()
        self.assertEqual(self.rig.batcher.refused["overloaded"], 1)
        self.assertEqual(self.asker.requests, [])

    def test_batch(self) -> None:
        """A reply that says it is a batch is one message."""
        self.reply(m="true")
        (message,) = self.rig.records(topic=TOPIC)
        self.assertEqual(message.body, b"pong")

    def test_half(self) -> None:
        """A reply that says it is a half message is stored and pushed as a whole."""
        self.reply(f="4")
        (message,) = self.rig.records(topic=TOPIC)
        self.assertEqual(message.sys_flag, 0)
        ((command, _),) = self.asker.requests
        header = ReplyMessageRequestHeader.from_ext(command.ext)
        self.assertEqual(header.sys_flag, 0)
