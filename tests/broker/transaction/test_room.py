"""Tests of L{rocketbroker.broker.transaction.room}: whole lives of transactions."""

from __future__ import annotations

from rocketbroker.records.names import CHECK_MAX_TIME_TOPIC
from tests.broker.transactions import (
    COMMIT,
    ROLLBACK,
    ROUND,
    UNKNOWN,
    TransactionCase,
)


class LifeTests(TransactionCase):
    """From the half message to its end."""

    def test_commit(self) -> None:
        """A message is not there before it is committed, and then once."""
        half = self.half(b"paid")
        self.assertEqual(self.bodies(), [])
        self.assertEqual(self.end(half, COMMIT), 0)
        self.assertEqual(self.bodies(), [b"paid"])
        self.assertEqual(self.marks(), [b"0"])
        self.pass_by(5 * ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(self.bodies(), [b"paid"])

    def test_rollback(self) -> None:
        """One that is rolled back is never there, and it is not checked back."""
        self.end(self.half(), ROLLBACK)
        self.pass_by(5 * ROUND)
        self.assertEqual((self.bodies(), self.marks()), ([], [b"0"]))
        self.assertEqual(self.questions(), [])

    def test_unknown(self) -> None:
        """One whose producer does not know yet is checked back, and ended by the
        answer to that."""
        self.assertIsNone(self.end(self.half(b"first"), UNKNOWN))
        self.half(b"second")
        self.pass_by(ROUND + 1)
        first, second = self.questions()
        self.assertEqual(self.reply(first, COMMIT), 0)
        self.assertEqual(self.reply(second, ROLLBACK), 0)
        self.pass_by(5 * ROUND)
        self.assertEqual(self.bodies(), [b"first"])
        self.assertEqual(self.questions(), [])

    def test_neverEnded(self) -> None:
        """After 15 questions without an answer a message is discarded: it is in the
        topic for those, as it was, and nobody is asked any more."""
        self.half(b"forgotten")
        for _ in range(15):
            self.pass_by(ROUND)
            self.assertEqual(len(self.questions()), 1)
        self.pass_by(10 * ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(self.bodies(), [])
        (message,) = self.rig.records(0, CHECK_MAX_TIME_TOPIC)
        self.assertEqual(message.body, b"forgotten")
        topic = self.rig.topics.config(CHECK_MAX_TIME_TOPIC)
        assert topic is not None
        self.assertEqual((topic.read_queue_nums, topic.perm), (1, 6))
        self.assertEqual(message.properties["REAL_TOPIC"], "T")
        self.assertEqual(message.properties["TRANSACTION_CHECK_TIMES"], "15")
        self.assertEqual(self.rig.transactions.checks.discarded, 1)

    def test_committedAfterAll(self) -> None:
        """A discarded one can still be committed, once; it does not count as open any
        more, and others do."""
        half = self.half(b"late")
        self.pass_by(17 * ROUND)
        self.half(b"other")
        self.assertEqual(self.rig.transactions.checks.discarded, 1)
        self.end(half, COMMIT)
        self.end(half, COMMIT)
        self.assertEqual(self.bodies(), [b"late"])
        self.assertEqual(self.rig.transactions.counts.topics["T"].open, 1)

    def test_committedAfterRestart(self) -> None:
        """That can be done after a restart, too, wherever the checks are."""
        halves = [self.half(b"%d" % n) for n in range(3)]
        self.pass_by(16 * ROUND)
        self.assertEqual(self.rig.transactions.checks.discarded, 3)
        for number, saved in enumerate((False, True, True)):
            self.restart(saved)
            self.end(halves[number], COMMIT)
            self.end(halves[number], COMMIT)
            self.assertEqual(self.bodies()[number:], [b"%d" % number])
            self.pass_by(2 * ROUND)
        self.assertEqual(self.questions(), [])
