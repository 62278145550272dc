"""Tests of L{rocketbroker.store.timerwheel.timers}."""

from __future__ import annotations

import errno
from typing import ClassVar

from rocketbroker.store.timerwheel.timers import (
    Entry,
    precision_of,
    rolled_ms,
    window_of,
)
from rocketbroker.store.timerwheel.units import DEFAULT, DELETE, ROLL
from rocketbroker.store.timerwheel.wheel import FILE_SIZE
from tests.store.timerwheel.case import NOW_MS, SEGMENT, TimersCase


class EnterTests(TimersCase):
    """Messages on their way into log and wheel."""

    def test_noFiles(self) -> None:
        """Without timers there are no files."""
        self.assertEqual(self.disk.paths(), [])
        self.assertEqual(self.checkpoint, (NOW_MS, 0, 0, 0, 0, 0, 0))

    def test_chains(self) -> None:
        """Units of one time are a chain, in the order in which they were entered."""
        self.enter(5, 9, 5)
        self.enter(5, 7)
        self.assertEqual(self.positions(5), [1, 3, 4])
        self.assertEqual(self.positions(9), [2])
        self.assertEqual(self.positions(6), [])
        slot = self.timers.wheel.get(NOW_MS + 5000)
        self.assertEqual(slot, (0, 156, 3, 0))
        self.assertEqual(self.timers.wheel.pending, 5)

    def test_layout(self) -> None:
        """Log and wheel are what RocketMQ writes."""
        self.enter(5, 5)
        self.flush()
        log = self.disk.read("/s/timerlog/00000000000000000000")
        self.assertEqual(len(log), SEGMENT)
        self.assertEqual(
            log[:104].hex(),
            "00000034ffffffffffffffff000000010000018bcfe5680000001388"
            "00000000000003e800000063000000070000000000000000"
            "000000340000000000000000000000010000018bcfe5680000001388"
            "00000000000007d000000063000000070000000000000000",
        )
        self.assertEqual(log[104:], bytes(SEGMENT - 104))
        wheel = self.disk.read("/s/timerwheel")
        self.assertEqual(len(wheel), FILE_SIZE)
        at = (1_700_000_005 % 1_209_600) * 32
        self.assertEqual(
            wheel[at : at + 32].hex(),
            "000000006553f105000000000000000000000000000000340000000200000000",
        )
        self.assertEqual(wheel.count(0), FILE_SIZE - 6)

    def test_segments(self) -> None:
        """A unit that has no room is the first of the next segment; what is left has
        its length and RocketMQ's mark."""
        self.enter(*[3] * 25)
        self.assertEqual(self.timers.log.starts, [0, SEGMENT, 2 * SEGMENT])
        first = self.disk.read("/s/timerlog/00000000000000000000")
        self.assertEqual(first[520:536].hex(), "0000001e0000000000000000cbd43194")
        self.assertEqual(self.positions(3), list(range(1, 26)))

    def test_deletes(self) -> None:
        """A message that deletes counts as one less."""
        marker = Entry(NOW_MS + 2000, 5, 6, True, 7)
        self.timers.enter([marker], NOW_MS)
        (unit,) = self.chain(2)
        self.assertEqual(unit.magic, DEFAULT | DELETE)
        self.assertEqual(self.timers.wheel.pending, -1)

    def test_rolls(self) -> None:
        """What is due too far ahead is entered for a time on the way."""
        self.timers = self.open(timer_roll_window_slot=60)
        for ahead, entered in ((59, 59), (60, 30), (79, 30), (80, 60), (99, 60)):
            position = 1000 * ahead
            entry = Entry(NOW_MS + 1000 * ahead, position, 9, False, 7)
            self.timers.enter([entry], NOW_MS)
            unit = self.chain(entered)[-1]
            rolls = ROLL if entered < ahead else 0
            self.assertEqual((unit.position, unit.magic), (position, DEFAULT | rolls))

    def test_full(self) -> None:
        """What the disk refuses is not entered, and can be entered later."""
        self.enter(1)
        self.disk.fail("pwrite", errno.ENOSPC)
        with self.assertRaises(OSError):
            self.enter(1, 2)
        self.assertEqual(self.positions(1), [1])
        self.assertEqual(self.positions(2), [])
        self.enter(1, 2)
        self.assertEqual(self.positions(1), [1, 2])

    def test_flushFails(self) -> None:
        """Pages that could not be written are written by the next flush."""
        self.enter(1)
        flush = self.timers.begin_flush()
        self.disk.fail("datasync", errno.EIO)
        with self.assertRaises(OSError):
            flush.write(self.checkpoint, 0)
        flush.give_back()
        self.flush()
        self.timers = self.open()
        self.assertEqual(self.positions(1), [1])


class OptionTests(TimersCase):
    """What settings mean."""

    PRECISIONS: ClassVar = {50: 100, 100: 100, 499: 200, 500: 500, 999: 500, 5000: 1000}

    def test_precision(self) -> None:
        """The precision is one of four."""
        for given, meant in self.PRECISIONS.items():
            self.assertEqual(precision_of(given), meant)

    def test_window(self) -> None:
        """A window that is too small or too large is the largest."""
        found = [window_of(slots) for slots in (1, 2, 604_740, 604_741)]
        self.assertEqual(found, [604_740, 2, 604_740, 604_740])
        self.assertEqual(rolled_ms(200_000_000, 172_800_000, 1000), 86_400_000)

    def test_fine(self) -> None:
        """With a finer precision a slot is a shorter time."""
        self.timers = self.open(timer_precision_ms=100)
        self.timers.enter([Entry(NOW_MS + 300, 8, 9, False, 7)], NOW_MS)
        self.assertIsNone(self.timers.wheel.get(NOW_MS + 200))
        slot = self.timers.wheel.get(NOW_MS + 300)
        self.assertEqual(slot, (0, 0, 1, 0))
