"""Corrupt records are not handed out, and those beside them are."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import IQueue
from rocketbroker.store.message_store import Store
from rocketbroker.store.reads import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_MESSAGE,
    ReadResult,
)
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    STORE_HOST,
    Wall,
    bodies,
    draft,
    opened,
    options,
    put,
)

QUEUE_FILE = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"


class CheckedReadTests(SynchronousTestCase):
    """A store that was stopped, changed and opened again."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Six messages of two queues, stopped cleanly."""
        self.disk = MemoryDisk()
        store = opened(self.disk)
        put(store, store.queue("%LMQ%t", 0), b"light")
        self.drafts = put(store, store.queue("T", 0), b"zero", b"one", b"two", b"3")
        put(store, store.queue("T", 1), b"beside")
        store.close()
        self.log = self.disk.open(f"{ROOT}/commitlog/{segment_name(0)}")

    def again(self) -> tuple[Store, IQueue]:
        """The store and its first queue after the change."""
        store = opened(self.disk)
        return store, store.queue("T", 0)

    def flip(self, at: int, field: int, mask: int = 1) -> None:
        """Change a bit of a record."""
        position = self.drafts[at].position + field
        (byte,) = self.log.pread(1, position)
        self.log.pwrite(bytes([byte ^ mask]), position)

    def enter(self, at: int, entry: bytes) -> None:
        """Change an entry."""
        self.disk.open(QUEUE_FILE).pwrite(entry, at * SIZE)

    def read(
        self, store: Store, queue: IQueue, offset: int, tag: int | None = None
    ) -> ReadResult:
        """A read of all from an offset on."""
        matches = None if tag is None else tag.__eq__
        return store.read(queue, offset, 32, 1 << 20, matches)

    def test_sound(self) -> None:
        """What another process has written is handed out, and not on the short way;
        what this one has appended is on that way."""
        store, queue = self.again()
        self.assertIsNone(store.read_warm(queue, 0, 32, 1 << 20))
        self.assertEqual(bodies(store, queue), [b"zero", b"one", b"two", b"3"])
        put(store, queue, b"own")
        warm = store.read_warm(queue, 4, 32, 1 << 20)
        assert warm is not None
        self.assertEqual(warm.count, 1)
        self.assertEqual((store.corrupt_records, store.findings()), (0, []))

    def test_fields(self) -> None:
        """A bit in the size, magic number, CRC, queue, offset, position, body or topic:
        the record is passed over, its neighbours are not; it is counted and told of
        once."""
        for field in (3, 5, 9, 15, 22, 27, 30, 35, 88, 92):
            self.flip(1, field)
            store, queue = self.again()
            for _ in range(2):
                self.assertEqual(bodies(store, queue), [b"zero", b"two", b"3"], field)
            self.assertEqual(self.read(store, queue, 1).next_offset, 4)
            self.assertEqual(store.corrupt_records, 1)
            (message,) = store.findings()
            position = self.drafts[1].position
            self.assertIn(f"Message 1 of T/0, at position {position}", message)
            store.close()
            self.flip(1, field)

    def test_anyNumber(self) -> None:
        """Whatever number the first record of a queue says, and no queue is there to
        say another: the store starts, and takes the next message."""
        for number in (-1, -(1 << 63), 1 << 40, 1 << 62, (1 << 63) - 1):
            self.start_over()
            position = self.drafts[0].position + 20
            self.log.pwrite(number.to_bytes(8, "big", signed=True), position)
            self.disk.remove(QUEUE_FILE)
            self.disk.open(f"{ROOT}/abort", create=True)
            store, queue = self.again()
            (new,) = put(store, queue, b"new")
            self.assertIsNotNone(store.record_at(new.position))
            store.close()

    def test_onlyRotten(self) -> None:
        """A read that finds nothing else goes on behind it."""
        self.flip(3, 88)
        store, queue = self.again()
        result = self.read(store, queue, 3)
        self.assertEqual(
            (result.status, result.next_offset, result.records),
            (MESSAGE_WAS_REMOVING, 4, []),
        )

    def test_entries(self) -> None:
        """An entry that leads to another record, into one, before the log, behind it or
        to nothing is passed over."""
        first, second = self.drafts[:2]
        size = second.end - second.position
        for position, length in (
            (first.position, first.end - first.position),
            (second.position + 1, size),
            (second.position, size - 1),
            (second.position, -size),
            (second.position, 1 << 30),
            (1 << 60, size),
            (-1, size),
        ):
            self.enter(1, ENTRY.pack(position, length, 0))
            store, queue = self.again()
            self.assertEqual(bodies(store, queue), [b"zero", b"two", b"3"])
            store.close()

    def test_large(self) -> None:
        """Before much is read for an entry, the record is asked for its size."""
        store, queue = self.again()
        put(store, queue, b"x" * 60_000, b"y" * 60_000)
        store.close()
        self.enter(1, ENTRY.pack(self.drafts[1].position, 65_000, 0))
        store, queue = self.again()
        found = bodies(store, queue)
        self.assertEqual([len(body) for body in found], [4, 3, 1, 60_000, 60_000])

    def test_limits(self) -> None:
        """The limits of messages and bytes hold, and the first is always given."""
        store, queue = self.again()
        one = self.drafts[0].end - self.drafts[0].position
        self.assertEqual(store.read(queue, 0, 2, 1 << 20, None).count, 2)
        self.assertEqual(store.read(queue, 0, 32, 2 * one, None).count, 2)
        self.assertEqual(store.read(queue, 0, 32, 1, None).count, 1)
        self.assertEqual(store.read(queue, 0, 32, one, None).next_offset, 1)

    def test_filter(self) -> None:
        """What nobody wants is not looked at."""
        self.flip(0, 88)
        store, queue = self.again()
        result = self.read(store, queue, 0, tag=1)
        self.assertEqual((result.status, result.count), (NO_MATCHED_MESSAGE, 0))
        self.assertEqual(store.corrupt_records, 0)

    def test_shifted(self) -> None:
        """Entries that all stand before where their records say, as RocketMQ
        leaves them when a queue lags behind, are handed out."""
        file = self.disk.open(QUEUE_FILE)
        content = file.pread(4 * SIZE, 0)
        file.pwrite(content[SIZE:] + bytes(SIZE), 0)
        self.disk.remove(f"{ROOT}/rocketbroker.ends")
        store, queue = self.again()
        self.assertEqual(bodies(store, queue), [b"one", b"two", b"3"])
        self.assertEqual(store.corrupt_records, 0)

    def test_light(self) -> None:
        """A queue of the kind that has entries of others' records gives them out if the
        record says that it is in several."""
        file = self.disk.open(f"{ROOT}/consumequeue/%LMQ%t/0/{segment_name(0)}")
        first = self.drafts[0]
        file.pwrite(ENTRY.pack(first.position, first.end - first.position, 0), 0)
        store, _ = self.again()
        self.assertEqual(bodies(store, store.queue("%LMQ%t", 0)), [])
        several = b"INNER_MULTI_DISPATCH\x01%LMQ%t\x02"
        each = draft(store.queue("T", 0), b"shared", properties=several)
        store.append([each])
        put(store, store.queue("T", 1), b"last")
        store.close()
        file.pwrite(ENTRY.pack(each.position, each.end - each.position, 0), 0)
        store, _ = self.again()
        self.assertEqual(bodies(store, store.queue("%LMQ%t", 0)), [b"shared"])

    def test_cold(self) -> None:
        """What may come back from the disk is checked even if this process wrote it."""
        store = Store(self.disk, options(), Wall(), STORE_HOST, memory_bytes=0)
        store.open()
        queue: IQueue = store.queue("T", 0)
        own = put(store, queue, b"own", b"last")[0]
        self.log.pwrite(b"O", own.position + 88)
        self.assertTrue(store.is_cold(queue, 4))
        result = self.read(store, queue, 4)
        self.assertEqual((result.count, result.next_offset), (1, 6))
        self.assertEqual(store.corrupt_records, 1)

    def test_deleted(self) -> None:
        """After its topic was deleted, a queue is believed again from its start."""
        store, queue = self.again()
        store.delete_topic("T")
        put(store, queue, b"new")
        warm = store.read_warm(queue, 0, 32, 1 << 20)
        assert warm is not None
        self.assertEqual((warm.status, warm.count), (FOUND, 1))
