"""Records that say another place in their queue, and corrupt ones between others."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, FILLED, SIZE
from rocketbroker.records.record_head import LEAST_SIZE, RecordHead
from rocketbroker.store.corruption_log import CorruptionLog
from rocketbroker.store.dispatch.dispatcher import ENTRY_BATCH_SIZE
from rocketbroker.store.dispatch.offset_sequence import OffsetSequence
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import Draft
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.testing.files import MemoryDisk
from tests.store.snapshots import log_file
from tests.store.stores import (
    ROOT,
    SEGMENT,
    Wall,
    batch,
    draft,
    opened,
    placed,
    put,
    unwrapped,
    with_batches,
)


class OffsetSequenceTests(SynchronousTestCase):
    """A store that is killed, damaged and started."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Ten messages in each of two queues, one by one."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        self.drafts: dict[int, list[Draft]] = {0: [], 1: []}
        for number in range(10):
            for queue_id in (0, 1):
                queue = self.store.queue("T", queue_id)
                body = b"%d.%d" % (queue_id, number)
                self.drafts[queue_id] += put(self.store, queue, body)

    def change(self, queue_id: int, at: int, field: int, content: bytes) -> None:
        """Write into a record."""
        position = self.drafts[queue_id][at].position + field
        self.disk.open(log_file()).pwrite(content, position)

    def forget(self, queue_id: int) -> None:
        """Lose what a queue's entries say."""
        path = f"{ROOT}/consumequeue/T/{queue_id}/{segment_name(0)}"
        file = self.disk.open(path)
        file.pwrite(bytes(file.size()), 0)

    def again(self) -> Store:
        """Start after a kill."""
        self.disk.crash(keep_all=True)
        self.store = opened(self.disk, self.wall)
        return self.store

    def check(self, queue_id: int, without: set[int], end: int = 10) -> None:
        """Look whether all messages but some are there, and where the queue ends."""
        queue = self.store.queue("T", queue_id)
        self.assertEqual(
            placed(self.store, queue),
            {n: b"%d.%d" % (queue_id, n) for n in range(10) if n not in without},
        )
        self.assertEqual((queue.max_offset, queue.next_offset), (end, end))

    def test_rotten(self) -> None:
        """Those behind a corrupt record stay where they were; its place is kept, by its
        old entry or, without one, by a second one of the record before."""
        for forget in (False, True):
            self.start_over()
            self.change(0, 4, 88, b"?")
            position = self.drafts[0][4].position
            if forget:
                self.forget(0)
            store = self.again()
            self.check(0, {4})
            self.check(1, set())
            entry = store.queue("T", 0).read(4, 1)
            before = ENTRY.unpack(store.queue("T", 0).read(3, 1))[:2]
            size = self.drafts[0][4].end - position
            kept = (*before, 0) if forget else (position, size, 0)
            self.assertEqual(ENTRY.unpack(entry), kept)
            self.assertEqual(store.corrupt_records, 1)
            self.assertIn(f"at position {position}: the CRC", store.report[0])
            self.assertEqual(store.discarded_bytes, 0)
            store = self.again()
            self.check(0, {4})
            self.assertEqual(store.corrupt_records, 1)
            self.offline(store.queue("T", 0).max_offset)

    def offline(self, end: int) -> None:
        """Who reads the files is not given the message before for that of offset 4."""
        self.store.flush()
        reader = StoreReader(self.disk, ROOT)
        self.addCleanup(reader.close)
        for offset in (3, 4):
            if offset == 3:
                self.assertEqual(reader.read("T", 0, 3, end).next_offset, 4)
            error = self.assertRaises(StoreError, reader.read, "T", 0, 4, end)
            self.assertIn("Message 4 of T/0", str(error))

    def test_rottenLast(self) -> None:
        """The place of a queue's last message is kept if others follow in the log; but
        that of its entry only once."""
        self.change(0, 9, 88, b"?")
        file = self.disk.open(f"{ROOT}/consumequeue/T/0/{segment_name(0)}")
        file.pwrite(file.pread(SIZE, 9 * SIZE), 10 * SIZE)
        self.again()
        self.check(0, {9})
        put(self.store, self.store.queue("T", 0), b"0.10")
        self.assertEqual(placed(self.store, self.store.queue("T", 0))[10], b"0.10")

    def test_passedOver(self) -> None:
        """Where the scan has passed over the first records of a queue, their entries
        from before the stop stay, and the queue begins with them."""
        heads = [each.position for each in self.drafts[0]]
        self.store.flush_queues()
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        entries = self.disk.open(path).pread(5 * SIZE, 0)
        self.disk.open(path).pwrite(bytes(5 * SIZE), 5 * SIZE)
        found = RecordHead(heads[5], 200, b"T", 0, 5, 0, 0, b"")
        queue = self.store._table.all()[0]
        queue.bound(0, 0, cut=False)
        # Here the log begins behind the first record.
        sequence = OffsetSequence(CorruptionLog(), 1, 0)
        self.assertEqual(sequence.decide(queue, found, 0), [(5, found)])
        self.assertEqual(sequence.gaps, 1)
        sequence = OffsetSequence(CorruptionLog(), 0, 0)
        *gap, last = sequence.decide(queue, found, 0)
        self.assertEqual(sequence.gaps, 0)
        self.assertEqual(
            [entry for _, entry in gap],
            [entries[at : at + SIZE] for at in range(0, 100, SIZE)],
        )
        self.assertEqual(([at for at, _ in gap], last), ([0, 1, 2, 3, 4], (5, found)))

    def test_offset(self) -> None:
        """A record that says another number is passed over if its entry stands
        elsewhere, or if so many others cannot stand before it; no other is hidden."""
        for forget, offsets in ((False, (0, 1, 5, 6, 50)), (True, (300, 1 << 40))):
            for at in (0, 4, 9):
                for offset in offsets:
                    if at == offset or (forget and at == 0):
                        continue
                    self.start_over()
                    self.change(0, at, 20, offset.to_bytes(8, "big"))
                    if forget:
                        self.forget(0)
                    self.again()
                    lost = forget and at == 9
                    self.check(0, {at}, 9 if lost else 10)
                    self.check(1, set())
                    self.assertEqual(self.store.corrupt_records, 1)

    def test_notInTheQueue(self) -> None:
        """Those behind a record that is of no queue any more, as a repair leaves one,
        stay where they were."""
        self.change(0, 4, 36, (12).to_bytes(4, "big"))
        self.forget(0)
        self.again()
        self.check(0, {4})
        self.assertEqual(self.store.corrupt_records, 0)

    def test_manyPlaces(self) -> None:
        """A large gap is written piece by piece, so that it needs no more memory."""
        queue = self.store._table.all()[0]
        dispatcher = self.store._dispatcher
        for offset in range(10, ENTRY_BATCH_SIZE + 11):
            dispatcher.place(queue, offset, ENTRY.pack(7, 91, 0))
        self.assertEqual(queue.max_offset, ENTRY_BATCH_SIZE + 10)
        self.assertEqual(len(queue.pending), 1)

    def test_queue(self) -> None:
        """A record that says another queue does not take the place of that one's."""
        for at in (4, 9):
            self.start_over()
            self.change(0, at, 12, (1).to_bytes(4, "big"))
            self.again()
            self.check(0, {at})
            self.check(1, set())

    def test_queueUnknown(self) -> None:
        """Without entries, the one that comes later is passed over."""
        self.change(0, 4, 12, (1).to_bytes(4, "big"))
        self.forget(0)
        self.forget(1)
        store = self.again()
        queue = store.queue("T", 1)
        self.assertEqual(placed(store, queue)[3], b"1.3")
        self.assertEqual(placed(store, queue)[5], b"1.5")
        self.assertEqual(queue.max_offset, 10)
        self.assertEqual(store.queue("T", 0).max_offset, 10)

    def test_topicAgain(self) -> None:
        """A topic that was deleted and made again begins again, also if only one
        message of it is there."""
        for count in (1, 5, 15):
            for forget in (False, True):
                self.start_over()
                self.store.delete_topic("T")
                queue = self.store.queue("T", 0)
                new = [b"new %d" % number for number in range(count)]
                put(self.store, queue, *new)
                if forget:
                    self.forget(0)
                store = self.again()
                queue = store.queue("T", 0)
                self.assertEqual(placed(store, queue), dict(enumerate(new)))
                self.assertEqual((queue.min_offset, queue.max_offset), (0, count))

    def test_topicAgainEntries(self) -> None:
        """The entries of the new topic are there while its records come: one that is
        corrupt keeps its place by its own."""
        self.store.delete_topic("T")
        drafts = put(self.store, self.store.queue("T", 0), *[b"new"] * 5)
        self.disk.open(log_file()).pwrite(b"!", drafts[2].position + 88)
        store = self.again()
        queue = store.queue("T", 0)
        self.assertEqual(sorted(placed(store, queue)), [0, 1, 3, 4])
        self.assertEqual(ENTRY.unpack(queue.read(2, 1))[0], drafts[2].position)

    def test_topicAgainFirstLost(self) -> None:
        """So does one whose first new message is lost."""
        self.store.delete_topic("T")
        queue = self.store.queue("T", 0)
        (first, *_) = put(self.store, queue, b"new 0", b"new 1", b"new 2")
        self.disk.open(log_file()).pwrite(b"!", first.position + 88)
        self.forget(0)
        store = self.again()
        queue = store.queue("T", 0)
        found = placed(store, queue)
        self.assertEqual((found[1], found[2]), (b"new 1", b"new 2"))
        self.assertEqual(queue.next_offset, 3)

    def test_topicAgainEnds(self) -> None:
        """No entry of the topic before stays in the files: RocketMQ would find it."""
        self.change(1, 9, 88, b"?")
        self.store.delete_topic("T")
        put(self.store, self.store.queue("T", 0), b"new 0", b"new 1")
        self.store.close()
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        self.disk.remove(path)
        self.disk.remove(f"{ROOT}/rocketbroker.ends")
        store = opened(self.disk, self.wall)
        self.assertTrue(store.recovered.clean)
        self.assertEqual(placed(store, store.queue("T", 0)), {0: b"new 0", 1: b"new 1"})
        self.assertFalse(any(self.disk.read(path)[2 * SIZE :]))

    def test_onlyOne(self) -> None:
        """When all other records of a queue were removed with their segments, the last
        one is believed, and the queue begins with it."""
        size = SEGMENT // 3
        put(self.store, self.store.queue("T", 1), *[bytes(size)] * 3)
        put(self.store, self.store.queue("T", 0), b"0.10")
        self.store.close()
        self.disk.remove(log_file())
        self.disk.remove(f"{ROOT}/rocketbroker.ends")
        self.disk.open(f"{ROOT}/abort", create=True)
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        self.disk.open(path).pwrite(bytes(4 * SIZE), 7 * SIZE)
        store = self.again()
        queue = store.queue("T", 0)
        self.assertEqual(placed(store, queue), {10: b"0.10"})
        self.assertEqual((queue.min_offset, queue.max_offset), (10, 11))
        self.assertEqual(store.corrupt_records, 0)

    def test_entries(self) -> None:
        """An entry of another record is made again."""
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        file = self.disk.open(path)
        file.pwrite(file.pread(SIZE, 3 * SIZE), 4 * SIZE)
        self.again()
        self.check(0, set())
        self.assertEqual(self.store.corrupt_records, 0)

    def test_entriesBeforeTheScan(self) -> None:
        """Entries that are missing before the start of a scan are made again, whether
        records behind it have entries or not."""
        for forget in (False, True):
            self.start_over()
            put(self.store, self.store.queue("T", 1), *[bytes(SEGMENT // 3)] * 3)
            self.store.flush()
            self.store.flush_queues()
            self.wall.now_ms += 60_000
            self.store.flush()
            self.store.flush_queues()
            self.drafts[0] += put(self.store, self.store.queue("T", 0), b"0.10")
            self.assertTrue(self.drafts[0][-1].position > SEGMENT)
            path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
            lost = range(5, 11 if forget else 10)
            self.disk.open(path).pwrite(bytes(len(lost) * SIZE), 5 * SIZE)
            store = self.again()
            found = placed(store, store.queue("T", 0))
            self.assertEqual(found, {n: b"0.%d" % n for n in range(11)})


class DecisionTests(SynchronousTestCase):
    """A queue of ten messages of 200 bytes, the last of which ends at 2000."""

    def setUp(self) -> None:
        """Make it; there are records of others between those of it."""
        self.store = opened()
        self.queue = self.store._table.get("T", 0)
        self.queue.files.write(0, b"".join(ENTRY.pack(n, 20, 0) for n in range(10)))
        self.queue.set_offsets(0, 10)
        self.queue.max_position = 2000
        self.corruption = CorruptionLog()
        self.sequence = OffsetSequence(self.corruption, 0, 1000)

    def decide(self, offset: int, position: int) -> list[tuple[int, int]]:
        """The places that a record leads to, and the positions in their entries."""
        found = RecordHead(position, 200, b"T", 0, offset, 0, 0, b"")
        return [
            (at, ENTRY.unpack(item)[0] if isinstance(item, bytes) else item.position)
            for at, item in self.sequence.decide(self.queue, found, 10)
        ]

    def write(self, offset: int, position: int, size: int = 200) -> None:
        """Write an entry from before the stop."""
        self.queue.files.write(offset * SIZE, ENTRY.pack(position, size, 0))

    def test_room(self) -> None:
        """As many records may be missing as can have stood between."""
        behind = 2000 + 3 * LEAST_SIZE
        self.assertEqual(self.decide(13, behind - 1), [])
        self.assertEqual(self.corruption.records, 1)
        copies = [(at, 9) for at in (10, 11, 12)]
        self.assertEqual(self.decide(13, behind), [*copies, (13, behind)])
        self.assertEqual(self.decide(3, behind - 1), [])
        self.assertEqual(self.decide(3, behind), [(3, behind)])
        self.assertEqual(self.decide(0, 2000), [(0, 2000)])

    def test_pending(self) -> None:
        """What is about to be written counts like what is."""
        self.queue.pending = [ENTRY.pack(2100, 200, 0)]
        self.queue.pending_end = 2300
        self.assertEqual(self.decide(11, 2390), [])
        self.assertEqual(self.decide(11, 2391), [(10, 2100), (11, 2391)])

    def test_entriesBetween(self) -> None:
        """Old entries stay that lead to a place between, one behind the other."""
        self.write(10, 1999)
        self.write(11, 2100)
        self.write(12, 2299)
        self.write(13, 2300)
        self.write(14, 2901)
        self.assertEqual(
            self.decide(15, 3100),
            [(10, 9), (11, 2100), (12, 2100), (13, 2300), (14, 2300), (15, 3100)],
        )
        self.assertEqual(self.sequence.gaps, 0)

    def test_twoEntries(self) -> None:
        """One that has two entries stands where it says."""
        self.write(10, 3000)
        self.write(11, 3000)
        self.assertEqual(self.decide(11, 3000), [(10, 9), (11, 3000)])

    def test_empty(self) -> None:
        """An empty queue begins with a record, unless an entry leads to one before
        it."""
        self.queue.set_offsets(10, 10)
        self.queue.max_position = 0
        for position, size in ((2999, 2), (3001, 200)):
            self.write(10, position, size)
            self.assertEqual(self.decide(11, 3000), [(11, 3000)])
        self.write(10, 2800)
        self.assertEqual(self.decide(11, 3000), [(10, 2800), (11, 3000)])

    def test_noEntryBefore(self) -> None:
        """Where not even the one before has an entry, the place is kept by one that
        RocketMQ writes before the first of a queue."""
        self.queue.files.write(9 * SIZE, bytes(SIZE))
        found = RecordHead(3000, 200, b"T", 0, 11, 0, 0, b"")
        gap = self.sequence.decide(self.queue, found, 10)
        self.assertEqual(list(gap), [(10, FILLED), (11, found)])

    def test_gaps(self) -> None:
        """Entries that were never there may be of records before the scan, if it has
        not met one of that queue yet."""
        self.decide(11, 3000)
        self.assertEqual(self.sequence.gaps, 0)
        self.queue.max_position = 1000
        self.decide(11, 3000)
        self.assertEqual(self.sequence.gaps, 1)
        self.queue.files.write(10 * SIZE, FILLED)
        self.decide(11, 3000)
        self.assertEqual(self.sequence.gaps, 2)
        self.write(10, 1500)
        self.decide(11, 3000)
        self.assertEqual(self.sequence.gaps, 2)

    def test_extension(self) -> None:
        """The units of a topic that was there before are not those of the new one."""
        store = opened(enable_consume_queue_ext=True)
        queue = store._table.get("T", 0)
        dispatcher = store._dispatcher
        for offset in (0, 1, 0):
            found = RecordHead(0, 200, b"T", 0, offset, 0, 0, b"TAGS\x01A\x02")
            dispatcher.place(queue, offset, found)
        dispatcher.place(queue, 1, ENTRY.pack(0, 200, 7))
        dispatcher.enter()
        self.assertEqual(ENTRY.unpack(queue.read(1, 1))[2], 7)


class UnitsTests(SynchronousTestCase):
    """A store with a batch queue of ten units, each of one message, that is killed."""

    def check(
        self,
        *damage: tuple[int, int, bytes],
        batches: str = "",
        without: set[int],
        noted: int = 1,
    ) -> None:
        """Start after damage to records; all messages but some are there.

        @param damage: the number of a record, where in it, and what.
        @param batches: which of them are inner batches; the others are alone.
        @param noted: how many are reported.
        """
        disk, wall = MemoryDisk(), Wall()
        store = with_batches(disk, wall)
        queue = store.queue("B", 0)
        drafts = []
        for number in range(10):
            body = b"%d" % number
            is_batch = str(number) in batches
            drafts.append(batch(queue, body) if is_batch else draft(queue, body))
        store.append(drafts)
        while store.dispatch(100):
            pass
        disk.crash(keep_all=True)
        for number, at, content in damage:
            at += drafts[number].position if at >= 0 else drafts[number].end
            disk.open(log_file()).pwrite(content, at)
        store = with_batches(disk, wall)
        self.assertEqual(
            dict(unwrapped(store, store.queue("B", 0))),
            {n: b"%d" % n for n in range(10) if n not in without},
        )
        self.assertEqual(store.corrupt_records, noted)

    def test_begin(self) -> None:
        """A batch queue, too, may begin with any offset; its records before may stand
        before the scan."""
        queue = with_batches()._table.get("B", 0)
        sequence = OffsetSequence(CorruptionLog(), 0, 0)
        found = RecordHead(0, 200, b"B", 0, 500, 0, 0, b"")
        self.assertTrue(sequence.takes_unit(queue, found, 500, 0))
        self.assertEqual(sequence.gaps, 1)

    def test_smaller(self) -> None:
        """One that says a smaller number takes no other with it, wherever it stands."""
        for number in (3, 9):
            self.check((number, 27, b"\x01"), without={number})
            # The end of a batch's properties: its first offset.
            self.check((number, -2, b"1"), batches="39", without={number})

    def test_greater(self) -> None:
        """Nor does one that says a greater number."""
        for number in (3, 8):
            self.check((number, 27, b"\x7f"), without={number})

    def test_count(self) -> None:
        """Nor a batch that says more messages than it has."""
        found = b"INNER_NUM\x019\x02INNER_BASE\x01%d\x02"
        for number in (3, 8):
            content = found % number
            damage = number, -len(content), content
            self.check(damage, batches=str(number), without={number}, noted=0)

    def test_newTopic(self) -> None:
        """Those of a topic that was made again are believed, though the first of them
        is lost: they go on."""
        disk, wall = MemoryDisk(), Wall()
        store = with_batches(disk, wall)
        queue = store.queue("B", 0)
        put(store, queue, *[b"old"] * 5)
        store.delete_topic("B")
        (first, *_) = put(store, queue, *[b"new"] * 3)
        disk.crash(keep_all=True)
        disk.open(log_file()).pwrite(b"!", first.position + 88)
        store = with_batches(disk, wall)
        found = unwrapped(store, store.queue("B", 0))
        self.assertEqual(found[-2:], [(1, b"new"), (2, b"new")])
        self.assertEqual(store.queue("B", 0).next_offset, 3)
