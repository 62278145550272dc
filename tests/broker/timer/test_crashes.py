"""Timers after a crash at any call of the disk."""

from __future__ import annotations

import random
from typing import Any

from rocketbroker.testing.files import MemoryDisk
from tests.broker.timer.case import TimerCase
from tests.heavy import HEAVY

#: How many crashes there are of each kind.
CRASHES = 300 if HEAVY else 60

SETTINGS: Any = {"timerRollWindowSlot": "4", "recallMessageEnable": "true"}


class Crash:
    """What a crash has left.

    @ivar disk: what was on it.
    @ivar now_ms: the time of day.
    @ivar wanted: the bodies that must arrive.
    @ivar recalled: those that must not, as they were taken back in time.
    """

    def __init__(
        self, disk: MemoryDisk, now_ms: int, wanted: set[bytes], recalled: set[bytes]
    ) -> None:
        self.disk = disk
        self.now_ms = now_ms
        self.wanted = wanted
        self.recalled = recalled


class CrashTests(TimerCase):
    """Messages come, wait, roll, are recalled and delivered, and somewhere in between
    the process or the machine dies."""

    def setUp(self) -> None:
        """A broker whose wheel is small."""
        super().setUp()
        self.begin(**SETTINGS)
        self.calls = 0
        self.crashes: list[Crash] = []
        self.answered: set[bytes] = set()
        self.safe: set[bytes] = set()
        self.recalled: set[bytes] = set()

    def work(self) -> None:
        """Half a minute of a broker."""
        luck = random.Random(5)
        for tick in range(120):
            if tick < 80 and tick % 2 == 0:
                body = b"%d" % tick
                answer = self.send(luck.choice((1, 2, 2.5, 5, 9)), body)
                self.answered.add(body)
                if tick % 10 == 0:
                    assert answer.ext is not None
                    ext = {"topic": "T", "recallHandle": answer.ext["recallHandle"]}
                    self.rig.ask(370, {"producerGroup": "P", **ext})
                    self.recalled.add(body)
            self.rig.scheduler.dispatch()
            self.rig.clock.advance(0.1)
            if tick % 4 == 0:
                answered = {*self.answered}
                self.rig.store.flush()
                self.safe = answered

    def crash_at(self, calls: set[int], kept: bool, luck: random.Random | None) -> None:
        """Do the work, and keep what crashes at these calls would leave."""

        def watch(call: str) -> None:
            self.calls += 1
            if self.calls in calls:
                left = self.rig.disk.image(None if kept else luck, keep_all=kept)
                wanted = self.answered if kept else self.safe
                crash = Crash(
                    left, self.rig.wall_ms(), wanted - self.recalled, {*self.recalled}
                )
                self.crashes.append(crash)

        self.rig.disk.watch = watch
        self.work()
        self.rig.disk.watch = None

    def total(self) -> int:
        """How many calls of the disk the work makes."""
        self.crash_at(set(), True, None)
        self.number = 0
        self.answered, self.safe, self.recalled = set(), set(), set()
        total, self.calls = self.calls, 0
        self.begin(**SETTINGS)
        return total

    def check(self, crash: Crash, twice: bool) -> None:
        """A broker that starts from there delivers all, in time."""
        self.begin(crash.disk, crash.now_ms, **SETTINGS)
        self.pass_by(12)
        found = self.bodies()
        self.assertEqual(crash.wanted - {*found}, set())
        if not twice:
            self.assertEqual(len(found), len({*found}))
            self.assertEqual(crash.recalled & {*found}, set())
        for stored in self.rig.records():
            due_ms = int(stored.properties["TIMER_DELIVER_MS"])
            late_ms = stored.store_ms - max(due_ms, 0)
            self.assertGreaterEqual(late_ms, 0)
            self.assertLess(stored.store_ms - max(due_ms, crash.now_ms), 2000)

    def test_killed(self) -> None:
        """Wherever the process is killed, all arrives, once, within a second, and what
        was taken back does not."""
        luck = random.Random(1)
        total = self.total()
        self.crash_at(set(luck.sample(range(total), CRASHES)), True, None)
        self.assertGreater(len(self.crashes), CRASHES - 3)
        for crash in self.crashes:
            self.check(crash, twice=False)

    def test_powerFailure(self) -> None:
        """Wherever the machine stops, all arrives that was on its disk."""
        luck = random.Random(2)
        total = self.total()
        self.crash_at(set(luck.sample(range(total), CRASHES)), False, luck)
        self.assertGreater(len(self.crashes), CRASHES - 3)
        for crash in self.crashes:
            self.check(crash, twice=True)
