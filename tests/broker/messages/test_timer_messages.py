"""Tests of L{rocketbroker.broker.messages.timer_messages}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.timer_messages import TimerMessages, wants_time
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import MessageIllegal, SystemFailure

NOW = 1_700_000_000_123


class TimerMessagesTests(SynchronousTestCase):
    """What a message becomes that has to wait."""

    def setUp(self) -> None:
        """Slots of which one has a number of messages."""
        self.size = 0
        self.share = 0.5
        self.make()

    def make(self, precision_ms: int = 1000, **more: object) -> None:
        """Make it with those settings."""
        options = StoreOptions(**more)  # type: ignore[arg-type]
        self.messages = TimerMessages(
            options, precision_ms, lambda ms: self.size, lambda: self.share
        )

    def out_ms(self, name: str, value: str) -> str | None:
        """The time of a message's slot; None if it does not wait."""
        own = {name: value}
        waits = self.messages.postpone(own, "T", 3, NOW)
        if waits:
            self.assertEqual((own["REAL_TOPIC"], own["REAL_QID"]), ("T", "3"))
        return own.get("TIMER_OUT_MS")

    def test_rounding(self) -> None:
        """A time is rounded to the slot that ends with it, or after it."""
        for value, out_ms in (
            ("1700000060000", "1700000059000"),
            ("1700000060123", "1700000060000"),
            ("1700000000124", "1700000000000"),
        ):
            self.assertEqual(self.out_ms("TIMER_DELIVER_MS", value), out_ms)
        self.make(100)
        self.assertEqual(
            self.out_ms("TIMER_DELIVER_MS", "1700000060123"), "1700000060100"
        )

    def test_names(self) -> None:
        """Three properties ask for a time."""
        self.assertEqual(self.out_ms("TIMER_DELAY_SEC", "2"), "1700000002000")
        self.assertEqual(self.out_ms("TIMER_DELAY_MS", "2877"), "1700000002000")
        self.assertEqual(self.out_ms("TIMER_DELAY_MS", "0"), None)
        self.assertEqual(self.out_ms("TIMER_DELIVER_MS", "-5"), None)
        self.assertFalse(wants_time({"TIMER_DELAY_SEC": "1", "TIMER_OUT_MS": "5"}))
        self.assertFalse(wants_time({"KEYS": "TIMER_DELAY_SEC"}))

    def test_illegal(self) -> None:
        """What is no number or too far ahead is refused, and a deletion that comes too
        late."""
        for value in ("x", "1.5", "", "9" * 25):
            self.assertRaises(
                MessageIllegal,
                self.messages.postpone,
                {"TIMER_DELAY_SEC": value},
                "T",
                0,
                NOW,
            )
        self.assertEqual(self.out_ms("TIMER_DELAY_SEC", "259200"), "1700259200000")
        self.assertRaises(MessageIllegal, self.out_ms, "TIMER_DELAY_SEC", "259201")
        late = {"TIMER_DELIVER_MS": "5", "TIMER_DEL_UNIQKEY": "T+k"}
        self.assertRaises(MessageIllegal, self.messages.postpone, late, "T", 0, NOW)

    def test_congestion(self) -> None:
        """A slot with more than timerCongestNumEachSlot messages refuses some, and with
        twice as many all."""
        self.make(timer_congest_num_each_slot=100)
        for size, share, is_taken in (
            (100, 0.0, True),
            (150, 0.6, True),
            (150, 0.4, False),
            (199, 0.999, True),
            (201, 0.9999, False),
        ):
            self.size, self.share = size, share
            if is_taken:
                self.assertIsNotNone(self.out_ms("TIMER_DELAY_SEC", "5"))
            else:
                self.assertRaises(SystemFailure, self.out_ms, "TIMER_DELAY_SEC", "5")
