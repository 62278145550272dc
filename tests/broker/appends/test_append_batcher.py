"""Tests of L{rocketbroker.broker.appends.append_batcher}."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.send_answers import SIZE_BOUNDS, QueueSends
from rocketbroker.errors import SystemBusy
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.running_flags import DISK_FULL, WRITE_LOGICS_QUEUE_ERROR
from rocketbroker.testing.connections import RecordedConnection
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.hot import MAX_READY_HEADS
from tests.broker.rig import Rig, send_ext

SEND = RequestCode.SEND_MESSAGE_V2


def fail(draft: Draft, code: int) -> None:
    """Answers nobody."""
    raise ValueError("nobody is answered")


class IntakeTests(SynchronousTestCase):
    """What becomes of the drafts of a turn."""

    def make(self, threads: bool = False, **settings: str) -> Rig:
        """A data path in which the hot way has approved queue 0 of T."""
        rig = Rig(settings, threads)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        answer = rig.begin(SEND, send_ext(), b"first")
        rig.batcher.flush()
        if threads:
            rig.threads.run()
        self.assertIsNotNone(answer)
        return rig

    def send(self, rig: Rig, opaque: int, flag: int = 0, **more: str) -> None:
        """A hot send."""
        self.assertTrue(rig.hot(SEND, send_ext(**more), b"body", opaque, flag))

    def test_oneAppend(self) -> None:
        """All sends of a turn are appended at its end, and answered in order."""
        rig = self.make()
        before = rig.store.published_position
        for opaque in range(5):
            self.send(rig, opaque)
        self.assertEqual(rig.store.published_position, before)
        self.assertEqual(rig.answers(), [])
        rig.batcher.flush()
        answers = rig.answers()
        self.assertEqual([answer.opaque for answer in answers], [0, 1, 2, 3, 4])
        self.assertEqual(
            [(answer.ext or {})["queueOffset"] for answer in answers], list("12345")
        )

    def test_severalConnections(self) -> None:
        """Each connection gets its own answers, in whatever order it sent; also where
        one of the turn cannot be answered."""
        rig = self.make()
        connections = [RecordedConnection(port=port) for port in range(3)]
        for opaque, number in enumerate((0, 0, 1, 0, 2, 2)):
            rig.connection = connections[number]
            self.send(rig, opaque)
        rig.connection = connections[1]
        self.send(rig, 6, flag=2)
        # What is no tuple is called.
        rig.batcher.drafts[5].context = fail
        self.assertRaises(ValueError, rig.batcher.flush)
        self.assertEqual(
            [[each.opaque for each in one.answers()] for one in connections],
            [[0, 1, 3], [2], [4]],
        )

    def test_longAnswer(self) -> None:
        """An answer for which no head is ready is framed all the same."""
        rig = self.make(regionId="r" * MAX_READY_HEADS)
        self.send(rig, 5)
        rig.batcher.flush()
        (answer,) = rig.answers()[-1:]
        self.assertEqual(answer.opaque, 5)
        self.assertEqual((answer.ext or {})["MSG_REGION"], "r" * MAX_READY_HEADS)

    def test_nothing(self) -> None:
        """A turn without sends does nothing."""
        rig = self.make()
        rig.batcher.flush()
        self.assertEqual(rig.answers(), [])

    def test_oneway(self) -> None:
        """A send that wants no answer is stored and counted, and gets none."""
        rig = self.make()
        self.send(rig, 1, flag=2)
        rig.batcher.flush()
        self.assertEqual(rig.answers(), [])
        self.assertEqual(len(rig.records()), 2)

    def test_waits(self) -> None:
        """With SYNC_FLUSH the answer goes out once the message is on the disk."""
        rig = self.make(threads=True, flushDiskType="SYNC_FLUSH")
        self.send(rig, 7)
        rig.batcher.flush()
        self.assertEqual(rig.answers(), [])
        rig.threads.run()
        self.assertEqual([answer.code for answer in rig.answers()], [0])

    def test_doesNotWait(self) -> None:
        """Who sets WAIT to false is answered at once, and flushed all the same."""
        rig = self.make(threads=True, flushDiskType="SYNC_FLUSH")
        properties = "UNIQ_KEY\x01U\x02WAIT\x01false\x02"
        self.send(rig, 7, properties=properties)
        self.send(rig, 8)
        rig.batcher.flush()
        self.assertEqual([answer.opaque for answer in rig.answers()], [7])
        rig.threads.run()
        self.assertEqual([answer.opaque for answer in rig.answers()], [8])
        self.send(rig, 9, properties=properties)
        rig.batcher.flush()
        rig.threads.run()
        self.assertEqual(rig.store.flushed_position, rig.store.published_position)

    def test_diskTooSlow(self) -> None:
        """If the disk takes too long the answer says so, with all the fields."""
        rig = self.make(threads=True, flushDiskType="SYNC_FLUSH")
        self.send(rig, 7)
        rig.batcher.flush()
        rig.clock.advance(5)
        (answer,) = rig.answers()
        self.assertEqual(answer.code, ResponseCode.FLUSH_DISK_TIMEOUT)
        assert answer.ext is not None
        self.assertEqual(answer.ext["queueOffset"], "1")
        self.assertIn("msgId", answer.ext)

    def test_tooMany(self) -> None:
        """When too many wait for the disk the next hears to slow down."""
        rig = self.make(
            threads=True, flushDiskType="SYNC_FLUSH", sendThreadPoolQueueCapacity="2"
        )
        self.send(rig, 1)
        rig.batcher.flush()
        self.send(rig, 2)
        self.assertFalse(rig.hot(SEND, send_ext(), b"body", 3))
        with self.assertRaises(SystemBusy) as caught:
            rig.begin(SEND, send_ext(), b"body")
        self.assertEqual(
            str(caught.exception),
            "[OVERLOAD]system busy, start flow control for a while, "
            "slow stage: flush, 2 sends wait, the first for 0ms",
        )
        self.assertEqual(rig.batcher.refused["overloaded"], 1)
        rig.batcher.flush()
        rig.threads.run()
        self.send(rig, 4)

    def test_neverFullWithoutWaiting(self) -> None:
        """With ASYNC_FLUSH nobody waits, and so nobody is refused for it."""
        rig = self.make(sendThreadPoolQueueCapacity="0")
        for opaque in range(3):
            self.send(rig, opaque)
        rig.batcher.flush()
        self.assertEqual(len(rig.answers()), 3)

    def test_illegal(self) -> None:
        """A message that is too long is answered alone; the others are stored."""
        rig = self.make(maxMessageSize="1000")
        self.assertTrue(rig.hot(SEND, send_ext(), b"x" * 1001, 1))
        self.send(rig, 2)
        rig.batcher.flush()
        bad, good = rig.answers()
        self.assertEqual((bad.opaque, bad.code), (1, ResponseCode.MESSAGE_ILLEGAL))
        self.assertIn("msg body length limit 1000B", bad.remark or "")
        self.assertEqual((good.opaque, good.code), (2, 0))
        self.assertEqual(rig.batcher.refused["illegal"], 1)

    def test_longestBody(self) -> None:
        """One that is just as long as allowed is stored."""
        rig = self.make(maxMessageSize="1000")
        self.assertTrue(rig.hot(SEND, send_ext(), b"x" * 1000))
        rig.batcher.flush()
        self.assertEqual([answer.code for answer in rig.answers()], [0])

    def test_longestProperties(self) -> None:
        """Properties may have 32767 bytes with what the broker adds."""
        rig = self.make()
        added = len(rig.records()[0].property_bytes) - len(send_ext()["i"])
        room = 32767 - added - len("UNIQ_KEY\x01\x02")
        for size, code in ((room, 0), (room + 1, ResponseCode.MESSAGE_ILLEGAL)):
            properties = f"UNIQ_KEY\x01{'x' * size}\x02"
            self.assertTrue(rig.hot(SEND, send_ext(properties=properties), b"b"))
            rig.batcher.flush()
            self.assertEqual([answer.code for answer in rig.answers()], [code])

    def test_diskFull(self) -> None:
        """A full disk is SERVICE_NOT_AVAILABLE or SYSTEM_ERROR, and nothing is lost."""
        rig = self.make()
        rig.disk.fail("allocate", errno.ENOSPC, times=100)
        rig.disk.fail("pwrite", errno.ENOSPC, times=1000)
        codes: set[int] = set()
        for opaque in range(30):
            self.assertTrue(rig.hot(SEND, send_ext(), b"x" * 4000, opaque))
            rig.batcher.flush()
            codes.update(answer.code for answer in rig.answers())
        expected = {ResponseCode.SERVICE_NOT_AVAILABLE, ResponseCode.SYSTEM_ERROR}
        self.assertEqual(codes - expected - {0}, set())
        self.assertNotEqual(codes & expected, set())

    def test_tooManyOpenFiles(self) -> None:
        """A segment that cannot be made for that reason is no full disk: each refusal
        tells the reason."""
        rig = self.make()
        rig.disk.fail("open", errno.EMFILE, times=1000)
        remarks: set[str] = set()
        for opaque in range(60):
            self.assertTrue(rig.hot(SEND, send_ext(), b"x" * 4000, opaque))
            rig.batcher.flush()
            remarks.update(each.remark or "" for each in rig.answers() if each.code)
        self.assertNotEqual(remarks, set())
        for remark in remarks:
            self.assertIn("Too many open files", remark)
            self.assertNotIn("full", remark)
            self.assertNotIn("free", remark)

    def test_mistake(self) -> None:
        """Even if the store raises what it should not everybody is answered."""
        rig = self.make()
        self.send(rig, 1)
        rig.batcher.drafts[0].queue = None  # type: ignore[assignment]
        rig.batcher.flush()
        (answer,) = rig.answers()
        self.assertEqual(answer.code, ResponseCode.SYSTEM_ERROR)
        self.assertEqual(len(self.flushLoggedErrors()), 1)

    def test_mistakeBetween(self) -> None:
        """What has its place already, and is not written then, counts as not stored."""
        rig = self.make()
        self.send(rig, 1)
        self.send(rig, 2)
        rig.batcher.drafts[1].parts = 0  # type: ignore[assignment]
        rig.batcher.flush()
        codes = [answer.code for answer in rig.answers()]
        self.assertEqual(codes, [ResponseCode.SYSTEM_ERROR] * 2)
        self.assertEqual(len(self.flushLoggedErrors()), 1)

    def test_closedStore(self) -> None:
        """A store that is closed is SERVICE_NOT_AVAILABLE, with the reason."""
        rig = self.make()
        rig.store.close()
        self.send(rig, 1)
        rig.batcher.flush()
        (answer,) = rig.answers()
        self.assertEqual(answer.code, ResponseCode.SERVICE_NOT_AVAILABLE)
        self.assertIn("service not available now", answer.remark or "")

    def refusal(self, bit: int, reason: str) -> str:
        """What a client reads while a part of the store holds a bit."""
        rig = self.make()
        rig.store.flags.set(bit, True, reason, "test")
        self.send(rig, 1)
        rig.batcher.flush()
        (answer,) = rig.answers()
        self.assertEqual(answer.code, ResponseCode.SERVICE_NOT_AVAILABLE)
        return answer.remark or ""

    def test_otherReasonIsNotCalledFullDisk(self) -> None:
        """A store that can open no more files says so, and of a disk nothing."""
        reason = "the queues in /queues cannot be written: Too many open files"
        remark = self.refusal(WRITE_LOGICS_QUEUE_ERROR, reason)
        self.assertEqual(remark, f"service not available now: {reason}")

    def test_fullDiskHasRatios(self) -> None:
        """A full disk is told in RocketMQ's words, with the reason behind them."""
        remark = self.refusal(DISK_FULL, "the disk is full: /log")
        self.assertIn("reasons: the broker's disk is full [CL: ", remark)
        self.assertTrue(remark.endswith("the disk is full: /log"), remark)


class CountTests(SynchronousTestCase):
    """What metrics will ask for."""

    def test_hot(self) -> None:
        """Messages, bytes and sizes are counted per queue as they are answered."""
        rig = Rig({})
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.ask(SEND, send_ext(), b"first")
        for size in (10, 2000, 5000):
            self.assertTrue(rig.hot(SEND, send_ext(), b"x" * size))
        rig.batcher.flush()
        (counts,) = rig.sending.counters()
        self.assertEqual((counts.topic, counts.message_type), ("T", "normal"))
        self.assertEqual(counts.messages, 4)
        self.assertEqual(counts.bytes, rig.store.published_position)
        self.assertEqual((counts.small, counts.sizes), (2, [0, 1, 1, 0, 0, 0, 0]))

    def test_classes(self) -> None:
        """A size belongs to the first class whose bound it does not exceed."""
        rig = Rig({})
        self.addCleanup(rig.close)
        counts = QueueSends(rig.store.queue("T", 0), "T", "normal", b"", False)
        for bound in SIZE_BOUNDS:
            counts.count(1, bound)
            counts.count(1, bound + 1)
        self.assertEqual((counts.small, counts.sizes), (1, [0, 2, 2, 2, 2, 2, 1]))

    def test_batch(self) -> None:
        """A batch counts once, with the size of its average message."""
        rig = Rig({})
        self.addCleanup(rig.close)
        counts = QueueSends(rig.store.queue("T", 0), "T", "normal", b"", False)
        counts.count(10, 20_000)
        self.assertEqual((counts.messages, counts.bytes), (10, 20_000))
        self.assertEqual(counts.sizes, [0, 1, 0, 0, 0, 0, 0])

    def test_replaced(self) -> None:
        """The counts of a queue outlive its handle."""
        rig = Rig({})
        self.addCleanup(rig.close)
        old = QueueSends(rig.store.queue("T", 0), "T", "normal", b"", False)
        old.count(2, 5000)
        new = QueueSends(rig.store.queue("T", 0), "T", "normal", b"", False)
        new.go_on_from(old)
        self.assertEqual((new.messages, new.bytes, new.sizes), (2, 5000, old.sizes))
