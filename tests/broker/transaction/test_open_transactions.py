"""Tests of L{rocketbroker.broker.transaction.open_transactions}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.transaction.open_transactions import (
    DISCARDED,
    OPEN,
    OVER,
    OpenTransactions,
)
from rocketbroker.records import record
from rocketbroker.records.record import StoredMessage
from tests.broker.rig import HOST

#: How much is remembered.
MOST = 8


def half(offset: int, root: int | None = None) -> StoredMessage:
    """A half at an offset, a copy of another one or not."""
    text = "" if root is None else f"TRAN_PREPARED_QUEUE_OFFSET\x01{root}\x02"
    data = record.encode(b"T", b"x", text.encode(), 0, offset, 0, 0, HOST, 0, HOST)
    return record.decode(data)


class OpenHalvesTests(SynchronousTestCase):
    """Marks, copies, outcomes."""

    def setUp(self) -> None:
        """Nothing is known from 10 on."""
        self.state = OpenTransactions(MOST)
        self.state.begin(10)

    def test_marks(self) -> None:
        """What is before the base is over, and what is marked."""
        for offset in (3, 11, 14):
            self.state.mark(offset)
        over = [n for n in range(8, 20) if self.state.is_over(n)]
        self.assertEqual(over, [8, 9, 11, 14])
        self.assertEqual(self.state.open_from(0, 16, 99), [10, 12, 13, 15])
        self.assertEqual(self.state.open_from(12, 16, 2), [12, 13])
        self.assertEqual(self.state.open_from(16, 16, 2), [])
        # The halves that are marked may be ahead of those that can be read.
        self.assertEqual(self.state.open_from(11, 12, 99), [])
        self.assertEqual(self.state.open_from(8, 12, 99), [10])
        self.state.advance(12)
        self.state.advance(5)
        self.assertEqual(self.state.base, 12)
        self.assertEqual(self.state.open_from(0, 16, 99), [12, 13, 15])
        self.state.advance(100)
        self.assertEqual(self.state.open_from(0, 102, 99), [100, 101])

    def test_opOffset(self) -> None:
        """The op queue is needed from the first block that marks what is not passed."""
        self.state.read_marks(0, [3, 12], 20)
        self.state.read_marks(2, [11], 20)
        self.state.read_marks(3, [15, 99], 20)
        self.assertFalse(self.state.is_over(99))
        needed = []
        for base in (10, 12, 13, 16):
            self.state.advance(base)
            needed.append(self.state.op_offset(5))
        self.assertEqual(needed, [0, 0, 3, 5])

    def test_found(self) -> None:
        """Of the halves of one transaction the last one counts."""
        self.assertIsNone(self.state.found(half(10)))
        self.assertEqual(self.state.found(half(12, 10)), 10)
        self.assertEqual(self.state.found(half(13, 10)), 12)
        self.assertIsNone(self.state.found(half(14, 3)))
        self.assertEqual(self.state.ended(half(10), 8), [13, 10])

    def test_foundLater(self) -> None:
        """One that is older than what is known is over itself."""
        self.state.renewed(10, 12)
        self.assertEqual(self.state.found(half(11, 10)), 11)
        self.assertEqual(self.state.found(half(10)), 10)
        self.assertIsNone(self.state.found(half(12, 10)))

    def test_outcome(self) -> None:
        """An outcome is that of all halves of a transaction."""
        self.assertEqual(self.state.outcome(half(10)), OPEN)
        self.state.renewed(10, 12)
        self.assertEqual(self.state.ended(half(12, 10), 8), [12])
        self.assertEqual(self.state.outcome(half(10)), 8)
        self.assertEqual(self.state.outcome(half(3)), OVER)

    def test_markedOnly(self) -> None:
        """A mark says that it is over, not how."""
        self.state.mark(11)
        self.assertEqual(self.state.outcome(half(11)), OVER)
        self.state.renewed(11, 13)
        self.assertEqual(self.state.outcome(half(11)), OPEN)

    def test_givenUp(self) -> None:
        """What was discarded may still be ended."""
        self.state.mark(11)
        self.assertEqual(self.state.discarded(half(11)), [11])
        self.assertEqual(self.state.outcome(half(11)), DISCARDED)

    def test_bound(self) -> None:
        """Outcomes and copies do not grow without end: the oldest outcome goes, and no
        other copy comes."""
        self.state.ended(half(10), 8)
        for offset in range(MOST):
            self.state.renewed(100 + offset, 200 + offset)
        self.state.renewed(300, 301)
        self.assertEqual(self.state.ended(half(300), 8), [300])
        self.assertEqual(self.state.ended(half(100), 8), [200, 100])
        self.assertEqual(self.state.outcome(half(10)), 8)
        for offset in range(20, 20 + MOST - 2):
            self.state.ended(half(offset), 12)
        self.assertEqual(self.state.outcome(half(10)), OPEN)
        self.assertEqual(self.state.outcome(half(300)), 8)
