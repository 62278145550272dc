"""Requests to other clients, and their replies."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.client.received import MessageView, ReceivedMessage
from rocketbroker.errors import (
    ClientClosed,
    MessageIllegal,
    RequestTimeout,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.testing.puppet_cluster import refuse
from rocketbroker.testing.runtime import Cancelled, Outcome
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.client.cluster import ClientCluster

PUSH = RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT


class ReplyTests(SynchronousTestCase):
    """One client that asks, and a member of a group that replies."""

    def setUp(self) -> None:
        self.here = ClientCluster("b1", "b2")
        self.here.cluster.topics["c_REPLY_TOPIC"] = {"b1": 1, "b2": 1}
        self.runtime = self.here.runtime
        self.mq = self.here.session()

    def ask(self, body: str = "ping", **options: Any) -> Outcome[MessageView]:
        """Begin to ask."""
        asking = self.runtime.start(self.mq.request("T", body, **options))
        self.runtime.settle()
        return asking

    def next(self, mode: str = "classic") -> ReceivedMessage:
        """What somebody who replies has received."""
        options: Any = {"mode": mode, "start": "earliest"}
        stream = self.here.session().consumer("T", "G", **options)
        self.runtime.finish(stream.__aenter__())
        message = self.runtime.finish(stream.next(0.0))
        assert message is not None
        return message

    def test_replyComesBack(self) -> None:
        """With its tag and properties, and as large as it was; it is still to be
        acknowledged."""
        asking = self.ask(tag="a", keys=["k"], timeout=5.0)
        message = self.next()
        self.assertEqual((message.text, message.tag), ("ping", "a"))
        self.assertEqual(message.properties["TTL"], "5000")
        body = "re:" + 5000 * message.text
        self.runtime.finish(message.reply(body, tag="b", properties={"n": "1"}))
        reply = asking.value()
        self.assertEqual((reply.text, reply.tag), (body, "b"))
        self.assertEqual(reply.properties["n"], "1")
        self.assertEqual(reply.properties["MSG_TYPE"], "reply")
        self.assertEqual(reply.topic, "c_REPLY_TOPIC")
        self.assertIn("ARRIVE_TIME", reply.properties)
        self.runtime.finish(message.ack())

    def test_memberThatPopsRepliesToo(self) -> None:
        """In the same way."""
        asking = self.ask()
        self.runtime.finish(self.next("pop").reply("pong"))
        self.assertEqual(asking.value().text, "pong")

    def test_repliesFindTheirQuestions(self) -> None:
        """Whichever comes first."""
        first, second = self.ask("1"), self.ask("2")
        self.runtime.finish(self.next().reply("one"))
        self.assertFalse(second.ended)
        self.assertEqual(first.value().text, "one")

    def test_nobodyReplies(self) -> None:
        """In time; what comes later is taken and dropped."""
        asking = self.ask()
        message = self.next()
        self.runtime.advance(3.0)
        self.assertRaises(RequestTimeout, asking.value)
        self.runtime.finish(message.reply("late"))

    def test_failedSendIsTold(self) -> None:
        """At once; nobody could reply."""
        code = RequestCode.SEND_MESSAGE_V2
        for broker in self.here.cluster.brokers.values():
            broker.faults[code] = [refuse(17)] * 3
        asking = self.ask()
        self.runtime.advance(1.0)
        self.assertRaises(TopicNotExist, asking.value)

    def test_allBrokersKnowTheAsker(self) -> None:
        """Before the message is sent: the reply may go to any."""
        self.ask()
        for broker in self.here.cluster.brokers.values():
            self.assertEqual(len(broker.clients), 1)

    def test_askerThatIsGone(self) -> None:
        """The reply is refused."""
        self.ask().cancel()
        message = self.next()
        self.runtime.finish(self.mq.close())
        replying = self.runtime.start(message.reply("pong"))
        self.here.wait(lambda: replying.ended)
        self.assertRaises(SystemFailure, replying.value)

    def test_cancelledAskerWaitsNoMore(self) -> None:
        """Nor does it go on to send."""
        self.here.cluster.stop("b1")
        self.here.cluster.stop("b2")
        asking = self.ask()
        asking.cancel()
        self.runtime.advance(1.0)
        self.assertRaises(Cancelled, asking.value)
        before = len(self.runtime.connects)
        self.runtime.advance(3.0)
        self.assertEqual(len(self.runtime.connects), before)

    def test_closedAskerWaitsNoMore(self) -> None:
        """It is told so, and not that nobody has replied."""
        asking = self.ask()
        self.runtime.finish(self.mq.close())
        self.assertRaises(ClientClosed, asking.value)

    def test_onlyWhatIsAskedIsAnswered(self) -> None:
        """Other messages have nobody who waits."""
        self.runtime.finish(self.mq.send("T", "x"))
        with self.assertRaises(MessageIllegal):
            self.runtime.finish(self.next().reply("pong"))

    def test_unreadableReplyIsRefused(self) -> None:
        """In RocketMQ's words."""
        self.ask()
        link = next(iter(self.here.broker().clients))
        link.send(Command(PUSH, {"sysFlag": "1", "topic": "x"}, b"x", opaque=77))
        with self.assertLogs("rocketbroker.client", "WARNING"):
            self.runtime.settle()
        answer = link.requests[-1]
        self.assertEqual((answer.opaque, answer.code), (77, 1))
        self.assertEqual(answer.remark, "process reply message fail")
