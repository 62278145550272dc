"""Tests of L{rocketbroker.broker.transaction.op_queue}."""

from __future__ import annotations

import errno

from twisted.logger import capturedLogs

from rocketbroker.broker.transaction.check_back import MARKS_SECONDS
from rocketbroker.broker.transaction.op_queue import MAX_READ
from tests.broker.transactions import ROUND, TransactionCase


class MarksTests(TransactionCase):
    """The op queue, written and read."""

    def test_waiting(self) -> None:
        """Marks that the disk does not take wait, count already, and are written when
        there is room."""
        self.half()
        marks = self.rig.transactions.marks
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=1)
        with capturedLogs():
            self.assertEqual(marks.write([(0, 9)]), [])
        self.assertEqual((marks.waiting, marks.failures), ([(0, 9)], 1))
        self.pass_by(3 * ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(self.marks(), [b"0"])
        self.assertEqual(marks.waiting, [])

    def test_retry(self) -> None:
        """They are tried again without anybody ending a transaction."""
        marks = self.rig.transactions.marks
        marks.waiting = [(5, 0)]
        self.rig.clock.advance(MARKS_SECONDS)
        self.assertEqual(self.marks(), [b"5"])

    def test_read(self) -> None:
        """They are read in pieces, each once."""
        marks = self.rig.transactions.marks
        self.assertIsNone(marks.read())
        marks.write([(each, 0) for each in range(MAX_READ + 3)])
        self.rig.scheduler.dispatch()
        first = marks.read()
        assert first is not None
        self.assertEqual(first, (MAX_READ, list(range(MAX_READ))))
        marks.take(first)
        second = marks.read()
        assert second is not None
        marks.take(second)
        self.assertEqual(second[1], [MAX_READ, MAX_READ + 1, MAX_READ + 2])
        self.assertIsNone(marks.read())
