"""Messages that stand in LMQs besides their own, and how they come through
stops."""

from __future__ import annotations

import errno

from rocketbroker.errors import SystemFailure
from rocketbroker.store.commitlog.batch_records import lmqs_of
from rocketbroker.store.interfaces import MESSAGE_ILLEGAL, PUT_OK, Draft, Placed
from rocketbroker.testing.files import MemoryDisk
from tests.store.lmq import ON, LmqCase, spread
from tests.store.stores import ROOT, batch, bodies, draft, with_batches


class AppendTests(LmqCase):
    """Offsets that are given in the append."""

    def test_fill(self) -> None:
        """Each LMQ has its own numbers; the queues do not disturb each
        other."""
        self.fill()
        self.check()
        self.assertEqual(
            self.disk.list(f"{ROOT}/consumequeue"), ["%LMQ%a", "%LMQ%b", "T"]
        )

    def test_together(self) -> None:
        """Messages that come together get one number after the other."""
        drafts = [spread(self.queue, b"%d" % n, self.a) for n in range(3)]
        self.put(*drafts)
        for number, each in enumerate(drafts):
            place = b"INNER_MULTI_QUEUE_OFFSET\x01%d\x02" % number
            self.assertTrue(each.properties.endswith(place), each.properties)
        self.assertEqual(bodies(self.store, self.a), [b"0", b"1", b"2"])

    def test_arrivals(self) -> None:
        """Who waits at an LMQ hears of it."""
        self.store.append([spread(self.queue, b"x", self.a)])
        arrivals = self.store.dispatch(100)
        self.assertEqual({each.queue for each in arrivals}, {self.queue, self.a})

    def test_committed(self) -> None:
        """What a transaction has committed stands in its LMQs."""
        self.put(spread(self.queue, b"x", self.a, sys_flag=8))
        for queue in (self.queue, self.a):
            self.assertEqual(bodies(self.store, queue), [b"x"])

    def test_batchQueue(self) -> None:
        """A message of a topic with batch queues may stand in LMQs, too."""
        store = with_batches(MemoryDisk(), self.wall, **ON)
        queue, light = store.queue("B", 0), store.queue("%LMQ%a", 0)
        store.append([draft(queue, b"0"), spread(queue, b"1", light)])
        while store.dispatch(100):
            pass
        self.assertEqual(bodies(store, queue), [b"0", b"1"])
        self.assertEqual(bodies(store, light), [b"1"])
        self.assertEqual((queue.next_offset, light.next_offset), (2, 1))

    def test_refused(self) -> None:
        """What the disk refuses takes no number anywhere."""
        self.put(spread(self.queue, b"0", self.a, self.b))
        self.disk.fail("pwrite", errno.ENOSPC)
        drafts = [spread(self.queue, b"x", self.a), spread(self.queue, b"y", self.b)]
        self.store.append(drafts)
        self.assertNotIn(PUT_OK, {each.status for each in drafts})
        for queue in (self.queue, self.a, self.b):
            self.assertEqual(queue.next_offset, 1)
        self.wall.now_ms += 1000
        self.put(spread(self.queue, b"1", self.a))
        self.assertEqual(bodies(self.store, self.a), [b"0", b"1"])

    def test_illegal(self) -> None:
        """No half message, no batch, and none without any LMQ."""
        wrong = [
            spread(self.queue, b"x"),
            spread(self.queue, b"x", self.a, sys_flag=4),
            spread(self.queue, b"x", self.a, sys_flag=12),
            spread(self.queue, b"x", self.a, sys_flag=0xC0),
            batch(self.queue, b"x", parts=Placed(b"", 2, (self.a,))),
        ]
        self.store.append(wrong)
        self.assertEqual({each.status for each in wrong}, {MESSAGE_ILLEGAL})
        self.assertEqual(self.a.next_offset, 0)

    def test_dispatchFails(self) -> None:
        """What the disk refuses a queue is entered by the next step, once."""
        for after in range(3):
            self.store.append([spread(self.queue, b"%d" % after, self.a, self.b)])
            self.disk.fail("pwrite", errno.EIO, after)
            self.assertRaises(OSError, self.store.dispatch, 100)
            while self.store.dispatch(100):
                pass
        for queue in (self.queue, self.a, self.b):
            self.assertEqual(bodies(self.store, queue), [b"0", b"1", b"2"])

    def test_most(self) -> None:
        """There are no more of them than maxLmqConsumeQueueNum; those that are there
        can still be had, and others too."""
        self.put(spread(self.queue, b"0", self.a, self.b))
        self.store.close()
        self.start(max_lmq_consume_queue_num=2)
        self.assertRaises(SystemFailure, self.store.queue, "%LMQ%c", 0)
        self.assertIs(self.store.queue("%LMQ%a", 0), self.a)
        self.store.queue("U", 0)


class StopTests(LmqCase):
    """Stores that are closed, or stop in the middle."""

    def test_close(self) -> None:
        """After a clean stop all is as it was."""
        self.fill()
        self.store.close()
        self.start()
        self.assertEqual(self.store.report, [])
        self.assertEqual(self.store.recovered.records, 0)
        self.check()

    def test_crash(self) -> None:
        """After a crash the LMQs are made again from the log, too."""
        self.fill()
        self.store.flush()
        self.disk.crash()
        self.start()
        self.check()

    def test_crashSwitchedOff(self) -> None:
        """Also when no message is to get into them any more."""
        self.fill()
        self.disk.crash(keep_all=True)
        self.start(enable_multi_dispatch=False)
        self.check()
        self.put(spread(self.queue, b"20", self.a))
        self.assertEqual(self.a.max_offset, 14)

    def test_lostFiles(self) -> None:
        """An LMQ that has lost its files comes back."""
        self.fill()
        self.disk.crash(keep_all=True)
        folder = f"{ROOT}/consumequeue/%LMQ%a/0"
        for name in self.disk.list(folder):
            self.disk.remove(f"{folder}/{name}")
        self.start()
        self.check()


class PlacesTests(LmqCase):
    """Places that records say, whoever has written them."""

    def forged(self, offset: int) -> Draft:
        """A message that says an offset itself."""
        names = b"INNER_MULTI_DISPATCH\x01%LMQ%a\x02"
        offsets = b"INNER_MULTI_QUEUE_OFFSET\x01%d\x02" % offset
        return draft(self.queue, b"x", properties=names + offsets)

    def test_lightsOf(self) -> None:
        """Names and offsets, one for one."""
        found = b"INNER_MULTI_DISPATCH\x01%b\x02INNER_MULTI_QUEUE_OFFSET\x01%b\x02"
        self.assertEqual(
            lmqs_of(b"T", found % (b"%LMQ%a,%LMQ%b", b"3,4")),
            [(b"%LMQ%a", 3), (b"%LMQ%b", 4)],
        )
        for topic, names, offsets in (
            (b"T", b"%LMQ%a,%LMQ%b", b"3"),
            (b"T", b"%LMQ%a", b""),
            (b"T", b"%LMQ%a", b"-3"),
            (b"T", b"%LMQ%a", b"x"),
            (b"T", b"%LMQ%a", b"9" * 19),
            (b"T", b"other", b"3"),
            (b"%RETRY%G", b"%LMQ%a", b"3"),
            (b"rmq_sys_x", b"%LMQ%a", b"3"),
            (b"SCHEDULE_TOPIC_XXXX", b"%LMQ%a", b"3"),
        ):
            self.assertEqual(lmqs_of(topic, found % (names, offsets)), [])

    def test_older(self) -> None:
        """A number that the queue is beyond already does not cut it."""
        self.put(*[spread(self.queue, b"%d" % n, self.a) for n in range(3)])
        self.put(self.forged(1), spread(self.queue, b"3", self.a))
        self.assertEqual(bodies(self.store, self.a), [b"0", b"1", b"2", b"3"])

    def test_beyond(self) -> None:
        """One far beyond leaves a gap that nobody can read, and no more."""
        self.put(self.forged(50), spread(self.queue, b"y", self.b))
        self.assertEqual((self.a.min_offset, self.a.max_offset), (50, 51))
