"""Timers of three days, by a clock that a test advances."""

from __future__ import annotations

import random
from typing import Any

from rocketbroker.store.interfaces import PUT_OK, Draft
from tests.broker.rig import HOST, WALL_MS
from tests.broker.timer.case import TimerCase
from tests.heavy import HEAVY

DAYS = 259_200

#: How many timers there are; in its large form one for each second.
COUNT = DAYS - 1 if HEAVY else 300

#: How many are due in the same second.
CROWD = 100_000 if HEAVY else 2000


class WeekTests(TimerCase):
    """A broker that runs for days."""

    def put(self, seconds: list[int]) -> None:
        """Let messages wait for these seconds from now, past the checks of sends."""
        queue = self.rig.store.queue("rmq_sys_wheel_timer", 0)
        for start in range(0, len(seconds), 500):
            drafts = []
            for number, each in enumerate(seconds[start : start + 500], start):
                due_ms = WALL_MS + each * 1000
                own = (
                    f"UNIQ_KEY\x01{number:032X}\x02TIMER_DELIVER_MS\x01{due_ms}\x02"
                    f"TIMER_OUT_MS\x01{due_ms - 1000}\x02REAL_TOPIC\x01T\x02"
                    "REAL_QID\x010\x02"
                )
                drafts.append(
                    Draft(queue, b"x", own.encode(), 0, 0, WALL_MS, HOST, 0, 0, None)
                )
            self.rig.store.append(drafts)
            self.assertEqual({draft.status for draft in drafts}, {PUT_OK})
            while self.rig.store.dispatch(10_000):
                pass

    def test_threeDays(self) -> None:
        """A timer of any second of three days is delivered in that second, never
        before, those that roll on the way, too; a restart in between changes nothing.
        """
        luck = random.Random(3)
        seconds = sorted(luck.sample(range(1, DAYS), COUNT))
        self.begin(mappedFileSizeCommitLog=str(64 << 20))
        self.put(seconds)
        self.pass_by(1, 0.1)
        for number, second in enumerate(seconds):
            left = second - self.rig.clock.seconds() - self.began
            if left > 1:
                # A period of the service does not pass in one leap.
                self.rig.clock.advance(left - 0.9)
                self.rig.clock.advance(0.4)
            left = second - self.rig.clock.seconds() - self.began
            self.rig.clock.advance(max(0.0, left - 0.01))
            self.rig.clock.advance(0.02)
            self.rig.clock.advance(0.1)
            if number == COUNT // 2:
                self.began += self.rig.clock.seconds()
                self.restart(mappedFileSizeCommitLog=str(64 << 20))
                self.pass_by(0.2)
        found = self.rig.records()
        self.assertEqual(len(found), COUNT)
        for stored in found:
            due_ms = int(stored.properties["TIMER_DELIVER_MS"])
            self.assertTrue(0 <= stored.store_ms - due_ms < 1000)

    def test_oneSecond(self) -> None:
        """So are very many that are due in the same second, half of them after a kill
        in the middle of it, then within two seconds; each comes once."""
        sizes: Any = {
            "mappedFileSizeCommitLog": str(64 << 20),
            "mappedFileSizeTimerLog": str(52 * 200_000),
        }
        self.begin(**sizes)
        self.put([60] * CROWD)
        while self.timers.entering.behind():
            self.pass_by(0.1)
        self.rig.clock.advance(60 + 0.001 - self.rig.clock.seconds())
        crowd = self.timers.counts
        while crowd.topics["T"].waiting > CROWD // 2:
            self.rig.clock.advance(0)
        self.restart(seconds=0.5, **sizes)
        self.pass_by(0.5, 0.01)
        for _ in range(CROWD // 64):
            self.rig.clock.advance(0)
        self.rig.scheduler.dispatch()
        found = self.rig.records()
        self.assertEqual(len(found), CROWD)
        self.assertEqual(
            len({stored.properties["UNIQ_KEY"] for stored in found}), CROWD
        )
        for stored in found:
            due_ms = int(stored.properties["TIMER_DELIVER_MS"])
            self.assertTrue(0 <= stored.store_ms - due_ms < 2000)

    began = 0.0
