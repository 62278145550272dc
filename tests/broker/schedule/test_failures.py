"""Tests of L{rocketbroker.broker.schedule.schedule_service}: what goes wrong, and much
at once."""

from __future__ import annotations

import errno

from twisted.logger import capturedLogs

from rocketbroker.broker.schedule.schedule_service import (
    BROKEN_SECONDS,
    MAX_DELIVERED,
)
from rocketbroker.files.blocks import BLOCK
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.consumequeue.queue import Queue
from rocketbroker.store.corruption_log import MAX_TRIES
from rocketbroker.store.interfaces import CREATE_MAPPED_FILE_FAILED, Draft
from rocketbroker.store.shared_positions import MIN
from tests.broker.delays import SEND, DelayingCase, Refusing
from tests.broker.rig import HOST, UNIQUE, Rig, send_ext

#: An LMQ.
LIGHT = "%LMQ%x"


class FailureTests(DelayingCase):
    """What goes wrong, and what is done about it."""

    def damage(self, offset: int) -> None:
        """Let an entry of level 1 point beside its record."""
        queue = self.rig.store.queue(SCHEDULE_TOPIC, 0)
        assert isinstance(queue, Queue)
        ((position, size, code),) = self.rig.store.entries(queue, offset, 1)
        content = ENTRY.pack(position + 1, size, code)
        queue.files.all[0].file.pwrite(content, offset * ENTRY.size)

    def test_unreadable(self) -> None:
        """What cannot be read is passed over, counted, and said once for many."""
        for number in range(4):
            self.send(1, b"%d" % number)
        self.damage(1)
        self.damage(2)
        with capturedLogs() as events:
            self.pass_by(1.5)
        self.assertEqual(self.bodies(), [b"0", b"3"])
        self.assertEqual(self.rig.schedule.unreadable, 2)
        (event,) = events
        self.assertEqual(
            (event["count"], event["delay_level"], event["offset"]), (2, 1, 1)
        )

    def test_badBlock(self) -> None:
        """So is what the disk refuses to read, when it has done so some times; what is
        behind it is not kept for ever."""
        for number in range(4):
            self.send(1, b"%d" % number * 5000)
        queue = self.rig.store.queue(SCHEDULE_TOPIC, 0)
        ((position, _, _),) = self.rig.store.entries(queue, 1, 1)
        path = f"/store/commitlog/{0:020d}"
        self.rig.disk.spoil(path, position + BLOCK, position + BLOCK + 1)
        with capturedLogs():
            self.pass_by(1.5)
            self.assertLess(len(self.bodies()), 3)
            self.pass_by(MAX_TRIES * BROKEN_SECONDS)
        self.assertEqual([body[:1] for body in self.bodies()], [b"0", b"2", b"3"])
        self.assertEqual(self.rig.schedule.unreadable, 1)
        self.assertEqual(self.rig.store.corrupt_records, 1)
        self.flushLoggedErrors(OSError)

    def test_noRoom(self) -> None:
        """On a full disk they wait, and go out in order when there is room; whatever
        could be stored meanwhile is not delivered twice."""
        for number in range(6):
            self.send(1, b"%d" % number)
        self.pass_by(0.1)  # their keys are in the index
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=1)
        with capturedLogs():
            self.pass_by(1)
            self.assertEqual(self.rig.store.refusal() is not None, True)
            # All of them at first; then one, to see whether there is room.
            attempts = self.rig.schedule.failures
            self.assertEqual(self.rig.store.append_failures, 6 + attempts - 1)
            self.assertEqual(self.rig.schedule.delivered, 0)
            self.assertGreater(self.rig.schedule.failures, 0)
            self.pass_by(3)
        self.assertEqual(self.bodies(), [b"%d" % number for number in range(6)])
        self.assertEqual(self.rig.schedule.delivered, 6)

    def test_noQueue(self) -> None:
        """So do those for which no queue can be made; what is before them is
        delivered."""
        self.send(1, b"0")
        self.send(1, b"1", 1)
        self.send(1, b"2")
        self.damage(2)
        store = self.refusing()
        store.full.add(("T", 1))
        with capturedLogs():
            self.pass_by(1.5)
            self.assertEqual((self.bodies(), self.bodies(1)), ([b"0"], []))
            self.assertGreater(self.rig.schedule.failures, 1)
            store.full.clear()
            self.pass_by(0.2)
        self.assertEqual((self.bodies(), self.bodies(1)), ([b"0"], [b"1"]))
        self.assertEqual(self.rig.schedule.unreadable, 1)

    def test_someRefused(self) -> None:
        """One that cannot be stored now is tried again; those behind it that could be
        are not delivered twice."""
        for number in range(5):
            self.send(1, b"%d" % number)
        store = self.refusing()
        store.bodies[b"1"] = store.bodies[b"3"] = CREATE_MAPPED_FILE_FAILED
        self.pass_by(1.1)
        self.assertEqual(self.bodies(), [b"0", b"2", b"4"])
        del store.bodies[b"3"]
        self.pass_by(0.2)
        self.assertEqual(self.bodies(), [b"0", b"2", b"4", b"3"])
        self.send(1, b"5")
        del store.bodies[b"1"]
        self.pass_by(1.2)
        self.assertEqual(self.bodies(), [b"0", b"2", b"4", b"3", b"1", b"5"])
        self.assertEqual(self.rig.schedule.delivered, 6)

    def test_tooLarge(self) -> None:
        """What the store will never take does not keep the others."""
        self.send(1, b"x" * 2000)
        self.send(1, b"small")
        self.rig.close()
        self.at_work(Rig({"maxMessageSize": "1000"}, disk=self.rig.disk))
        with capturedLogs() as events:
            self.pass_by(1.5)
        self.assertEqual(self.bodies(), [b"small"])
        self.assertEqual(self.rig.schedule.refused, 1)
        self.assertEqual(events[0]["topic"], "T")

    def test_batchQueues(self) -> None:
        """What waited is delivered to a topic that has batch queues by now, if it is
        no batch itself; of a batch the number of messages is not believed."""
        self.rig.topic("B", 1)
        ext = send_ext("B", properties="DELAY\x011\x02")
        for body in (b"first", b"second"):
            self.rig.ask(SEND, ext, body)
        queue = self.rig.store.queue(SCHEDULE_TOPIC, 0)
        found = b"REAL_TOPIC\x01B\x02REAL_QID\x010\x02DELAY\x011\x02INNER_NUM\x019\x02"
        batch = Draft(queue, b"x", found, 0, 0xC0, 0, HOST, 0, 0, None)
        self.rig.store.append([batch])
        self.rig.topic("B", 1, attributes={"queue.type": "BatchCQ"})
        with capturedLogs():
            self.pass_by(1.5)
        self.assertEqual(self.bodies(topic="B"), [b"first", b"second"])
        self.assertEqual(self.rig.schedule.refused, 1)

    def test_lightQueues(self) -> None:
        """Nor what waited for an LMQ that would be one too many by now: neither
        the start nor what is behind it waits for that. It counts once, though what is
        before it has to be tried again."""
        self.rig.close()
        lmqs = {"enableLmq": "true", "enableMultiDispatch": "true"}
        self.at_work(Rig(lmqs, disk=self.rig.disk))
        ext = send_ext(LIGHT, properties=f"DELAY\x011\x02UNIQ_KEY\x01{UNIQUE}\x02")
        for body in (b"first", b"second"):
            self.rig.ask(SEND, ext, body)
            self.send(1, body)
        self.rig.clock.advance(0)
        self.rig.close()
        few = {**lmqs, "maxLmqConsumeQueueNum": "0"}
        rig = Rig(few, disk=self.rig.disk, wrap=Refusing)
        rig.start_ms += 2000
        with capturedLogs() as events:
            self.at_work(rig)
            store = self.refusing()
            store.bodies[b"first"] = CREATE_MAPPED_FILE_FAILED
            self.pass_by(0.2)
            self.assertEqual(self.bodies(), [b"second"])
            store.bodies.clear()
            self.pass_by(0.2)
        self.assertEqual(self.bodies(), [b"second", b"first"])
        self.assertEqual((rig.schedule.refused, rig.schedule.delivered), (2, 2))
        self.assertIn("light message queues", events[0]["reason"])

    def test_removed(self) -> None:
        """What was removed with its part of the log is counted, and the rest comes."""
        for number in range(3):
            self.send(1, b"%d" % number)
        queue = self.rig.store.queue(SCHEDULE_TOPIC, 0)
        assert isinstance(queue, Queue)
        queue.positions.view[queue.slot + MIN] = 2
        with capturedLogs() as events:
            self.pass_by(1.5)
        self.assertEqual(self.bodies(), [b"2"])
        self.assertEqual(self.rig.schedule.lost, 2)
        self.assertEqual((events[0]["lost"], events[0]["delay_level"]), (2, 1))

    def test_ours(self) -> None:
        """A mistake of ours is logged; after a rest the level goes on. Others do not
        wait for it."""
        self.send(1)
        self.send(2, b"other")
        store = self.refusing()
        store.broken = True
        self.pass_by(1.1)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        store.broken = False
        self.pass_by(4.1)
        self.assertEqual(self.bodies(), [b"other"])
        self.pass_by(BROKEN_SECONDS - 4)
        self.assertEqual(self.bodies(), [b"other", b"body"])


class BacklogTests(DelayingCase):
    """Much is due at once."""

    def test_steps(self) -> None:
        """It goes in steps of some ms, between which the reactor has its turn; levels
        take turns too."""
        self.begin(mappedFileSizeConsumeQueue="20000")
        for _ in range(2 * MAX_DELIVERED + 50):
            self.send(1)
        for _ in range(10):
            self.send(2)
        store = self.refusing()
        self.rig.clock.advance(5.1)
        self.assertEqual(store.appends, [MAX_DELIVERED, 10, 118, 60])

    def test_large(self) -> None:
        """Large messages go in smaller steps, but without a pause."""
        for _ in range(10):
            self.send(1, b"x" * 60_000)
        store = self.refusing()
        self.rig.clock.advance(1.1)
        self.assertEqual(store.appends, [4, 4, 2])

    def test_cold(self) -> None:
        """What is far behind in the log is read in a thread, once at a time, and not
        again before it is due."""
        rig = self.cold()
        self.threads.run()
        self.pass_by(0.8)
        self.assertEqual(self.threads.waiting, [])
        self.pass_by(0.3)
        self.assertEqual(len(self.threads.waiting), 1)
        self.pass_by(1)
        self.assertEqual(len(self.threads.waiting), 1)
        self.threads.run()
        self.assertEqual(rig.schedule.delivered, 1)

    def test_stopWhileReading(self) -> None:
        """A stop waits for the thread, and what that has found is not delivered."""
        rig = self.cold()
        self.pass_by(1.2)
        stopped = rig.schedule.stop()
        self.assertNoResult(stopped)
        self.threads.run()
        self.successResultOf(stopped)
        self.assertEqual(rig.schedule.delivered, 0)

    def cold(self) -> Rig:
        """A message waits, far behind in the log; a thread looks at it."""
        cold = {"accessMessageInMemoryMaxRatio": "0", "messageIndexEnable": "false"}
        rig = self.at_work(Rig(cold, threads=True))
        self.threads = rig.threads
        self.send(1, b"cold")
        rig.append(b"x")
        rig.scheduler.dispatch()
        self.pass_by(0.1)
        self.assertEqual(len(self.threads.waiting), 1)
        return rig

    def test_coldFailure(self) -> None:
        """A disk that cannot be read is asked again after a rest."""
        rig = self.cold()
        rig.disk.fail("pread", errno.EIO)
        self.threads.run()
        self.assertEqual(len(self.flushLoggedErrors(OSError)), 1)
        self.pass_by(BROKEN_SECONDS - 0.2)
        self.assertEqual(self.threads.waiting, [])
        self.pass_by(0.3)
        self.threads.run()
        self.assertEqual(rig.schedule.delivered, 1)
