"""Tests of L{rocketbroker.broker.timer.recount}."""

from __future__ import annotations

import time
from typing import Any

from rocketbroker.broker.timer.recount import HOUR
from rocketbroker.store.retention.cleaner import local_hour
from tests.broker.timer.case import TimerCase


class RecountTests(TimerCase):
    """Counts that a crash has left wrong."""

    def setUp(self) -> None:
        """It is before the hour."""
        super().setUp()
        self.at_night()

    def at_night(self, seconds: float = -60, **settings: Any) -> None:
        """A broker that starts so many seconds after the hour begins."""
        day = time.localtime(1_700_000_000)
        begin = time.mktime((*day[:3], HOUR, 0, 0, 0, 0, -1))
        self.begin(start_ms=int((begin + seconds) * 1000), **settings)

    def waiting(self, topic: str = "T") -> int:
        """How many messages of a topic wait, by the counts."""
        return self.timers.counts.of(topic).waiting

    def spoil(self, by: int = 5) -> None:
        """Let the counts be wrong."""
        self.timers.counts.change("T", by)
        self.timers.counts.change("gone", by)

    def send_some(self) -> None:
        """Four messages for later than the count, one of them taken back."""
        for _ in range(4):
            self.send(40_000, key="x")
        self.send(40_000, TIMER_DEL_UNIQKEY="T+x")
        self.pass_by(3)
        self.assertEqual(self.waiting(), 3)

    def test_counts(self) -> None:
        """They are right again after the hour has begun, once in it."""
        self.send_some()
        self.spoil()
        self.pass_by(20, 1)
        self.assertEqual(self.waiting(), 8)
        self.pass_by(400, 1)
        self.assertEqual(local_hour(self.rig.wall_ms()), HOUR)
        self.assertEqual((self.waiting(), self.waiting("gone")), (3, 0))
        self.spoil()
        self.pass_by(1200, 5)
        self.assertEqual((self.waiting(), self.timers.recount.runs), (8, 1))

    def test_meanwhile(self) -> None:
        """What comes while it is counted counts, too."""
        self.at_night(5)
        self.send_some()
        self.spoil()
        done = self.timers.recount.look()
        assert done is not None
        self.send(40_000)
        self.timers.entering.look()
        self.pass_by(1)
        self.successResultOf(done)
        self.assertEqual(self.waiting(), 4)

    def test_many(self) -> None:
        """Topics with many messages are left as they are."""
        self.at_night(5, timerMetricSmallThreshold="7")
        self.send_some()
        self.spoil()
        self.timers.recount.look()
        self.pass_by(1)
        self.assertEqual((self.waiting(), self.waiting("gone")), (8, 0))

    def test_sameHash(self) -> None:
        """Topics whose hashes are the same, in Java's way, are left as they are."""
        self.at_night(5)
        for topic in ("Aa", "BB", "C"):
            self.timers.counts.change(topic, 5)
        self.timers.recount.look()
        self.pass_by(1)
        waiting = [self.waiting(topic) for topic in ("Aa", "BB", "C")]
        self.assertEqual(waiting, [5, 5, 0])

    def test_notNow(self) -> None:
        """Nothing is counted before the hour, or while a slot is being delivered."""
        self.assertIsNone(self.timers.recount.look())
        self.at_night(5)
        self.timers.clock.begin_slot()
        self.assertIsNone(self.timers.recount.look())
        self.timers.clock.end_slot()
        self.assertIsNotNone(self.timers.recount.look())

    def test_off(self) -> None:
        """It can be switched off."""
        self.at_night(5, timerEnableCheckMetrics="false")
        self.assertIsNone(self.timers.recount.look())

    def test_deleted(self) -> None:
        """What waits for a topic that is deleted does not count any more."""
        self.send_some()
        self.assertEqual(self.rig.ask(215, {"topic": "T"}).code, 0)
        self.assertNotIn("T", self.timers.counts.topics)
