"""Messages to send."""

from __future__ import annotations

import pickle

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.blocking.messages import Message, SendResult, check_topic
from rocketbroker.blocking.routes import MessageQueue
from rocketbroker.errors import MessageIllegal
from rocketbroker.records import properties


class MessageTests(SynchronousTestCase):
    """What can be sent."""

    def test_properties(self) -> None:
        """Tags, keys and the user's own become properties, with the unique key."""
        message = Message(
            "T", b"x", tags="a", keys=["k1", "k2"], properties={"u": "v"}, wait=False
        )
        self.assertEqual(
            properties.decode(message.property_bytes("ID")),
            {
                "UNIQ_KEY": "ID",
                "u": "v",
                "WAIT": "false",
                "TAGS": "a",
                "KEYS": "k1 k2",
            },
        )

    def test_plain(self) -> None:
        """A message without any has its unique key and WAIT."""
        found = properties.decode(Message("T", b"x").property_bytes("ID"))
        self.assertEqual(found, {"UNIQ_KEY": "ID", "WAIT": "true"})
        sharded = Message("T", b"x", sharding_key="s")
        self.assertEqual(sharded.properties["__SHARDINGKEY"], "s")

    def test_refused(self) -> None:
        """Names of the system, and what would get lost on the way, are refused."""
        for name, value in (("TAGS", "a"), ("UNIQ_KEY", "a"), ("", "a"), ("a", " ")):
            with self.assertRaises(MessageIllegal):
                Message("T", b"x", properties={name: value})
        for name, value in (("a\x01b", "c"), ("a", "b\x02c"), ("a", "b" * 32768)):
            message = Message("T", b"x", properties={name: value})
            self.assertRaises(MessageIllegal, message.property_bytes, "ID")

    def test_topics(self) -> None:
        """Topics that are none, or are closed to senders, are refused."""
        check_topic("T")
        for topic in ("", "a.b", "x" * 128, "RMQ_SYS_TRANS_HALF_TOPIC"):
            self.assertRaises(MessageIllegal, check_topic, topic)

    def test_travels(self) -> None:
        """A message can be pickled."""
        message = Message("T", b"x", tags="a", flag=3, wait=False)
        again = pickle.loads(pickle.dumps(message))
        self.assertEqual(again.properties, message.properties)
        self.assertEqual((again.topic, again.body, again.flag), ("T", b"x", 3))
        self.assertEqual(repr(again), "<message for T: 1 bytes>")

    def test_result(self) -> None:
        """The id of a result is that of its first message."""
        result = SendResult(0, ("a", "b"), ("c", "d"), MessageQueue("T", "b", 0), 5)
        self.assertEqual(result.message_id, "a")
