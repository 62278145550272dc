"""Half messages that an operator lets be checked back again."""

from __future__ import annotations

import errno

from rocketbroker.errors import SystemFailure
from rocketbroker.records import record
from rocketbroker.records.ids import offset_id
from rocketbroker.records.names import CHECK_MAX_TIME_TOPIC
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST, answered
from tests.broker.transactions import COMMIT, ROLLBACK, ROUND, TransactionCase


class ResumeTests(TransactionCase):
    """Request 323."""

    def setUp(self) -> None:
        """A data path that checks twice."""
        self.serial = 0
        self.begin({"transactionCheckMax": "2", "brokerRole": "ASYNC_MASTER"})

    def resume(self, position: int) -> Command:
        """Put back what stands there."""
        return self.ask(offset_id(HOST, position))

    def ask(self, message_id: str) -> Command:
        """The request."""
        code = RequestCode.RESUME_CHECK_HALF_MESSAGE
        answer = answered(self.rig.begin(code, {"topic": "T", "msgId": message_id}))
        self.rig.scheduler.dispatch()
        return answer

    def refused(self, position: int) -> str:
        """Why it is refused."""
        with self.assertRaises(SystemFailure) as caught:
            self.resume(position)
        return str(caught.exception.remark)

    def discard(self) -> int:
        """A transaction is checked until it is discarded; where its message lies."""
        self.half(b"paid")
        self.pass_by(3 * ROUND)
        self.assertEqual(len(self.questions()), 2)
        (gone,) = self.rig.records(0, CHECK_MAX_TIME_TOPIC)
        return gone.position

    def open_ones(self) -> int:
        """How many transactions of T are open, as counted."""
        return self.rig.transactions.counts.topics["T"].open

    def test_discarded(self) -> None:
        """What was discarded is checked anew, as often as before, and committed."""
        position = self.discard()
        self.assertEqual(self.open_ones(), 0)
        self.assertEqual(self.resume(position).code, 0)
        self.assertEqual(self.open_ones(), 1)
        self.assertEqual(self.halves()[-1].properties["TRANSACTION_CHECK_TIMES"], "0")
        self.pass_by(2 * ROUND)
        question, again = self.questions()
        message = record.decode(question.body)
        self.assertEqual(message.properties["TRANSACTION_CHECK_TIMES"], "1")
        self.assertEqual((message.topic, message.body), ("T", b"paid"))
        self.assertEqual(self.reply(again, COMMIT), 0)
        self.assertEqual(self.bodies(), [b"paid"])
        self.assertEqual(self.open_ones(), 0)
        self.pass_by(2 * ROUND)
        self.assertEqual(self.questions(), [])

    def test_onlyOnce(self) -> None:
        """What is among the checks again is not put back once more, and what was ended
        not at all."""
        position = self.discard()
        self.resume(position)
        self.assertIn("already", self.refused(position))
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.reply(question, ROLLBACK)
        self.assertIn("has been ended", self.refused(position))
        self.pass_by(2 * ROUND)
        self.assertEqual(self.questions(), [])

    def test_afterRestart(self) -> None:
        """What an earlier run has discarded can be put back, and stays so."""
        position = self.discard()
        self.restart()
        self.resume(position)
        self.restart()
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.assertEqual(self.reply(question, COMMIT), 0)
        self.assertEqual(self.bodies(), [b"paid"])

    def test_open(self) -> None:
        """An open half is counted from the beginning; its older copy is over."""
        self.half(b"paid")
        self.pass_by(ROUND)
        self.questions()
        first, copy = self.halves()
        self.assertEqual(self.resume(copy.position).code, 0)
        self.assertEqual(self.open_ones(), 1)
        for old in (first, copy):
            self.assertIn("has been ended", self.refused(old.position))
        self.pass_by(2 * ROUND)
        self.assertEqual(len(self.questions()), 2)
        self.assertEqual(self.bodies(CHECK_MAX_TIME_TOPIC, 0), [])

    def test_ended(self) -> None:
        """A transaction that was committed is not delivered twice."""
        half = self.half(b"paid")
        self.end(half, COMMIT)
        (stored,) = self.halves()
        self.assertIn("has been ended", self.refused(stored.position))
        self.assertEqual(self.bodies(), [b"paid"])

    def test_nothing(self) -> None:
        """An id that is none, a place without a message, and other messages."""
        for message_id in ("", "x", "0" * 31):
            with self.assertRaises(SystemFailure):
                self.ask(message_id)
        other = self.rig.append()
        for position in (other.position, other.end, 1):
            self.assertIn("no half message", self.refused(position))

    def test_refusedByTheStore(self) -> None:
        """What cannot be stored is as it was."""
        self.half()
        (half,) = self.halves()
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=9)
        self.assertIn("failed", self.refused(half.position))
        self.rig.disk.heal()
        self.pass_by(2)
        self.assertEqual(self.resume(half.position).code, 0)

    def test_flushed(self) -> None:
        """With SYNC_FLUSH it is put on the disk at once."""
        rig = self.begin({"flushDiskType": "SYNC_FLUSH"})
        self.half()
        (half,) = self.halves()
        self.resume(half.position)
        self.assertGreater(rig.store.published_position, half.position + half.size)
        self.assertEqual(rig.store.flushed_position, rig.store.published_position)
