"""Tests of L{rocketbroker.broker.messages.delay_messages}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.delay_messages import (
    DelayMessages,
    delivered,
    destination,
    level_of,
)
from rocketbroker.broker.messages.timer_messages import TimerMessages
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import SystemFailure
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.properties import CRC32, encode
from rocketbroker.records.record import StoredMessage
from tests.broker.rig import WALL_MS, Rig


def stored(properties: dict[str, str], sys_flag: int = 0) -> StoredMessage:
    """A message that waits, with those properties."""
    return StoredMessage(
        "SCHEDULE_TOPIC_XXXX",
        2,
        5,
        1000,
        200,
        b"body",
        0,
        7,
        sys_flag,
        1_700_000_000_000,
        b"\x0a\0\0\2\0\0\x12\x67",
        1_700_000_000_005,
        b"\x0a\0\0\1\0\0\x2a\x9f",
        3,
        99,
        encode(properties),
    )


def delay_messages(**more: object) -> DelayMessages:
    """Three levels, and timers, of a broker in whose slots nothing waits."""
    options = StoreOptions(**more)  # type: ignore[arg-type]
    timers = TimerMessages(options, 1000, lambda ms: 0, lambda: 0.5)
    return DelayMessages("1s 5s 1m", timers, lambda: WALL_MS)


class LevelTests(SynchronousTestCase):
    """Which level a message asks for."""

    def test_numbers(self) -> None:
        """What Java takes for a number is one."""
        for text, level in (("3", 3), ("+3", 3), ("0", 0), ("-1", -1), ("007", 7)):
            self.assertEqual(level_of({"DELAY": text}), level)
        self.assertEqual(level_of({}), 0)
        self.assertEqual(level_of({"DELAY": "2147483647"}), 2147483647)

    def test_others(self) -> None:
        """Anything else is an error."""
        for text in ("x", "1x", " 1", "1_0", "1.0", "2147483648", "9" * 30, "\u0663"):
            self.assertRaises(SystemFailure, level_of, {"DELAY": text})


class PostponeTests(SynchronousTestCase):
    """What a message becomes."""

    def setUp(self) -> None:
        """Three levels."""
        self.delay_messages = delay_messages()

    def place(self, properties: dict[str, str], queue_id: int, level: int) -> int:
        """The queue of the topic of levels where a message for T waits."""
        found = self.delay_messages.postpone(properties, "T", queue_id, level)
        self.assertEqual(found[0], "SCHEDULE_TOPIC_XXXX")
        return found[1]

    def test_properties(self) -> None:
        """Where it belongs stands in its properties; all others stay as they are."""
        properties = {"KEYS": "k", "DELAY": "2", "TAGS": "t"}
        self.assertEqual(self.place(properties, 3, 2), 1)
        self.assertEqual(
            properties,
            {
                "KEYS": "k",
                "DELAY": "2",
                "TAGS": "t",
                "REAL_TOPIC": "T",
                "REAL_QID": "3",
            },
        )

    def test_tooHigh(self) -> None:
        """A level that does not exist is the highest, in the properties too."""
        properties = {"DELAY": "99"}
        self.assertEqual(self.place(properties, 0, 99), 2)
        self.assertEqual(properties["DELAY"], "3")

    def test_timers(self) -> None:
        """The level wins against every other wish."""
        timers = dict.fromkeys(
            ("TIMER_DELIVER_MS", "TIMER_DELAY_SEC", "TIMER_DELAY_MS"), "1"
        )
        self.delay_messages.postpone(timers, "T", 0, 1)
        self.assertEqual(sorted(timers), ["DELAY", "REAL_QID", "REAL_TOPIC"])


class DeliveredTests(SynchronousTestCase):
    """What becomes of it when it is due."""

    def test_destination(self) -> None:
        """Topic and queue are read back; what cannot be is none."""
        place = {"REAL_TOPIC": "%RETRY%G", "REAL_QID": "3"}
        self.assertEqual(destination(stored(place)), ("%RETRY%G", 3))
        for wrong in (
            {"REAL_TOPIC": ""},
            {"REAL_TOPIC": "../../etc"},
            {"REAL_TOPIC": "RMQ_SYS_TRANS_HALF_TOPIC"},
            {"REAL_TOPIC": "SCHEDULE_TOPIC_XXXX"},
            {"REAL_TOPIC": "x" * 256},
            {"REAL_QID": ""},
            {"REAL_QID": "x"},
            {"REAL_QID": "-1"},
            {"REAL_QID": "16384"},
        ):
            self.assertIsNone(destination(stored({**place, **wrong})), wrong)

    def test_draft(self) -> None:
        """All that the producer gave stays, byte for byte; the tag counts again."""
        rig = Rig({})
        self.addCleanup(rig.close)
        message = stored({"DELAY": "3", "TAGS": "TagA", "REAL_TOPIC": "T"}, 0x731)
        draft = delivered(message, rig.store.queue("T", 1), "me")
        self.assertEqual(draft.properties, message.property_bytes)
        self.assertEqual(draft.body, b"body")
        self.assertEqual((draft.flag, draft.sys_flag), (7, 0x701))
        self.assertEqual(draft.born_ms, message.born_ms)
        self.assertEqual(draft.born_host, message.born_host)
        self.assertEqual((draft.reconsume_times, draft.prepared_offset), (3, 0))
        self.assertEqual(draft.tag_code, tag_code("TagA"))
        self.assertEqual(draft.context, "me")

    def test_checksum(self) -> None:
        """The checksum of the record that waited is not that of the new one."""
        rig = Rig({})
        self.addCleanup(rig.close)
        message = stored({"KEYS": "k", CRC32: "0123456789"})
        draft = delivered(message, rig.store.queue("T", 1), None)
        self.assertEqual(draft.properties, b"KEYS\x01k\x02")
