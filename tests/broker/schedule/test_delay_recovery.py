"""Tests of L{rocketbroker.broker.schedule.delay_recovery}."""

from __future__ import annotations

import errno

from twisted.logger import capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.delay_messages import delivered
from rocketbroker.broker.schedule.delay_level import LAST_EXTENSION_ADDRESS, DelayLevel
from rocketbroker.broker.schedule.delay_recovery import MAX_SCANNED, resumed_offset
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.records.record import decode
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.interfaces import PUT_OK, Draft
from tests.broker.rig import HOST, Rig

#: How many messages a step has here.
STEP = 4


class ResumingTests(SynchronousTestCase):
    """Level 1, of which some messages are delivered."""

    def setUp(self) -> None:
        """Nothing waits."""
        self.begin()

    def begin(self) -> None:
        """A store in which nothing waits."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)
        queue = self.rig.store.queue(SCHEDULE_TOPIC, 0)
        assert isinstance(queue, Queue)
        self.queue = queue
        self.waiting: list[Draft] = []

    def wait(self, count: int, unique: str = "UNIQ_KEY\x01{}\x02") -> None:
        """Let messages wait, and their second pass."""
        for _ in range(count):
            number = len(self.waiting)
            properties = (
                f"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x01{number % 2}\x02"
                + unique.format(number)
            )
            draft = Draft(
                self.queue,
                b"body",
                properties.encode(),
                0,
                0,
                number,
                HOST,
                0,
                0,
                None,
            )
            self.append(draft)
            self.waiting.append(draft)
        self.rig.clock.advance(1)

    def append(self, draft: Draft) -> None:
        """Append a message."""
        self.rig.store.append([draft])
        self.assertEqual(draft.status, PUT_OK)
        while self.rig.store.dispatch(1000):
            pass

    def deliver(self, *offsets: int) -> None:
        """Deliver some of them."""
        for offset in offsets:
            record = self.rig.store.record_at(self.waiting[offset].position)
            assert record is not None
            queue = self.rig.store.queue("T", offset % 2)
            self.append(delivered(decode(record), queue, None))

    def resumed(self, first: int = 0) -> int:
        """Where the delivery goes on if the file says C{first}."""
        level = DelayLevel(1, 1000, self.queue, first)
        return resumed_offset(self.rig.store, level, STEP, self.rig.wall_ms())

    def test_every(self) -> None:
        """However many are delivered, it goes on with the next one."""
        self.assertEqual(self.resumed(), 0)
        self.wait(20)
        for done in range(20):
            self.assertEqual(self.resumed(), done)
            self.assertEqual(self.resumed(done // 2), done)
            self.deliver(done)
        self.assertEqual(self.resumed(), 20)
        self.assertEqual(self.resumed(20), 20)

    def test_gap(self) -> None:
        """One that could not be stored when others of its step were is not passed."""
        for gap in range(1, 9):
            self.begin()
            self.wait(20)
            end = gap + STEP
            self.deliver(*(n for n in range(end) if n != gap))
            self.assertEqual(self.resumed(), gap)

    def test_notDue(self) -> None:
        """What is not due has not been delivered, whatever stands elsewhere."""
        self.wait(2)
        self.deliver(0)
        self.assertEqual(self.resumed(), 1)
        self.rig.start_ms -= 1
        self.assertEqual(self.resumed(), 0)

    def test_anothers(self) -> None:
        """A copy is of the same message: not one with the same id from another time,
        nor one that has its properties in the body."""
        self.wait(1)
        record = self.rig.store.record_at(self.waiting[0].position)
        assert record is not None
        for change in ("born_ms", "body", "properties"):
            other = delivered(decode(record), self.rig.store.queue("T", 0), None)
            if change == "properties":
                other.body, other.properties = other.properties, b""
            else:
                setattr(other, change, {"born_ms": 5, "body": b"x"}[change])
            self.append(other)
            self.assertEqual(self.resumed(), 0)
        self.deliver(0)
        self.assertEqual(self.resumed(), 1)

    def test_lightQueues(self) -> None:
        """A copy that got offsets in LMQs besides is one."""
        self.wait(1)
        record = self.rig.store.record_at(self.waiting[0].position)
        assert record is not None
        copy = delivered(decode(record), self.rig.store.queue("T", 0), None)
        copy.properties += b"INNER_MULTI_QUEUE_OFFSET\x017\x02"
        self.append(copy)
        self.assertEqual(self.resumed(), 1)

    def test_noId(self) -> None:
        """One without an id cannot be told from others."""
        self.wait(1, unique="")
        self.deliver(0)
        self.assertEqual(self.resumed(), 0)

    def test_busyQueue(self) -> None:
        """Only so many messages are looked at: a start does not take minutes."""
        for before, found in ((MAX_SCANNED - 1, 1), (MAX_SCANNED, 0)):
            self.begin()
            self.wait(1)
            for _ in range(before):
                self.rig.append(b"")
            self.deliver(0)
            self.assertEqual(self.resumed(), found)

    def test_extension(self) -> None:
        """A tag code that is no time: it follows from the store time."""
        self.wait(1)
        self.deliver(0)
        draft = self.waiting[0]
        size = draft.end - draft.position
        entry = ENTRY.pack(draft.position, size, LAST_EXTENSION_ADDRESS)
        self.queue.files.all[0].file.pwrite(entry, 0)
        self.assertEqual(self.resumed(), 1)

    def test_broken(self) -> None:
        """A disk that cannot be read does not keep the broker from starting; messages
        come again instead."""
        self.wait(1)
        self.deliver(0)
        self.rig.disk.fail("pread", errno.EIO, times=100)
        with capturedLogs() as events:
            self.rig.schedule.load()
        self.rig.disk.heal()
        self.assertEqual(events[0]["delay_level"], 1)
        self.assertEqual(self.rig.schedule.progress(), {1: (0, 1)})

    def test_load(self) -> None:
        """What is found counts, and is written down."""
        self.wait(2)
        self.deliver(0)
        self.rig.schedule.load()
        self.assertEqual(self.rig.schedule.progress(), {1: (1, 2)})
        self.rig.schedule.save()
        file = self.rig.disk.read("/store/config/delayOffset.json")
        self.assertIn(b'"offsetTable":{1:1}', file)
