"""Tests of L{rocketbroker.store.timerwheel.recovery}."""

from __future__ import annotations

import random

from rocketbroker.store.timerwheel.wheel import FILE_SIZE
from tests.store.timerwheel.case import NOW_MS, SEGMENT, TimersCase

WHEEL = "/s/timerwheel"
FIRST = "/s/timerlog/00000000000000000000"


class RecoveryTests(TimersCase):
    """A start after a stop or a crash."""

    def test_clean(self) -> None:
        """All is as it was, and no unit had to be looked at."""
        self.enter(*range(1, 36), 5)
        self.flush()
        self.timers = self.open()
        self.assertEqual((self.timers.units, self.timers.entered), (0, set()))
        self.assertEqual(self.positions(5), [5, 36])
        self.assertEqual(self.timers.wheel.pending, 36)
        self.assertEqual(self.checkpoint[:4], (NOW_MS, 3 * SEGMENT + 312, 5, 5))
        self.assertEqual(self.timers.delivered_from, 77)
        self.enter(5)
        self.assertEqual(self.positions(5), [5, 36, 37])

    def test_killed(self) -> None:
        """After a kill the wheel's file lacks what came after the last flush: it is
        entered again, and counted once."""
        self.enter(1, 2, 1)
        self.flush()
        self.enter(*[1] * 9, 3)
        self.disk.crash(keep_all=True)
        self.timers = self.open()
        self.assertEqual(self.timers.units, 10)
        self.assertEqual(self.timers.entered, {1000 * n for n in range(4, 14)})
        self.assertEqual(self.positions(1), [1, *range(3, 13)])
        self.assertEqual(self.positions(3), [13])
        self.assertEqual(self.timers.wheel.pending, 13)

    def test_wheelAhead(self) -> None:
        """Pages that are newer than the checkpoint are not entered twice."""
        self.enter(1, 1)
        self.flush()
        self.enter(1, 2000)
        flush = self.timers.begin_flush()
        self.timers.log.sync()
        self.timers.write_pages(flush._pages)
        self.disk.crash()
        self.timers = self.open()
        self.assertEqual(self.timers.units, 2)
        self.assertEqual(self.positions(1), [1, 2, 3])
        self.assertEqual(self.timers.wheel.pending, 4)

    def test_powerFailure(self) -> None:
        """What was flushed is there after any power failure, and the log can be written
        to: what follows is found by the next start."""
        for seed in range(60):
            self.begin()
            luck = random.Random(seed)
            self.enter(*[luck.randrange(1, 500) for _ in range(luck.randrange(1, 30))])
            self.flush()
            count = self.entered()
            self.enter(*[luck.randrange(1, 500) for _ in range(luck.randrange(1, 30))])
            flush = self.timers.begin_flush()
            if luck.random() < 0.5:
                self.timers.log.sync()
                self.timers.write_pages(flush._pages)
            self.disk.crash(luck)
            self.timers = self.open()
            left = self.entered()
            self.assertGreaterEqual(left, count)
            self.enter(7)
            self.flush()
            self.timers = self.open()
            found = [n for second in range(500) for n in self.positions(second)]
            self.assertEqual(sorted(found), list(range(1, left + 2)), f"seed {seed}")
            self.assertEqual(self.timers.wheel.pending, left + 1)

    def test_noWheel(self) -> None:
        """A wheel that is missing or has another length is made again."""
        self.enter(*range(1, 25), 3)
        self.flush()
        self.disk.remove(WHEEL)
        self.timers = self.open()
        self.assertEqual(self.timers.report, [])
        self.assertEqual(self.positions(3), [3, 25])
        self.flush()
        self.disk.open(WHEEL).truncate(32)
        self.timers = self.open()
        (sentence,) = self.timers.report
        self.assertIn(f"has 32 bytes in place of {FILE_SIZE}", sentence)
        self.assertEqual(self.positions(3), [3, 25])
        self.assertEqual(self.timers.wheel.pending, 25)
        self.assertTrue(self.disk.exists(f"{WHEEL}.damaged"))

    def test_snapshot(self) -> None:
        """Where RocketMQ's broker wrote the wheel to other files, the wheel's own is an
        old one: it is made again, and its file holds all from then on."""
        self.enter(1, 2)
        self.flush()
        old = self.disk.read(WHEEL)
        self.enter(3, 1)
        self.flush()
        self.disk.open(WHEEL).pwrite(old, 0)
        snapshot = self.disk.open(f"{WHEEL}.208", create=True)
        self.timers = self.open()
        (sentence,) = self.timers.report
        self.assertIn("timerwheel.208 of RocketMQ's broker", sentence)
        self.flush()
        snapshot.close()
        self.disk.remove(f"{WHEEL}.208")
        for _ in range(2):
            self.assertEqual(self.positions(1), [1, 4])
            self.assertEqual((self.positions(2), self.positions(3)), ([2], [3]))
            self.timers = self.open()
            self.assertEqual(self.timers.report, [])

    def test_noLog(self) -> None:
        """Without its log the wheel is empty."""
        self.enter(1, 2)
        self.flush()
        self.disk.remove(FIRST)
        self.timers = self.open()
        self.assertEqual(self.positions(1) + self.positions(2), [])
        self.assertEqual((self.timers.wheel.pending, self.timers.log.end), (0, 0))

    def test_shortLog(self) -> None:
        """A log that is shorter than it was ends where it does; slots go back to units
        that are there."""
        self.enter(1, 1, 2, 1, 2)
        self.flush()
        self.disk.open(FIRST).pwrite(bytes(104), 3 * 52)
        self.timers = self.open()
        self.assertEqual((self.positions(1), self.positions(2)), ([1, 2], [3]))
        self.assertEqual(self.timers.wheel.pending, 3)
        self.assertEqual(self.disk.read(FIRST)[156:], bytes(SEGMENT - 156))

    def test_withoutMessages(self) -> None:
        """Units whose messages a power failure has taken are gone, whether the wheel's
        file knows of them or not."""
        self.enter(1, 2, 1)
        self.flush()
        self.enter(1, 2, 3)
        flush = self.timers.begin_flush()
        self.timers.log.sync()
        self.timers.write_pages(flush._pages)
        self.log_end = 5000
        self.timers = self.open()
        self.assertEqual(self.positions(1), [1, 3, 4])
        self.assertEqual((self.positions(2), self.positions(3)), ([2], []))
        self.assertEqual(self.timers.wheel.pending, 4)

    def test_otherLength(self) -> None:
        """Segments of another length are kept aside."""
        self.enter(*range(1, 15))
        self.flush()
        self.disk.open(FIRST).truncate(100)
        self.timers = self.open()
        self.assertEqual(len(self.timers.report), 2)
        self.assertIn("kept as", self.timers.report[0])
        self.assertEqual(self.timers.log.starts, [])
        self.assertTrue(self.disk.exists(f"{FIRST}.damaged"))

    def test_nonsense(self) -> None:
        """Bytes that are no units end a chain; a start goes on with what is left."""
        for seed in range(40):
            self.begin()
            luck = random.Random(seed)
            self.enter(*range(1, 20))
            self.flush()
            for path in (FIRST, WHEEL, "/s/config/timercheck"):
                size = min(self.disk.size(path), 4096)
                file = self.disk.open(path)
                file.pwrite(luck.randbytes(luck.randrange(60)), luck.randrange(size))
            self.timers = self.open()
            for ms, slot in self.timers.wheel.used(self.checkpoint.read_ms):
                self.assertLess(slot.last, self.timers.log.end, f"{seed} {ms}")
                self.timers.log.chain(slot.last, 1000)


class ClockTests(TimersCase):
    """A clock that was set."""

    def test_back(self) -> None:
        """What was delivered before the clock was set back is not due again."""
        self.enter(10, 20)
        self.flush(NOW_MS + 15_000)
        self.timers = self.open()
        self.assertEqual(self.checkpoint.read_ms, NOW_MS)
        self.assertEqual((self.positions(10), self.positions(20)), ([], [2]))
        self.enter(10)
        self.assertEqual(self.positions(10), [3])
        self.assertEqual(self.timers.wheel.pending, 2)

    def test_nonsense(self) -> None:
        """A read time that cannot be is not believed: nothing is lost."""
        self.enter(10)
        for read_ms in (0, -5, NOW_MS + 605_000_000, 1 << 62):
            self.flush(read_ms)
            self.timers = self.open()
            self.assertLess(self.checkpoint.read_ms, NOW_MS)
            self.assertEqual(self.positions(10), [1])


class PassedTests(TimersCase):
    """Times that are over."""

    def test_pages(self) -> None:
        """Pages without a time to come are not in memory."""
        self.enter(1, 1000)
        self.flush()
        self.assertEqual(len(self.timers.wheel.pages), 2)
        self.timers.wheel.prune(NOW_MS + 500_000)
        self.assertEqual(len(self.timers.wheel.pages), 1)
        self.flush(NOW_MS + 500_000)
        self.timers = self.open(NOW_MS + 500_000)
        self.assertEqual(len(self.timers.wheel.pages), 1)
        self.assertEqual(self.timers.wheel.pending, 1)

    def test_nextUsed(self) -> None:
        """The next time with a message is found, however far it is."""
        self.enter(1, 300, 172_000)
        wheel = self.timers.wheel
        found, ms = [], NOW_MS
        end = NOW_MS + 604_000_000
        while (ms := wheel.next_used(ms, end)) < end:
            found.append((ms - NOW_MS) // 1000)
            ms += 1000
        self.assertEqual(found, [1, 300, 172_000])

    def test_wrap(self) -> None:
        """A slot belongs to one time only: two weeks later it is another one."""
        self.enter(5)
        later = NOW_MS + 1_209_600_000
        self.assertIsNone(self.timers.wheel.get(later + 5000))
        self.enter(1_209_605, write_ms=later)
        self.assertIsNone(self.timers.wheel.get(NOW_MS + 5000))

    def test_clean(self) -> None:
        """A segment goes when all its messages are gone from the commit log."""
        self.enter(*range(1, 25))
        self.assertEqual(self.timers.log.clean(10_000), 0)
        self.assertEqual(self.timers.log.clean(10_001), 1)
        self.assertEqual(self.timers.log.clean(20_000), 0)
        self.assertEqual(self.timers.log.clean(99_999), 1)
        # The last one has room for more.
        self.assertEqual(self.timers.log.clean(99_999), 0)
        self.flush()
        self.timers = self.open()
        self.assertEqual(self.timers.log.begin, 2 * SEGMENT)
        self.assertEqual(self.positions(24), [24])

    def test_counts(self) -> None:
        """How many are due within some bounds."""
        self.enter(1, 5, 6, 6, 60, 61)
        found = self.timers.wheel.counts(NOW_MS, (5000, 60_000, 300_000))
        self.assertEqual(found, [1, 3, 2])
