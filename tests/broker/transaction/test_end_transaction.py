"""Tests of L{rocketbroker.broker.transaction.end_transaction}: what is done and what
refused."""

from __future__ import annotations

import errno
import zlib

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from rocketbroker.broker.transaction.end_transaction import WARM_BYTES, immunity_ms
from rocketbroker.broker.transaction.op_queue import MAX_WAITING
from rocketbroker.errors import (
    BrokerError,
    IllegalOperation,
    ServiceNotAvailable,
    SystemBusy,
    SystemFailure,
)
from rocketbroker.records import record
from rocketbroker.records.hashing import java_hash
from rocketbroker.records.names import CHECK_MAX_TIME_TOPIC, SCHEDULE_TOPIC
from rocketbroker.records.sysflags import (
    COMPRESSED,
    TRANSACTION_COMMIT,
    TRANSACTION_MASK,
    TRANSACTION_NONE,
)
from rocketbroker.wire.command import Command
from tests.broker.rig import HOST_TEXT, answered, send_ext
from tests.broker.transactions import (
    COMMIT,
    END,
    PREPARED,
    ROLLBACK,
    ROUND,
    SEND,
    UNKNOWN,
    TransactionCase,
)


class EndTests(TransactionCase):
    """Request 37."""

    def refused(
        self,
        error: type[BrokerError],
        half: Command,
        outcome: int = COMMIT,
        **more: str,
    ) -> str:
        """The remark with which an end is refused."""
        caught = self.assertRaises(error, self.end, half, outcome, **more)
        assert isinstance(caught, BrokerError)
        return caught.remark

    def test_half(self) -> None:
        """The answer to a half message says where it is in the half queue, and the
        queue that was asked for; the record says where it belongs."""
        self.half()
        answer = self.half(b"second", queue_id=3)
        (_, half) = self.halves()
        assert answer.ext is not None
        self.assertEqual(answer.ext["queueOffset"], "1")
        self.assertEqual(answer.ext["queueId"], "3")
        self.assertEqual(answer.ext["transactionId"], "U2")
        self.assertEqual(answer.ext["msgId"], f"{HOST_TEXT}{half.position:016X}")
        self.assertEqual(half.sys_flag & TRANSACTION_MASK, TRANSACTION_NONE)
        own = half.properties
        self.assertEqual((own["REAL_TOPIC"], own["REAL_QID"]), ("T", "3"))
        self.assertEqual(own["__transactionId__"], "U2")

    def test_sentAgain(self) -> None:
        """Who sends again what he has received begins a new transaction, whatever the
        checks of the old one have noted in it."""
        other = self.half(b"other")
        noted = "TRAN_PREPARED_QUEUE_OFFSET\x010\x02TRANSACTION_CHECK_TIMES\x0115\x02"
        self.end(self.half(b"again", noted), ROLLBACK)
        self.end(other, COMMIT)
        self.assertEqual(self.bodies(), [b"other"])

    def test_final(self) -> None:
        """The final message is the half one in another place: it has the same
        properties, says that it is committed, and where its half is."""
        half = self.half(b"paid", "TAGS\x01a\x02")
        self.end(half, COMMIT)
        (before,) = self.halves()
        (message,) = self.rig.records(1)
        self.assertEqual(message.properties, before.properties)
        self.assertEqual(message.born_ms, before.born_ms)
        self.assertEqual(message.born_host, before.born_host)
        self.assertEqual(message.prepared_offset, before.position)
        self.assertEqual(message.sys_flag & TRANSACTION_MASK, TRANSACTION_COMMIT)
        self.assertEqual(message.queue_offset, 0)

    def test_compressed(self) -> None:
        """A compressed body stays so, and is found by tag, key and its place in order;
        also in the copy that is checked back, and when it is discarded."""
        own = "TAGS\x01a\x02KEYS\x01k\x02__SHARDINGKEY\x01s\x02"
        for _ in range(2):
            self.half(zlib.compress(b"paid"), own, sys_flag=PREPARED | COMPRESSED)
        self.pass_by(ROUND)
        question, _ = self.questions()
        asked = record.decode(question.body)
        self.assertEqual(asked.plain_body(), b"paid")
        self.reply(question, COMMIT)
        self.pass_by(16 * ROUND)
        (message,) = self.rig.records(1)
        (discarded,) = self.rig.records(0, CHECK_MAX_TIME_TOPIC)
        for each in (message, discarded):
            self.assertEqual(each.plain_body(), b"paid")
            self.assertEqual(each.properties["__SHARDINGKEY"], "s")
            self.assertEqual((each.tags, each.properties["KEYS"]), ("a", "k"))
        self.assertEqual(message.sys_flag, COMPRESSED | TRANSACTION_COMMIT)
        queue = self.rig.store.queue("T", 1)
        ((_, _, code),) = self.rig.store.entries(queue, 0, 1)
        self.assertEqual(code, java_hash("a"))

    def test_delayed(self) -> None:
        """A delay level counts from the commit on; what is delivered then does not say
        that it is prepared."""
        half = self.half(b"later", "DELAY\x012\x02")
        self.assertEqual(len(self.halves()), 1)
        self.end(half, COMMIT)
        self.assertEqual(self.bodies(), [])
        (message,) = self.rig.records(1, SCHEDULE_TOPIC)
        self.assertEqual(message.properties["REAL_TOPIC"], "T")
        self.assertEqual(message.properties["REAL_QID"], "1")
        self.assertNotIn("TRAN_MSG", message.properties)

    def test_unknown(self) -> None:
        """Who does not know gets no answer, and nothing is done."""
        self.assertIsNone(self.end(self.half(), UNKNOWN))
        self.assertEqual((self.bodies(), self.marks()), ([], []))

    def test_noOutcome(self) -> None:
        """There is no other outcome."""
        self.assertIn("commitOrRollback", self.refused(SystemFailure, self.half(), 4))

    def test_another(self) -> None:
        """What names another group, offset or position is refused and does nothing."""
        half = self.half()
        self.half()
        wrong = {
            "producerGroup": ("PX", "The producer group wrong"),
            "tranStateTableOffset": ("1", "The transaction state table offset wrong"),
            "commitLogOffset": ("1", "Find prepared transaction message failed"),
        }
        for name, (value, remark) in wrong.items():
            for outcome in (COMMIT, ROLLBACK):
                reason = self.refused(SystemFailure, half, outcome, **{name: value})
                self.assertEqual(reason, remark)
        self.assertEqual((self.bodies(), self.marks()), ([], []))

    def test_noHalf(self) -> None:
        """An ordinary message is no half message, even if it says so."""
        self.rig.append()
        self.rig.scheduler.dispatch()
        for position in ("0", "-1", str(1 << 40)):
            self.refused(SystemFailure, self.half(), commitLogOffset=position)

    def test_twice(self) -> None:
        """Who commits twice is told that all is well; one message is there."""
        half = self.half()
        self.assertEqual(self.end(half, COMMIT), 0)
        self.assertEqual(self.end(half, COMMIT), 0)
        self.assertEqual(len(self.bodies()), 1)
        self.refused(SystemFailure, half, ROLLBACK)

    def test_twiceAfterRestart(self) -> None:
        """After a restart its mark says so, too."""
        half = self.half()
        self.end(half, COMMIT)
        for saved in (False, True):
            self.restart(saved)
            self.assertEqual(self.end(half, COMMIT), 0)
            self.assertEqual(self.end(half, ROLLBACK), 0)
            self.assertEqual(len(self.bodies()), 1)

    def test_twiceLongAfter(self) -> None:
        """So does the progress of the checks, when they do not need its mark any more:
        neither a second commit nor a change of mind makes a message visible."""
        first, other, gone = self.half(b"first"), self.half(b"other"), self.half()
        self.pass_by(ROUND)
        question, _, _ = self.questions()
        self.reply(question, COMMIT)
        self.end(other, COMMIT)
        self.end(gone, ROLLBACK)
        self.pass_by(2 * ROUND)
        self.restart()
        for half in (first, other, gone):
            self.assertEqual(self.end(half, COMMIT), 0)
        self.assertEqual(self.bodies(), [b"first", b"other"])

    def test_lateAfterQuestion(self) -> None:
        """One that is checked back has a copy; whoever is ended, the first or the copy,
        ends both, and the other end changes nothing."""
        first = self.half()
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.end(first, COMMIT)
        self.assertEqual(self.reply(question, COMMIT), 0)
        self.pass_by(5 * ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(len(self.bodies()), 1)

    def test_lateAfterRestart(self) -> None:
        """That is known after a restart, from what the copy says."""
        for saved in (False, True):
            first = self.half()
            self.pass_by(ROUND)
            self.assertEqual(len(self.questions()), 1)
            self.restart(saved)
            before = len(self.bodies())
            self.end(first, COMMIT)
            self.pass_by(3 * ROUND)
            self.assertEqual(self.questions(), [])
            self.assertEqual(len(self.bodies()), before + 1)

    def test_immune(self) -> None:
        """Who wished not to be asked for a time has to end it in that time himself;
        the answer to a question is never late."""
        half = self.half(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x0110\x02")
        early = self.half(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x011\x02")
        self.pass_by(5)
        self.assertEqual(self.end(early, COMMIT), 0)
        self.pass_by(6)
        self.assertEqual(self.refused(IllegalOperation, half), "")
        self.refused(IllegalOperation, half, ROLLBACK)
        self.assertEqual(self.end(half, COMMIT, fromTransactionCheck="true"), 0)

    def test_immunity(self) -> None:
        """A wish that is no number of seconds is none."""
        self.assertEqual(immunity_ms("30", 6000), 30_000)
        for text in ("-1", "x", "", "1.5", "1" * 99):
            self.assertEqual(immunity_ms(text, 6000), 6000)

    def test_cold(self) -> None:
        """A half message that is far back in the log is read in a thread."""
        answer = self.cold_end()
        self.rig.threads.run()
        self.failureResultOf(answer, SystemFailure)

    def test_coldTooLate(self) -> None:
        """If none comes to it in time the sender hears so; it is checked back."""
        answer = self.cold_end()
        self.rig.clock.advance(3.0)
        self.failureResultOf(answer, SystemBusy)

    def cold_end(self) -> Deferred[Command | None]:
        """The answer to the end of a half message far back."""
        self.begin(threads=True)
        half = self.half()
        assert half.ext is not None
        position = int(half.ext["msgId"][16:], 16)
        far = f"{position - WARM_BYTES - (1 << 20)}"
        ext = {"producerGroup": "PG", "tranStateTableOffset": "0", "msgId": "U"}
        ext |= {"commitLogOffset": far, "commitOrRollback": "8"}
        answer = self.rig.begin(END, ext)
        self.assertEqual(len(self.rig.threads.waiting), 1)
        assert isinstance(answer, Deferred)
        return answer


class DiskTests(TransactionCase):
    """What the disk has to do with it."""

    def test_synchronous(self) -> None:
        """With SYNC_FLUSH the answer waits for the disk, for a rollback as well; WAIT
        says otherwise."""
        self.begin({"flushDiskType": "SYNC_FLUSH"}, threads=True)
        ends = [self.end_of(COMMIT), self.end_of(ROLLBACK)]
        hasty = self.end_of(COMMIT, "WAIT\x01false\x02")
        rig = self.rig
        answers = [rig.begin(END, ext) for ext in ends]
        for answer in answers:
            assert isinstance(answer, Deferred)
            self.assertNoResult(answer)
        self.assertEqual(answered(rig.begin(END, hasty)).code, 0)
        while rig.threads.waiting:
            rig.threads.run()
        self.assertEqual([answered(answer).code for answer in answers], [0, 0])
        self.assertEqual(rig.store.flushed_position, rig.store.published_position)

    def end_of(self, outcome: int, more: str = "") -> dict[str, str]:
        """A request that ends a new transaction, whose half is on the disk."""
        self.serial += 1
        text = f"UNIQ_KEY\x01{self.serial}\x02TRAN_MSG\x01true\x02PGROUP\x01PG\x02"
        sent = self.rig.begin(SEND, send_ext(properties=text + more, f="4"), b"x")
        self.rig.batcher.flush()
        while self.rig.threads.waiting:
            self.rig.threads.run()
        half = answered(sent)
        assert half.ext is not None
        return {
            "producerGroup": "PG",
            "tranStateTableOffset": half.ext["queueOffset"],
            "commitLogOffset": str(int(half.ext["msgId"][16:], 16)),
            "commitOrRollback": str(outcome),
            "msgId": "",
        }

    def test_full(self) -> None:
        """A commit that the disk has no room for is refused and does nothing; the
        producer is asked later."""
        half = self.half()
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=1)
        with capturedLogs():
            self.assertRaises(BrokerError, self.end, half, COMMIT)
            self.pass_by(2 * ROUND)
        self.assertEqual(self.bodies(), [])
        (question,) = self.questions()[-1:]
        self.assertEqual(self.reply(question, COMMIT), 0)
        self.assertEqual(len(self.bodies()), 1)

    def test_tooManyMarks(self) -> None:
        """When too many marks wait for the disk, no transaction is ended."""
        half = self.half()
        marks = self.rig.transactions.marks
        marks.waiting = [(1 << 20, 0)] * MAX_WAITING
        caught = self.assertRaises(ServiceNotAvailable, self.end, half, COMMIT)
        self.assertIn("too many", str(caught))
        marks.waiting.pop()
        self.assertEqual(self.end(half, COMMIT), 0)
        self.assertEqual(marks.waiting, [])

    def test_busy(self) -> None:
        """While too much waits for the disk, it is refused like a send."""
        half = self.half()
        self.begin({"flushDiskType": "SYNC_FLUSH", "sendThreadPoolQueueCapacity": "0"})
        self.assertRaises(SystemBusy, self.end, half, COMMIT)
