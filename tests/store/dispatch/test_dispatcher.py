"""From the log into the queues."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.commitlog.writer import MAX_HINTED, MAX_HINTS
from rocketbroker.store.dispatch.dispatcher import LAST_MS, delivery_ms
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import SERVICE_NOT_AVAILABLE, Arrival
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, START_MS, Wall, bodies, draft, opened, put

LEVELS = [1000, 5000, 60_000]


def arrived(arrivals: list[Arrival]) -> list[tuple[int, list[int]]]:
    """Queues and tag codes."""
    return [(each.queue.queue_id, each.tag_codes) for each in arrivals]


class DispatchTests(SynchronousTestCase):
    """Steps, and what they tell."""

    def setUp(self) -> None:
        """A store with two queues."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queues = [self.store.queue("T", number) for number in range(2)]

    def test_arrivals(self) -> None:
        """A step tells what came into which queue, with tag codes in order."""
        first, second = self.queues
        self.store.append([draft(first, tags="A"), draft(second), draft(first)])
        self.store.append([draft(first, tags="B")])
        arrivals = self.store.dispatch(100)
        self.assertEqual(
            arrived(arrivals), [(0, [tag_code("A"), 0, tag_code("B")]), (1, [0])]
        )
        self.assertEqual(first.max_offset, 3)
        self.assertEqual(self.store.dispatched_position, self.store.published_position)
        self.assertEqual(self.store.dispatch(100), [])

    def test_oneWrite(self) -> None:
        """A step writes once for each queue, and reads nothing."""
        for _ in range(5):
            self.store.append([draft(queue) for queue in self.queues * 10])
        before = dict(self.disk.calls)
        self.store.dispatch(1000)
        self.assertEqual(self.disk.calls["pwrite"], before["pwrite"] + 2)
        self.assertEqual(self.disk.calls.get("pread"), before.get("pread"))

    def test_most(self) -> None:
        """A step ends with the append that brings it to its bound."""
        for _ in range(5):
            self.store.append([draft(self.queues[0]) for _ in range(10)])
        self.store.dispatch(15)
        self.assertEqual(self.queues[0].max_offset, 20)
        self.store.dispatch(1000)
        self.assertEqual(self.queues[0].max_offset, 50)

    def test_onlyFlushed(self) -> None:
        """With SYNC_FLUSH only what is on the disk is dispatched."""
        store = opened(flush_disk_type="SYNC_FLUSH")
        queue = store.queue("T", 0)
        store.append([draft(queue)])
        self.assertEqual(store.dispatch(100), [])
        store.flush()
        store.append([draft(queue)])
        self.assertEqual(arrived(store.dispatch(100)), [(0, [0])])
        store.flush()
        self.assertEqual(arrived(store.dispatch(100)), [(0, [0])])

    def test_withoutHints(self) -> None:
        """Appends that are not remembered are read from the log, and those remembered
        before and behind them are not entered twice."""
        first = self.queues[0]
        for number in range(MAX_HINTS + 20):
            self.store.append([draft(first, b"%d" % number, tags="A")])
        self.store.dispatch(MAX_HINTS)
        self.assertEqual(first.max_offset, MAX_HINTS)
        self.store.append([draft(first, b"last")])
        codes = []
        while arrivals := self.store.dispatch(7):
            codes += arrivals[0].tag_codes
        self.assertEqual(codes, [tag_code("A")] * 20 + [0])
        self.assertEqual(
            bodies(self.store, first)[-2:], [b"%d" % (MAX_HINTS + 19), b"last"]
        )

    def test_manyBytes(self) -> None:
        """What is remembered has a bound in bytes too, as it keeps the bodies."""
        store = opened(mapped_file_size_commit_log=256 << 20)
        queue = store.queue("T", 0)
        body = b"x" * (3 << 20)
        for _ in range(MAX_HINTED // len(body) + 3):
            store.append([draft(queue, body)])
        kept = store.dispatch(1000)
        more = store.dispatch(1000)
        self.assertEqual(len(kept[0].tag_codes), MAX_HINTED // len(body))
        self.assertEqual(len(more[0].tag_codes), 3)

    def test_diskRefuses(self) -> None:
        """When the disk refuses a queue, the error is reported, appends are refused,
        and the next step enters the same; a full disk is no such error."""
        self.store.append([draft(queue) for queue in self.queues])
        self.disk.fail("pwrite", errno.EIO, after=1)
        self.assertRaises(OSError, self.store.dispatch, 100)
        self.assertEqual(self.store.dispatched_position, 0)
        self.assertIn(
            "a consume queue in /store/consumequeue cannot be written",
            self.store.refusal() or "",
        )
        self.store.allocate_ahead()
        late = draft(self.queues[0])
        self.store.append([late])
        self.assertEqual(late.status, SERVICE_NOT_AVAILABLE)
        self.assertEqual(arrived(self.store.dispatch(100)), [(0, [0]), (1, [0])])
        self.assertEqual([queue.max_offset for queue in self.queues], [1, 1])
        self.assertIsNone(self.store.refusal())

    def test_brokenRecord(self) -> None:
        """A record that cannot be read any more costs the rest of its segment; what is
        behind is dispatched."""
        first = self.queues[0]
        for _ in range(MAX_HINTS):
            self.store.append([draft(self.queues[1], sys_flag=4)])
        drafts = [draft(first, b"x" * 30_000) for _ in range(4)]
        self.store.append(drafts)
        start = drafts[1].position - drafts[1].position % (64 << 10)
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(start)}")
        file.pwrite(bytes(8), drafts[1].position - start)
        while self.store.dispatched_position < self.store.published_position:
            self.store.dispatch(10_000)
        self.assertTrue(1 <= len(bodies(self.store, first)) < 4)
        (message,) = self.store.findings()
        self.assertIn("No record can be read at position", message)
        self.assertEqual(self.store.corrupt_records, 1)


class DeleteTests(SynchronousTestCase):
    """Topics that are deleted."""

    def setUp(self) -> None:
        """A topic with two queues."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queues = [self.store.queue("T", number) for number in range(2)]
        for queue in self.queues:
            put(self.store, queue, b"old", b"old")
        put(self.store, self.store.queue("U", 0), b"other")

    def test_delete(self) -> None:
        """Queues and directories go; the handles go on from 0; others are not
        touched."""
        self.store.delete_topic("T")
        self.assertEqual(self.disk.list(f"{ROOT}/consumequeue"), ["U"])
        queue = self.store.queue("T", 0)
        self.assertIs(queue, self.queues[0])
        self.assertEqual(
            (queue.min_offset, queue.max_offset, queue.next_offset), (0, 0, 0)
        )
        put(self.store, queue, b"new")
        self.assertEqual(bodies(self.store, queue), [b"new"])
        self.assertEqual(bodies(self.store, self.store.queue("U", 0)), [b"other"])

    def test_notYetDispatched(self) -> None:
        """What was appended before the deletion and not dispatched does not come
        back."""
        queue = self.queues[0]
        for forgotten in (False, True):
            self.store.append([draft(queue, b"late")])
            self.store.delete_topic("T")
            if forgotten:
                # Then it is read from the log.
                self.store._log.hints.clear()
                self.assertEqual(self.store.dispatch(1000), [])
            put(self.store, queue, b"new")
            self.assertEqual(bodies(self.store, queue), [b"new"])

    def test_again(self) -> None:
        """After a crash the topic is as it was made again; what was before is not in
        its queues."""
        self.store.delete_topic("T")
        put(self.store, self.queues[0], b"new")
        self.disk.crash(keep_all=True)
        store = opened(self.disk, Wall())
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"new"])
        self.assertEqual(store.queue("T", 0).next_offset, 1)

    def test_unknown(self) -> None:
        """Deleting what is not there does nothing."""
        self.store.delete_topic("V")
        self.store.delete_topic("../T")
        self.assertEqual(self.disk.list(f"{ROOT}/consumequeue"), ["T", "U"])


class DelayTests(SynchronousTestCase):
    """Levels and times."""

    def test_delivery(self) -> None:
        """The level's delay is added to the store time; a level too high is the last;
        no level is no delay; of two the last counts."""
        for properties, ms in (
            (b"DELAY\x011\x02", 1000),
            (b"K\x01v\x02DELAY\x013\x02WAIT\x01true\x02", 60_000),
            (b"K\x01v\x02DELAY\x012", 5000),
            (b"DELAY\x0199\x02", 60_000),
            (b"DELAY\x011\x02DELAY\x012\x02", 5000),
        ):
            self.assertEqual(delivery_ms(properties, 7, LEVELS), 7 + ms, properties)
        for properties in (
            b"",
            b"DELAY\x010\x02",
            b"DELAY\x01x\x02",
            b"XDELAY\x011\x02",
        ):
            self.assertIsNone(delivery_ms(properties, 7, LEVELS), properties)
        self.assertEqual(delivery_ms(b"DELAY\x011\x02", 7, []), 1007)
        self.assertEqual(delivery_ms(b"DELAY\x011\x02", LAST_MS - 1, LEVELS), LAST_MS)


class RecoveryTests(SynchronousTestCase):
    """What a recovery makes of records that are not ordinary ones."""

    def test_delayed(self) -> None:
        """Delayed messages get their times back."""
        disk = MemoryDisk()
        store = opened(disk)
        queue = store.queue(SCHEDULE_TOPIC, 1)
        store.append(
            [
                draft(queue, properties=b"DELAY\x012\x02", tag_code=START_MS + 5000),
                draft(queue, properties=b"TAGS\x01TagA\x02", tag_code=2598919),
            ]
        )
        disk.crash(keep_all=True)
        store = opened(disk)
        blob = store.queue(queue.topic, 1).read(0, 2)
        self.assertEqual(
            [entry[2] for entry in ENTRY.iter_unpack(blob)], [START_MS + 5000, 2598919]
        )

    def test_known(self) -> None:
        """The first record of a queue, too, is taken with others, if the queue is known
        beforehand."""
        disk = MemoryDisk()
        store = opened(disk)
        for _ in range(2):
            put(store, store.queue("T", 0), b"body")
        data = disk.read(f"{ROOT}/commitlog/{segment_name(0)}")
        store = opened(MemoryDisk())
        queue = store.queue("T", 0)
        dispatcher = store._dispatcher
        self.assertEqual(dispatcher.replay(data, 0, 0, True)[1], 0)
        dispatcher.know([queue, store.queue("T" * 300, 0)])
        self.assertEqual(dispatcher.replay(data, 0, 0, True)[1], 1)
        self.assertEqual([len(each.pending) for each in store.queues()], [1, 0])

    def test_rottenTime(self) -> None:
        """A store time that cannot be is no reason not to start."""
        disk = MemoryDisk()
        store = opened(disk)
        waiting = draft(store.queue(SCHEDULE_TOPIC, 0), properties=b"DELAY\x011\x02")
        store.append([waiting])
        disk.crash(keep_all=True)
        log = disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        log.pwrite(LAST_MS.to_bytes(8, "big"), waiting.position + 56)
        blob = opened(disk).queue(SCHEDULE_TOPIC, 0).read(0, 1)
        self.assertEqual(ENTRY.unpack(blob)[2], LAST_MS)

    def test_innerBatch(self) -> None:
        """A record that is a batch stands in a queue of another kind: a simple one of
        that topic would keep RocketMQ from starting."""
        disk = MemoryDisk()
        store = opened(disk)
        store.append([draft(store.queue("Batch", 0), sys_flag=0xC0)])
        disk.crash(keep_all=True)
        store = opened(disk)
        self.assertEqual(disk.list(f"{ROOT}/consumequeue"), [])
        self.assertEqual(store.recovered.records, 1)
