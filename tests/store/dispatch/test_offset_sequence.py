"""Records that say another place in their queue, and corrupt ones between others."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.record_head import RecordHead
from rocketbroker.store.corruption_log import CorruptionLog
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
        """The place of a queue's last message is kept if others follow in the log."""
        self.change(0, 9, 88, b"?")
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
        segments = self.store._segments
        sequence = OffsetSequence(segments, CorruptionLog())
        found = RecordHead(heads[5], 200, b"T", 0, 5, 0, 0, b"")
        queue = self.store._table.all()[0]
        queue.bound(0, 0, cut=False)
        self.assertEqual(sequence.decide(queue, found, 0), [(5, found)])
        sequence.lost_bytes = 10_000
        *gap, last = sequence.decide(queue, found, 0)
        self.assertEqual(
            [entry for _, entry in gap],
            [entries[at : at + SIZE] for at in range(0, 100, SIZE)],
        )
        self.assertEqual(([at for at, _ in gap], last), ([0, 1, 2, 3, 4], (5, found)))

    def test_offset(self) -> None:
        """A record that says another number is passed over, with its entry and
        without; no other is hidden by it."""
        for forget in (False, True):
            for at in (4, 9):
                for offset in (1, 5, 6, 300, 1 << 40):
                    if offset == at:
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

    def test_zeroAtTheEnd(self) -> None:
        """The last message of a queue that says it is the first is not believed if its
        entry stands elsewhere."""
        self.change(0, 9, 20, bytes(8))
        self.again()
        self.check(0, {9})

    def test_entries(self) -> None:
        """An entry of another record that is whole stays only if that one says its
        place."""
        path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
        file = self.disk.open(path)
        file.pwrite(file.pread(SIZE, 3 * SIZE), 4 * SIZE)
        self.again()
        self.check(0, set())
        self.assertEqual(self.store.corrupt_records, 0)


class UnitsTests(SynchronousTestCase):
    """A store with a batch queue of ten units, each of one message, that is killed."""

    def check(
        self, *damage: tuple[int, int, bytes], batches: str = "", without: set[int]
    ) -> None:
        """Start after damage to records; all messages but some are there.

        @param damage: the number of a record, where in it, and what.
        @param batches: which of them are inner batches; the others are alone.
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
            self.check(damage, batches=str(number), without={number})

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
