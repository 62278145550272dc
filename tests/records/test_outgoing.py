"""Messages to send."""

from __future__ import annotations

import pickle
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import MessageIllegal
from rocketbroker.records import properties
from rocketbroker.records.outgoing import Message, check_topic


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

    def test_deliveryTime(self) -> None:
        """A time of delivery is a number of ms, and no delay level stands beside it."""
        message = Message("T", b"x", deliver_at_ms=5000)
        self.assertEqual(message.properties["TIMER_DELIVER_MS"], "5000")
        for time, level in ((-1, 0), (1.5, 0), (5000, 1)):
            with self.assertRaises(MessageIllegal):
                Message(
                    "T",
                    b"x",
                    delay_level=level,
                    deliver_at_ms=time,  # type: ignore[arg-type]
                )

    def test_body(self) -> None:
        """A text is sent as UTF-8; anything else that is not bytes is refused."""
        self.assertEqual(Message("T", "grün").body, "grün".encode())
        self.assertEqual(Message("T", bytearray(b"x")).body, b"x")
        self.assertEqual(Message("T", memoryview(b"x")).body, b"x")
        for body in (5, None, ["x"], {"a": 1}):
            with self.assertRaisesRegex(MessageIllegal, "a body is bytes or a string"):
                Message("T", body)  # type: ignore[arg-type]

    def test_keys(self) -> None:
        """One key may be given as a string; keys that cannot be found are refused."""
        self.assertEqual(Message("T", b"x", keys="abc").properties["KEYS"], "abc")
        self.assertEqual(Message("T", b"x", keys="a b").properties["KEYS"], "a b")
        self.assertNotIn("KEYS", Message("T", b"x", keys="").properties)
        for keys in (["a b"], ["a", 5], [""], 5, [b"a"]):
            with self.assertRaisesRegex(MessageIllegal, "key"):
                Message("T", b"x", keys=keys)  # type: ignore[arg-type]

    def test_notStrings(self) -> None:
        """Topic, tag, sharding key and properties are strings."""
        wrongs: list[dict[str, Any]] = [
            {"tags": ["a"]},
            {"tags": b"a"},
            {"sharding_key": 5},
            {"properties": {"a": 5}},
            {"properties": {5: "a"}},
            {"properties": ["a"]},
            {"topic": b"T"},
        ]
        for wrong in wrongs:
            given = {"topic": "T", "body": b"x", **wrong}
            self.assertRaises(MessageIllegal, Message, **given)

    def test_delayLevel(self) -> None:
        """A delay level becomes a property; what is no level is refused."""
        self.assertEqual(Message("T", b"x", delay_level=3).properties["DELAY"], "3")
        self.assertNotIn("DELAY", Message("T", b"x").properties)
        for level in (-1, "3", 1.5, True, None):
            with self.assertRaisesRegex(MessageIllegal, "delay level"):
                Message("T", b"x", delay_level=level)  # type: ignore[arg-type]

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

    def test_typeIsThatOfTheFirstThatFits(self) -> None:
        """As clients and proxies of RocketMQ 5.4 have it."""
        kinds: list[tuple[str, dict[str, Any]]] = [
            ("NORMAL", {}),
            ("PRIORITY", {"priority": 0}),
            ("FIFO", {"priority": 1, "sharding_key": "k"}),
            ("DELAY", {"sharding_key": "k", "delay_ms": 5}),
            ("DELAY", {"delay_level": 5}),
        ]
        for kind, given in kinds:
            self.assertEqual(Message("T", b"x", **given).message_type, kind)
        half = Message("T", b"x", delay_level=1)
        half.properties[properties.TRANSACTION_PREPARED] = "true"
        self.assertEqual(half.message_type, "TRANSACTION")
