"""Tests of L{rocketbroker.broker.send.send_checks}, through the responder of sends."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import (
    BrokerError,
    InvalidParameter,
    MessageIllegal,
    NoPermission,
    SubscriptionGroupNotExist,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.records.batches import encode_part
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.headers.send import SendMessageRequestHeaderV2
from tests.broker.rig import Rig, send_ext

SEND = RequestCode.SEND_MESSAGE_V2
BATCH = RequestCode.SEND_BATCH_MESSAGE


class CheckTests(SynchronousTestCase):
    """What is refused, with which code, in which words."""

    def setUp(self) -> None:
        """A topic T of four queues."""
        self.rig = self.make()

    def make(self, **settings: str) -> Rig:
        """A data path with those settings."""
        rig = Rig(settings)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        return rig

    def refused(
        self,
        error: type[BrokerError],
        ext: dict[str, str] | None,
        body: bytes = b"body",
        code: int = SEND,
    ) -> str:
        """The remark with which a send is refused."""
        caught = self.assertRaises(error, self.rig.begin, code, ext, body)
        self.assertEqual(self.rig.batcher.drafts, [])
        return str(caught.remark)

    def test_tooManyTopics(self) -> None:
        """With as many topics as sends may create, what a group failed at is taken
        all the same; a topic that nobody needs is refused, with the reason."""
        self.rig = self.make(rocketbrokerMaxAutoTopics="0")
        self.rig.groups.put([SubscriptionGroupConfig(group_name="G")])
        answer = self.rig.ask(RequestCode.SEND_MESSAGE_V2, send_ext("%RETRY%G"), b"x")
        self.assertEqual(answer.code, 0)
        for topic in ("New", "%RETRY%H"):
            error = self.assertRaises(
                TopicNotExist,
                self.rig.ask,
                RequestCode.SEND_MESSAGE_V2,
                send_ext(topic),
                b"x",
            )
            self.assertIn("rocketbrokerMaxAutoTopics", str(error))

    def test_bodyMissing(self) -> None:
        """A message without a body is SYSTEM_ERROR, as RocketMQ's null pointer."""
        self.assertIn("no body", self.refused(SystemFailure, send_ext(), b""))

    def test_fieldsMissing(self) -> None:
        """So is a request without any fields."""
        self.assertIn("no header fields", self.refused(SystemFailure, None))

    def test_noNumber(self) -> None:
        """A number that is none is SYSTEM_ERROR with the short header."""
        remark = self.refused(SystemFailure, send_ext(e="x"))
        self.assertIn("the field e is missing, or is no number", remark)

    def test_fieldMissing(self) -> None:
        """A send that does not say its topic, queue, flags or time is not carried out,
        with either header; nobody needs the group and the topic to make one like."""
        ext = send_ext()
        for key in "befgh":
            rest = {name: text for name, text in ext.items() if name != key}
            self.assertIn(f"the field {key} ", self.refused(SystemFailure, rest))
        rest = {name: text for name, text in ext.items() if name not in "acd"}
        self.assertEqual(self.rig.ask(SEND, rest, b"x").code, 0)
        long = SendMessageRequestHeaderV2.from_ext(ext).to_v1().to_ext()
        for key in ("topic", "queueId", "sysFlag", "bornTimestamp", "flag"):
            rest = {name: text for name, text in long.items() if name != key}
            remark = self.refused(SystemFailure, rest, code=10)
            self.assertIn(f"the field {key} ", remark)

    def test_notYet(self) -> None:
        """Before startAcceptSendRequestTimeStamp nothing is accepted."""
        self.rig = self.make(startAcceptSendRequestTimeStamp="1700000000500")
        remark = self.refused(SystemFailure, send_ext())
        self.assertIn("broker unable to service, until", remark)
        self.rig.clock.advance(1)
        self.assertEqual(self.rig.ask(SEND, send_ext(), b"x").code, 0)

    def test_topicNames(self) -> None:
        """Topic names are checked as RocketMQ does, with its words."""
        for topic, words in (
            ("", "The specified topic is blank."),
            ("a.b", "The specified topic contains illegal characters"),
            ("x" * 128, "The specified topic is longer than topic max length."),
        ):
            self.assertIn(words, self.refused(InvalidParameter, send_ext(topic)))

    def test_systemTopics(self) -> None:
        """Nobody sends to the topics of the system."""
        remark = self.refused(NoPermission, send_ext("SELF_TEST_TOPIC"))
        self.assertEqual(
            remark, "Sending message to topic[SELF_TEST_TOPIC] is forbidden."
        )

    def test_autoCreate(self) -> None:
        """A topic that is missing is made with the settings of the default topic."""
        self.assertEqual(self.rig.ask(SEND, send_ext("New", 3), b"x").code, 0)
        config = self.rig.topics.config("New")
        assert config is not None
        self.assertEqual((config.read_queue_nums, config.perm), (4, 6))

    def test_noAutoCreate(self) -> None:
        """If that is not allowed, the topic does not exist."""
        self.rig = self.make(autoCreateTopicEnable="false")
        remark = self.refused(TopicNotExist, send_ext("New"))
        self.assertIn("topic[New] not exist, apply first please!", remark)
        self.assertIn("06FAQ", remark)

    def test_topicIsDescribedAsByRocketMQ(self) -> None:
        """The remark has nothing of Python's in it."""
        self.rig.topic("T", 4, attributes={"message.type": "NORMAL"})
        self.assertIn(
            "request queueId[4] is illegal, TopicConfig [topicName=T, readQueueNums=4, "
            "writeQueueNums=4, perm=RW-, topicFilterType=SINGLE_TAG, topicSysFlag=0, "
            "order=false, attributes={message.type=NORMAL}] Producer: ",
            self.refused(InvalidParameter, send_ext(queue_id=4)),
        )

    def test_queueId(self) -> None:
        """A queue that the topic does not have is refused."""
        self.assertIn(
            "queueId[4]", self.refused(InvalidParameter, send_ext(queue_id=4))
        )

    def test_moreReadQueues(self) -> None:
        """The larger of the two queue numbers bounds it."""
        self.rig.topic("W", 4, read_queue_nums=2)
        self.rig.topic("R", 2, read_queue_nums=4)
        for topic in ("W", "R"):
            self.assertEqual(self.rig.ask(SEND, send_ext(topic, 3), b"x").code, 0)
            self.refused(InvalidParameter, send_ext(topic, 4))

    def test_anyQueue(self) -> None:
        """A negative queue leaves the choice to the broker: each in turn."""
        ids = [
            (self.rig.ask(SEND, send_ext(queue_id=-1), b"x").ext or {})["queueId"]
            for _ in range(8)
        ]
        self.assertEqual(sorted(ids), sorted("01230123"))

    def test_noQueue(self) -> None:
        """A topic without a queue takes nothing."""
        self.rig.topic("Z", 0)
        self.refused(InvalidParameter, send_ext("Z", -1))
        self.refused(InvalidParameter, send_ext("Z", 0))

    def test_notWritable(self) -> None:
        """A broker without write permission refuses ordered topics, and only those."""
        self.rig = self.make(brokerPermission="4")
        self.rig.topic("O", 4, order=True)
        self.assertIn("10.0.0.1", self.refused(NoPermission, send_ext("O")))
        self.assertEqual(self.rig.ask(SEND, send_ext("T"), b"x").code, 0)

    def test_retryTopic(self) -> None:
        """A retry topic takes messages of a group that is known."""
        self.rig.topic("%RETRY%G", 1)
        self.assertEqual(self.rig.ask(SEND, send_ext("%RETRY%G"), b"x").code, 0)

    def test_retryTopicOfNobody(self) -> None:
        """Of one that is not, it does not."""
        self.rig = self.make(autoCreateSubscriptionGroup="false")
        self.rig.topic("%RETRY%G", 1)
        self.refused(SubscriptionGroupNotExist, send_ext("%RETRY%G"))
        # A batch has no business there anyhow.
        self.refused(MessageIllegal, send_ext("%RETRY%G", m="true"))

    def test_transaction(self) -> None:
        """Half messages are refused if they are not wanted, never stored as ordinary
        ones; so are prepared ones that do not say that they are half."""
        half = send_ext(properties="TRAN_MSG\x01true\x02", f="4")
        self.assertEqual(self.rig.ask(SEND, half, b"x").code, 0)
        for flag in ("4", "8", "12"):
            self.refused(MessageIllegal, send_ext(f=flag))
        self.rig = self.make(rejectTransactionMessage="true")
        remark = self.refused(NoPermission, half)
        self.assertIn("forbidden", remark)
        ordinary = send_ext(properties="TRAN_MSG\x01false\x02")
        self.assertEqual(self.rig.ask(SEND, ordinary, b"x").code, 0)

    def test_timer(self) -> None:
        """Where timers are switched off messages with a time of their own are refused,
        never delivered at once; a delay level beside it wins."""
        self.rig = self.make(timerWheelEnable="false")
        for name in ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"):
            properties = f"{name}\x011\x02"
            remark = self.refused(SystemFailure, send_ext(properties=properties))
            self.assertIn("not enabled", remark)
            both = send_ext(properties=f"{properties}DELAY\x011\x02")
            self.assertEqual(self.rig.ask(SEND, both, b"x").code, 0)

    def test_delayLevel(self) -> None:
        """A delay level is a number."""
        remark = self.refused(SystemFailure, send_ext(properties="DELAY\x01x\x02"))
        self.assertIn("DELAY", remark)

    def test_sentBack(self) -> None:
        """What a consumer sends back itself, to be consumed later, is no half message,
        though it may say so."""
        self.rig = self.make(rejectTransactionMessage="true")
        properties = "TRAN_MSG\x01true\x02DELAY\x013\x02"
        self.refused(NoPermission, send_ext(properties=properties))
        ext = send_ext(properties=properties, j="1")
        self.assertEqual(self.rig.ask(SEND, ext, b"x").code, 0)

    def test_noDelay(self) -> None:
        """Delay level 0 is none."""
        ext = send_ext(properties="DELAY\x010\x02")
        self.assertEqual(self.rig.ask(SEND, ext, b"x").code, 0)

    def test_innerBatch(self) -> None:
        """Inner batches are refused, by their flags and by their property: the broker
        makes them of batches."""
        self.refused(MessageIllegal, send_ext(f="192"))
        self.refused(MessageIllegal, send_ext(properties="INNER_NUM\x013\x02"))

    def test_batchQueues(self) -> None:
        """Topics with batch queues take no compressed batches, and no messages that
        only say that they are batches."""
        self.rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        self.refused(MessageIllegal, send_ext("B", m="true", f="1"))
        self.refused(MessageIllegal, send_ext("B", f="192"))
        self.refused(MessageIllegal, send_ext("B", properties="INNER_NUM\x013\x02"))
        without_key = send_ext("B", m="true", f="192", properties="TAGS\x01A\x02")
        self.refused(MessageIllegal, without_key)

    def test_compaction(self) -> None:
        """A topic that another broker would compact takes no messages."""
        self.rig.topic("C", 1, attributes={"cleanup.policy": "COMPACTION"})
        for ext in (send_ext("C", properties="KEYS\x01k\x02"), send_ext("C", m="true")):
            remark = self.refused(SystemFailure, ext)
            self.assertEqual(remark, "topic[C]: this broker does not compact")

    def test_batches(self) -> None:
        """What a batch may not be."""
        body = encode_part(0, b"x", b"")
        self.rig.topic("%RETRY%G", 1)
        for ext in (
            send_ext("%RETRY%G", m="true"),
            send_ext(m="true", f="4"),
            send_ext(m="true", properties="DELAY\x011\x02"),
            send_ext(m="true", properties="TRAN_MSG\x01true\x02"),
            send_ext(m="true", properties="TIMER_DELAY_SEC\x011\x02"),
            send_ext(m="true", properties="INNER_NUM\x011\x02"),
        ):
            self.refused(MessageIllegal, ext, body, BATCH)

    def test_batchTooLong(self) -> None:
        """A batch may be as long as the longest message."""
        self.rig = self.make(maxMessageSize="1000")
        body = encode_part(0, b"x" * 978, b"")
        ext = send_ext(m="true")
        self.assertEqual(self.rig.ask(BATCH, ext, body).code, 0)
        self.refused(MessageIllegal, ext, encode_part(0, b"x" * 979, b""), BATCH)
