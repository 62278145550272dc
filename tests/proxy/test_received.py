"""Messages and handles as clients get them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.proxy.messages_pb2 import Code, Encoding, MessageType, Resource
from rocketbroker.proxy.received import Handle, message_of, resource_of
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.records import sysflags
from tests.proxy.made import stored

TEXT = "5 1700 60000 3 0 b1 3 7"


class HandleTests(SynchronousTestCase):
    """L{Handle}."""

    def test_handleComesBackAsItWent(self) -> None:
        """With the place in the commit log; without it that is -1."""
        self.assertEqual(Handle.parse(f"{TEXT} 4096").text(), f"{TEXT} 4096")
        self.assertEqual(Handle.parse(f"{TEXT} 4096").position, 4096)
        self.assertEqual(Handle.parse(TEXT).position, -1)
        self.assertEqual(Handle.parse(TEXT).visible_at, 61700)

    def test_retriedMessageIsInItsRetryTopic(self) -> None:
        """Of either version."""
        first = Handle.parse("5 1700 60000 3 1 b1 3 7")
        second = Handle.parse("5 1700 60000 3 2 b1 3 7")
        self.assertEqual(Handle.parse(TEXT).topic("T", "G"), "T")
        self.assertEqual(first.topic("T", "G"), "%RETRY%G_T")
        self.assertEqual(second.topic("T", "G"), "%RETRY%G+T")

    def test_whatIsNoHandleIsRefused(self) -> None:
        """With how many parts it has, or which number is none."""
        for text in ("", "a b", "5 1700 60000 3 0 b1 3", f"{TEXT} x", "a" * 90):
            problem = self.assertRaises(Refusal, Handle.parse, text)
            self.assertEqual(problem.code, Code.INTERNAL_SERVER_ERROR)


class MessageTests(SynchronousTestCase):
    """L{message_of}."""

    def test_allThatIsStoredIsThere(self) -> None:
        """But the properties of the system."""
        kept = {
            "TAGS": "t",
            "KEYS": "k1 k2",
            "UNIQ_KEY": "01ID",
            "a": "b",
            "__SHARDINGKEY": "g",
            "TRACE_CONTEXT": "c",
            "__BORNHOST": "h",
            "DLQ_ORIGIN_TOPIC": "U",
            "DLQ_ORIGIN_MESSAGE_ID": "02",
        }
        message = message_of(stored(kept), "ns%T", 2, "handle", 0)
        system = message.system_properties
        self.assertEqual(message.topic, Resource(resource_namespace="ns", name="T"))
        self.assertEqual(message.body, b"hello")
        self.assertEqual(message.user_properties["a"], "b")
        self.assertNotIn("TAGS", message.user_properties)
        self.assertEqual((system.tag, [*system.keys]), ("t", ["k1", "k2"]))
        self.assertEqual((system.message_id, system.receipt_handle), ("01ID", "handle"))
        self.assertEqual(
            system.body_digest.checksum, "5D41402ABC4B2A76B9719D911017C592"
        )
        self.assertEqual(system.body_encoding, Encoding.IDENTITY)
        self.assertEqual(system.message_type, MessageType.FIFO)
        self.assertEqual((system.message_group, system.trace_context), ("g", "c"))
        self.assertEqual((system.queue_id, system.queue_offset), (3, 7))
        self.assertEqual((system.born_host, system.store_host), ("h", "10.0.0.9:10911"))
        self.assertEqual(system.store_timestamp.ToMilliseconds(), 1500)
        self.assertEqual(system.delivery_attempt, 3)
        self.assertEqual(system.dead_letter_queue.topic, "U")
        self.assertEqual(system.dead_letter_queue.message_id, "02")

    def test_compressedBodyStaysSo(self) -> None:
        """Whatever compressed it; the digest is that of what is sent."""
        one = stored(body=b"packed", sys_flag=sysflags.COMPRESSED)
        system = message_of(one, "T", 0, None, 0).system_properties
        self.assertEqual(system.body_encoding, Encoding.GZIP)
        self.assertFalse(system.HasField("receipt_handle"))
        self.assertFalse(system.HasField("tag"))

    def test_timeOfDeliveryIsTold(self) -> None:
        """Of a timer message; half messages and normal ones have none."""
        for kept, kind, ms in (
            ({"TIMER_DELIVER_MS": "9000"}, MessageType.DELAY, 9000),
            ({"TIMER_DELAY_SEC": "3"}, MessageType.DELAY, 4000),
            ({"TRAN_MSG": "true"}, MessageType.TRANSACTION, 0),
            ({}, MessageType.NORMAL, 0),
        ):
            system = message_of(stored(kept), "T", 0, None, 1000).system_properties
            self.assertEqual(system.message_type, kind)
            self.assertEqual(system.delivery_timestamp.ToMilliseconds(), ms)

    def test_namesOfTheSystemHaveNoNamespace(self) -> None:
        """Only what stands before a sign is one."""
        self.assertEqual(resource_of("%RETRY%G").name, "%RETRY%G")
        self.assertEqual(resource_of("T").name, "T")
