"""Messages to be sent."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import Code, Encoding, Message, MessageType
from rocketbroker.proxy.sends import (
    check_kind,
    check_messages,
    jump_hash,
    kind_of,
    properties_of,
    request_of,
)
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.records import batches, properties
from rocketbroker.routing.topic_view import MessageQueue
from rocketbroker.wire.codes import RequestCode
from tests.proxy.made import outgoing

SETTINGS = ProxySettings(user_property_max_num=2, max_user_property_size=40)


class CheckTests(SynchronousTestCase):
    """L{check_messages}."""

    def refused(self, code: Code, words: str, *messages: Message) -> None:
        """They cannot be sent at 1,000 ms, for this reason."""
        problem = self.assertRaises(Refusal, check_messages, messages, SETTINGS, 1000)
        self.assertEqual((problem.code, str(problem)), (code, words))

    def test_ordinaryMessagesPass(self) -> None:
        """With all that may be set."""
        message = outgoing(
            tag="t",
            keys=["k"],
            message_group="g",
            delivery_timestamp=Timestamp(seconds=86400),
            user={"a": "b"},
        )
        check_messages([message], SETTINGS, 1000)

    def test_noMessageAndTwoTopicsAreRefused(self) -> None:
        """They are no batch."""
        code = Code.MESSAGE_CORRUPTED
        self.refused(code, "no message to send")
        self.refused(code, "topic in message is not same", outgoing(), outgoing("U"))

    def test_bodyHasLimits(self) -> None:
        """It is not empty, and not too long."""
        words = "message body cannot be empty"
        self.refused(Code.MESSAGE_BODY_EMPTY, words, outgoing(body=b""))
        words = "message body cannot exceed the max 4194304"
        large = outgoing(body=b"x" * 4194305)
        self.refused(Code.MESSAGE_BODY_TOO_LARGE, words, large)

    def test_propertiesHaveLimits(self) -> None:
        """In number, in size, in names and in characters."""
        code = Code.MESSAGE_PROPERTIES_TOO_LARGE
        many = {"a": "1", "b": "1", "c": "1"}
        words = "too many user properties, max is 2"
        self.refused(code, words, outgoing(user=many))
        words = "the total size of user property is too large, max is 40"
        self.refused(code, words, outgoing(user={"a": "\u00e4" * 20}))
        code = Code.ILLEGAL_MESSAGE_PROPERTY_KEY
        words = "property is used by system: KEYS"
        self.refused(code, words, outgoing(user={"KEYS": "1"}))
        words = "the value of property cannot contain control character"
        self.refused(code, words, outgoing(user={"a": "\x01"}))

    def test_tagsKeysAndIdsHaveLimits(self) -> None:
        """A tag has no bar; nothing is blank."""
        code = Code.ILLEGAL_MESSAGE_TAG
        self.refused(code, "tag cannot contain '|'", outgoing(tag="a|b"))
        words = "tag cannot be the char sequence of whitespace"
        self.refused(code, words, outgoing(tag="  "))
        words = "key cannot contain control character"
        self.refused(Code.ILLEGAL_MESSAGE_KEY, words, outgoing(keys=["a\x7f"]))
        words = "message id cannot be empty"
        self.refused(Code.ILLEGAL_MESSAGE_ID, words, outgoing(message_id=" "))

    def test_timesHaveLimits(self) -> None:
        """Delivery within a day, the first check within an hour."""
        words = "the max delay time of message is too large, max is 86400000"
        late = outgoing(delivery_timestamp=Timestamp(seconds=86402))
        self.refused(Code.ILLEGAL_DELIVERY_TIME, words, late)
        words = "the max transaction recovery time of message is too large, max is 3600"
        half = outgoing(
            message_type=MessageType.TRANSACTION,
            orphaned_transaction_recovery_duration=Duration(seconds=3601),
        )
        self.refused(Code.BAD_REQUEST, words, half)

    def test_messageGroupHasLimits(self) -> None:
        """64 bytes are too many already."""
        words = "message group exceed the max size 64"
        group = outgoing(message_group="g" * 64)
        self.refused(Code.ILLEGAL_MESSAGE_GROUP, words, group)
        check_messages([outgoing(message_group="g" * 63)], SETTINGS, 1000)


class RequestTests(SynchronousTestCase):
    """Properties and requests."""

    def test_propertiesSayAllThatTheMessageHas(self) -> None:
        """The producer's group is the topic; the id is the client's."""
        message = outgoing(
            tag="t",
            keys=["k1", "k2"],
            message_group="g",
            trace_context="c",
            born_host="h",
            born_timestamp=Timestamp(seconds=2, nanos=5_000_000),
            delivery_timestamp=Timestamp(seconds=9),
            user={"a": "b"},
        )
        self.assertEqual(
            properties_of(message, "1.2.3.4:5"),
            {
                "a": "b",
                "TAGS": "t",
                "KEYS": "k1 k2",
                "UNIQ_KEY": "01ID",
                "TIMER_DELIVER_MS": "9000",
                "RECONSUME_TIME": "0",
                "PGROUP": "T",
                "__SHARDINGKEY": "g",
                "TRACE_CONTEXT": "c",
                "__BORNHOST": "h",
                "BORN_TIMESTAMP": "2005",
            },
        )

    def test_halfMessageSaysWhenItMayBeChecked(self) -> None:
        """And who sent it, if it does not say that itself."""
        message = outgoing(
            message_type=MessageType.TRANSACTION,
            orphaned_transaction_recovery_duration=Duration(seconds=6, nanos=9),
        )
        found = properties_of(message, "1.2.3.4:5")
        self.assertEqual(found["TRAN_MSG"], "true")
        self.assertEqual(found["CHECK_IMMUNITY_TIME_IN_SECONDS"], "6")
        self.assertEqual(found["__BORNHOST"], "1.2.3.4:5")
        request = request_of("T", [message], [found])
        self.assertEqual(request.ext["f"], "4")

    def test_oneMessageIsSentAsItIs(self) -> None:
        """Compressed by its client, it is told to be so."""
        message = outgoing(body_encoding=Encoding.GZIP)
        kept = properties_of(message, "p")
        request = request_of("T", [message], [kept])
        self.assertEqual(request.code, RequestCode.SEND_MESSAGE_V2)
        self.assertEqual((request.body, request.message_ids), (b"hello", ("01ID",)))
        ext = request.ext_for(MessageQueue("T", "b1", 3))
        self.assertEqual(
            (ext["a"], ext["b"], ext["e"], ext["n"]), ("T", "T", "3", "b1")
        )
        self.assertEqual((ext["f"], ext["g"], ext["m"]), ("1", "0", "false"))
        self.assertEqual(properties.parse(ext["i"]), kept)

    def test_severalMessagesAreABatch(self) -> None:
        """Each part with its own properties."""
        both = [outgoing(message_id="1"), outgoing(body=b"more", message_id="2")]
        request = request_of("T", both, [properties_of(one, "p") for one in both])
        self.assertEqual(request.code, RequestCode.SEND_BATCH_MESSAGE)
        self.assertEqual(request.message_ids, ("1", "2"))
        self.assertEqual(request.ext["m"], "true")
        parts = batches.decode(request.body)
        self.assertEqual([part.body for part in parts], [b"hello", b"more"])

    def test_typeFollowsFromProperties(self) -> None:
        """And has to be the topic's, unless that takes all."""
        for kept, kind in (
            ({}, "NORMAL"),
            ({"__SHARDINGKEY": "g"}, "FIFO"),
            ({"TIMER_DELIVER_MS": "1"}, "DELAY"),
            ({"TRAN_MSG": "true", "DELAY": "1"}, "TRANSACTION"),
        ):
            self.assertEqual(kind_of(kept), kind)
            check_kind(kind, "T", kept)
            check_kind("MIXED", "T", kept)
        check_kind("FIFO", "%RETRY%G", {})
        problem = self.assertRaises(Refusal, check_kind, "FIFO", "T", {})
        self.assertEqual(problem.code, Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE)
        self.assertEqual(
            str(problem),
            "TopicMessageType validate failed, the expected type is FIFO, but actual "
            "type is NORMAL",
        )

    def test_queueOfAGroupIsGuavasJumpHash(self) -> None:
        """The samples of the fact sheet."""
        for text, queues in (
            ("groupA", [0, 0, 2, 5, 5]),
            ("order-1", [0, 0, 3, 3, 3]),
            ("fifo", [0, 1, 1, 5, 13]),
        ):
            found = [jump_hash(text, n) for n in (1, 2, 4, 8, 16)]
            self.assertEqual(found, queues)
