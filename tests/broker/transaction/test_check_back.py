"""Tests of L{rocketbroker.broker.transaction.check_back}: who is asked, when, and
what."""

from __future__ import annotations

import errno

from twisted.logger import capturedLogs

from rocketbroker.broker.messages.transaction_messages import renewed
from rocketbroker.broker.transaction.check_back import GROUP, MAX_READ
from rocketbroker.records import record
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.ids import offset_id
from rocketbroker.records.names import (
    CHECK_MAX_TIME_TOPIC,
    HALF_TOPIC,
    OP_HALF_TOPIC,
)
from rocketbroker.records.properties import MAX_BYTES
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY
from rocketbroker.wire.headers.send import CheckTransactionStateRequestHeader
from tests.broker.rig import HOST
from tests.broker.transactions import COMMIT, ROLLBACK, ROUND, TransactionCase


class QuestionTests(TransactionCase):
    """Request 39."""

    def test_question(self) -> None:
        """It names the copy in the half queue, and brings the message as its consumers
        would get it, where it belongs."""
        self.half(b"paid", "a\x01b\x02", queue_id=3)
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.assertEqual(question.code, RequestCode.CHECK_TRANSACTION_STATE)
        self.assertEqual(question.flag, ONEWAY)
        (_, copy) = self.halves()
        header = CheckTransactionStateRequestHeader.from_ext(question.ext)
        self.assertEqual(header.topic, HALF_TOPIC)
        self.assertEqual(header.tran_state_table_offset, 1)
        self.assertEqual(header.commit_log_offset, copy.position)
        self.assertEqual((header.msg_id, header.transaction_id), ("U1", "U1"))
        self.assertEqual(header.offset_msg_id, offset_id(HOST, copy.position))
        self.assertEqual(header.bname, "broker-a")
        message = record.decode(question.body)
        self.assertEqual((message.topic, message.queue_id), ("T", 3))
        self.assertEqual(message.body, b"paid")
        self.assertEqual(message.properties["a"], "b")
        self.assertEqual(message.properties, copy.properties)
        self.assertEqual(message.size, len(question.body))

    def test_copy(self) -> None:
        """The copy is like the half, counts the questions, and names the first half."""
        self.half(b"paid")
        self.pass_by(2 * ROUND)
        first, _, last = self.halves()
        self.assertEqual(last.properties["TRANSACTION_CHECK_TIMES"], "2")
        self.assertEqual(last.properties["TRAN_PREPARED_QUEUE_OFFSET"], "0")
        rest = dict(last.properties)
        del rest["TRANSACTION_CHECK_TIMES"], rest["TRAN_PREPARED_QUEUE_OFFSET"]
        self.assertEqual(rest, first.properties)
        for name in ("body", "flag", "sys_flag", "born_ms", "born_host"):
            self.assertEqual(getattr(last, name), getattr(first, name))
        self.assertEqual(self.marks(), [b"0", b"1"])

    def test_young(self) -> None:
        """Nobody is asked before transactionTimeOut has passed."""
        self.pass_by(ROUND - 5)
        self.half()
        self.pass_by(ROUND)
        self.assertEqual(self.questions(), [])
        self.pass_by(5)
        self.assertEqual(len(self.questions()), 1)

    def test_futureBirth(self) -> None:
        """A producer whose clock is ahead is asked all the same."""
        self.half(ahead_ms=3_600_000)
        self.pass_by(ROUND)
        self.assertEqual(len(self.questions()), 1)

    def test_clockSetBack(self) -> None:
        """A broker whose clock is set back asks once in a round, as before."""
        self.half()
        self.rig.start_ms -= 3_600_000
        for _ in range(3):
            self.pass_by(ROUND)
            self.assertEqual(len(self.questions()), 1)

    def test_turns(self) -> None:
        """The members of a group are asked in turn; one that does not read, or has
        gone, is not."""
        others = [self.join(), self.join("PX")]
        for _ in range(4):
            self.half()
        self.pass_by(ROUND)
        self.assertEqual([len(c.oneways) for c in (self.producer, *others)], [2, 2, 0])
        others[0].congested = True
        self.pass_by(ROUND)
        self.assertEqual([len(c.oneways) for c in (self.producer, *others)], [6, 2, 0])

    def test_nobody(self) -> None:
        """Without a producer there is no question, and it counts as one."""
        self.producer.close()
        self.half()
        self.pass_by(ROUND)
        self.assertEqual(self.rig.transactions.checks.unasked, 1)
        self.assertEqual(len(self.halves()), 2)

    def test_spared(self) -> None:
        """Who wishes not to be asked for a time is not, and that costs him nothing."""
        self.half(more="CHECK_IMMUNITY_TIME_IN_SECONDS\x011000\x02")
        self.pass_by(33 * ROUND)
        self.assertEqual(self.questions(), [])
        self.pass_by(2 * ROUND)
        question = self.questions()[0]
        copy = record.decode(question.body)
        self.assertEqual(copy.properties["TRANSACTION_CHECK_TIMES"], "1")
        self.assertEqual(copy.properties["TRAN_PREPARED_QUEUE_OFFSET"], "0")
        self.assertEqual(self.reply(question, COMMIT), 0)
        self.assertEqual(len(self.bodies()), 1)

    def test_expired(self) -> None:
        """What is older than the log is kept is discarded."""
        self.half(b"old")
        self.rig.start_ms += 72 * 3_600_000
        self.pass_by(ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(self.bodies(CHECK_MAX_TIME_TOPIC, 0), [b"old"])

    def test_many(self) -> None:
        """More than are read at once are checked back in one round; those that are over
        are passed."""
        halves = [self.half(b"%d" % n) for n in range(3 * MAX_READ)]
        for half in halves[::2]:
            self.end(half, ROLLBACK)
        self.pass_by(ROUND)
        asked = [record.decode(question.body).body for question in self.questions()]
        self.assertEqual(asked, [b"%d" % n for n in range(1, 3 * MAX_READ, 2)])

    def test_endedMeanwhile(self) -> None:
        """What is ended while it is read is not checked back."""
        self.begin(threads=True)
        half = self.half()
        self.rig.scheduler.dispatch()
        self.pass_by(ROUND)
        while self.rig.transactions.checks.asked == 0 and self.rig.threads.waiting:
            self.end(half, COMMIT)
            self.rig.threads.run()
        self.pass_by(ROUND)
        self.rig.threads.run()
        self.assertEqual(self.questions(), [])
        self.assertEqual(len(self.bodies()), 1)


class ProgressTests(TransactionCase):
    """How far the checks are, and what a restart makes of it."""

    def kept(self) -> tuple[int, int]:
        """The offsets of the group of the checks."""
        self.rig.store.flush()
        self.rig.transactions.save()
        query = self.rig.offsets.query
        return query(GROUP, HALF_TOPIC, 0), query(GROUP, OP_HALF_TOPIC, 0)

    def test_offsets(self) -> None:
        """They are those of a group, behind what is over."""
        halves = [self.half() for _ in range(5)]
        for half in halves[:3]:
            self.end(half, COMMIT)
        self.assertEqual(self.kept(), (-1, -1))
        self.pass_by(ROUND)
        self.assertEqual(self.kept(), (5, 3))
        self.pass_by(ROUND)
        self.assertEqual(self.kept(), (7, 5))

    def test_none(self) -> None:
        """Without transactions nothing is written down, and tools show no group."""
        self.pass_by(2 * ROUND)
        self.assertEqual(self.kept(), (-1, -1))

    def test_notFlushed(self) -> None:
        """They do not pass what the disk does not have yet."""
        self.half()
        self.rig.store.flush()
        self.pass_by(ROUND)
        self.rig.transactions.save()
        self.assertEqual(self.rig.offsets.query(GROUP, HALF_TOPIC, 0), -1)
        self.assertEqual(self.kept(), (1, 0))

    def test_restart(self) -> None:
        """Open transactions are checked back after a restart, and counted; others are
        not, whether the progress was written down or not."""
        for saved in (True, False):
            self.rig.producers.scan(-1)
            halves = [self.half() for _ in range(3)]
            self.end(halves[0], COMMIT)
            self.end(halves[1], ROLLBACK)
            self.pass_by(ROUND)
            self.restart(saved)
            self.assertEqual(self.rig.transactions.counts.topics["T"].open, 1)
            self.pass_by(ROUND)
            (question,) = self.questions()
            self.reply(question, COMMIT)
            self.pass_by(2 * ROUND)
            self.assertEqual(self.questions(), [])
        self.assertEqual(len(self.bodies()), 4)

    def lose(self, message: record.StoredMessage) -> None:
        """A power loss leaves what is behind a message, and not the message."""
        self.clear(message.position, message.position + message.size)

    def clear(self, start: int, end: int) -> None:
        """A power loss leaves what is around some bytes of the log, and not them."""
        self.rig.store.flush()
        log = self.rig.disk.open("/store/commitlog/00000000000000000000")
        log.pwrite(bytes(end - start), start)
        log.close()

    def test_finalLost(self) -> None:
        """A mark does not count if the disk has it and not the final message."""
        self.end(self.half(b"paid"), COMMIT)
        self.end(self.half(b"not"), ROLLBACK)
        self.lose(self.rig.records(1)[0])
        with capturedLogs() as events:
            self.restart(saved=False)
        self.assertIn("count", events[-1])
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.reply(question, COMMIT)
        self.assertEqual(self.bodies()[-1:], [b"paid"])
        self.assertEqual(self.rig.transactions.marks.doubted, 1)

    def test_copyLost(self) -> None:
        """The same is true of a copy: the older one counts again."""
        self.half(b"paid")
        self.pass_by(ROUND)
        self.lose(self.halves()[1])
        with capturedLogs():
            self.restart(saved=False)
        self.questions()
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.reply(question, COMMIT)
        self.assertEqual(self.bodies(), [b"paid"])

    def test_copyEndLost(self) -> None:
        """A copy without the end of its properties, which no CRC covers, is lost too:
        the start has passed over it."""
        for body in (b"paid", b"more"):
            self.half(body)
        self.pass_by(ROUND)
        first, second = self.halves()[2:]
        self.assertEqual(first.position + first.size, second.position)
        end = second.position + second.size
        self.clear(second.position - len(first.property_bytes), end)
        left = self.rig.disk.image(keep_all=True)
        with capturedLogs():
            self.begin(disk=left, start_ms=self.rig.wall_ms())
        self.assertEqual(self.rig.transactions.marks.doubted, 2)
        self.pass_by(ROUND)
        for question in self.questions():
            self.reply(question, COMMIT)
        self.assertEqual(sorted(self.bodies()), [b"more", b"paid"])

    def test_twoCopies(self) -> None:
        """Of two copies without a mark, as a crash between them leaves, one counts."""
        self.half()
        (half,) = self.halves()
        self.rig.store.append([renewed(half, self.rig.store.queue(HALF_TOPIC, 0), 1)])
        self.restart(saved=False)
        self.assertEqual(self.rig.transactions.counts.topics["T"].open, 1)
        self.assertEqual(self.marks(), [b"0"])
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.reply(question, COMMIT)
        self.pass_by(2 * ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(len(self.bodies()), 1)

    def test_copiesOfJava(self) -> None:
        """Those that a killed RocketMQ leaves do not say what they are copies of, but
        key and birth tell: the last one counts."""
        first = self.half(b"paid")
        other = self.half(b"other")
        half = self.halves()[0]
        queue = self.rig.store.queue(HALF_TOPIC, 0)
        for count in (1, 2):
            draft = renewed(half, queue, count)
            draft.properties = draft.properties.replace(
                b"TRAN_PREPARED", b"NOTHING_LIKE"
            )
            self.rig.store.append([draft])
        self.restart(saved=False)
        self.assertEqual(self.rig.transactions.counts.topics["T"].open, 2)
        self.assertEqual(self.marks(), [b"0", b"2"])
        self.assertEqual(self.end(other, COMMIT), 0)
        self.assertEqual(self.end(first, COMMIT), 0)
        self.pass_by(3 * ROUND)
        self.assertEqual(self.questions(), [])
        self.assertEqual(self.bodies(), [b"other", b"paid"])

    def test_twoCopiesLater(self) -> None:
        """Two that the start did not look at are told apart by the rounds."""
        self.half()
        self.restart()
        (half,) = self.halves()
        self.rig.store.append([renewed(half, self.rig.store.queue(HALF_TOPIC, 0), 1)])
        self.rig.scheduler.dispatch()
        self.pass_by(ROUND)
        self.assertEqual(len(self.questions()), 1)
        self.assertEqual(self.marks(), [b"0", b"1"])
        self.pass_by(ROUND)
        self.assertEqual(len(self.questions()), 1)


class FailureTests(TransactionCase):
    """What goes wrong, and what is done about it."""

    def test_noRoom(self) -> None:
        """What cannot be copied now is checked back in the next round."""
        self.half()
        self.half()
        self.pass_by(ROUND - 1)
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=1)
        with capturedLogs():
            self.pass_by(2)
            self.assertEqual(self.questions(), [])
            self.assertEqual(self.rig.transactions.checks.failures, 2)
            self.pass_by(3 * ROUND)
        self.assertGreaterEqual(len(self.questions()), 2)

    def test_unreadable(self) -> None:
        """What cannot be read in three rounds is passed, counted and logged; what is
        behind it is checked back all the same."""
        self.half(b"0")
        self.half(b"1")
        self.half(b"2")
        self.rig.scheduler.dispatch()
        queue = self.rig.store.queue(HALF_TOPIC, 0)
        assert isinstance(queue, Queue)
        ((position, size, code),) = self.rig.store.entries(queue, 1, 1)
        content = ENTRY.pack(position + 1, size, code)
        queue.files.all[0].file.pwrite(content, ENTRY.size)
        self.rig.clock.advance(0)
        with capturedLogs() as events:
            for _ in range(4):
                self.assertEqual(events, [])
                self.pass_by(ROUND)
                asked = [record.decode(each.body).body for each in self.questions()]
                self.assertEqual(asked, [b"0", b"2"])
                if self.rig.transactions.checks.unreadable:
                    break
        self.assertEqual(self.rig.transactions.checks.unreadable, 1)
        self.assertEqual([event["offset"] for event in events], [1])
        self.pass_by(ROUND)
        self.assertEqual(self.kept_base(), 9)

    def kept_base(self) -> int:
        """How far the checks are, as it is written down."""
        self.rig.store.flush()
        self.rig.transactions.save()
        return self.rig.offsets.query(GROUP, HALF_TOPIC, 0)

    def test_unreadableOnce(self) -> None:
        """What the disk gives in the next round is not lost."""
        self.half()
        self.rig.scheduler.dispatch()
        queue = self.rig.store.queue(HALF_TOPIC, 0)
        assert isinstance(queue, Queue)
        file = queue.files.all[0].file
        there = file.pread(ENTRY.size, 0)
        file.pwrite(ENTRY.pack(1, 99, 0), 0)
        self.pass_by(ROUND)
        self.assertEqual(self.questions(), [])
        file.pwrite(there, 0)
        self.pass_by(ROUND)
        (question,) = self.questions()
        self.assertEqual(self.reply(question, COMMIT), 0)

    def test_tooLong(self) -> None:
        """A half that has no room for the count of checks is discarded, and can be
        committed."""
        self.end(self.half(more="f\x01x\x02"), ROLLBACK)
        size = len(self.halves()[0].property_bytes)
        half = self.half(more=f"f\x01{'x' * (MAX_BYTES - size)}\x02")
        with capturedLogs():
            self.pass_by(ROUND)
        self.assertEqual(self.rig.transactions.checks.discarded, 1)
        self.assertEqual(self.questions(), [])
        self.assertEqual(self.bodies(CHECK_MAX_TIME_TOPIC, 0), [b"body"])
        self.restart()
        self.end(half, COMMIT)
        self.assertEqual(len(self.bodies()), 1)

    def test_unreadableDisk(self) -> None:
        """A disk that cannot be read does not end the rounds."""
        self.half()
        self.rig.scheduler.dispatch()
        self.pass_by(ROUND - 1)
        self.rig.disk.fail("pread", errno.EIO, times=1)
        with capturedLogs():
            self.pass_by(2)
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        self.pass_by(ROUND)
        self.assertEqual(len(self.questions()), 1)
