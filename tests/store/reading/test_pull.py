"""What a pull finds."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY, FILLED
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.record import decode_all
from rocketbroker.records.tag_codes import TagCodes
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.store.reads import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_FOUND_NULL,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
    ReadResult,
)
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    STORE_HOST,
    Wall,
    draft,
    opened,
    options,
    put,
)

MANY = 1 << 30


class ReadTests(SynchronousTestCase):
    """Statuses, limits, filters."""

    def setUp(self) -> None:
        """A store with two queues."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queue = self.store.queue("T", 0)
        self.other = self.store.queue("T", 1)

    def read(
        self, offset: int, messages: int = 32, size: int = MANY, tag: int = -1
    ) -> ReadResult:
        """Read from the queue; only one tag code if that is given."""
        matches = None if tag < 0 else tag.__eq__
        return self.store.read(self.queue, offset, messages, size, matches)

    def overwrite(self, offset: int, entry: bytes, queue_id: int = 0) -> None:
        """Change an entry on the disk."""
        path = f"{ROOT}/consumequeue/T/{queue_id}/{segment_name(0)}"
        self.disk.open(path).pwrite(entry, offset * 20)

    def test_outside(self) -> None:
        """Outside of the queue each case has its status and its next offset."""
        result = self.read(5)
        self.assertEqual((result.status, result.next_offset), (NO_MESSAGE_IN_QUEUE, 0))
        put(self.store, self.queue, *[b"x"] * 5)
        for offset, status, following in (
            (-1, OFFSET_TOO_SMALL, 0),
            (5, OFFSET_OVERFLOW_ONE, 5),
            (6, OFFSET_OVERFLOW_BADLY, 5),
            (10_000, OFFSET_OVERFLOW_BADLY, 5),
        ):
            result = self.read(offset)
            self.assertEqual((result.status, result.next_offset), (status, following))
            self.assertEqual((result.min_offset, result.max_offset), (0, 5))
            self.assertEqual((result.count, result.size, result.records), (0, 0, []))

    def test_contiguous(self) -> None:
        """Records behind each other come as one piece."""
        put(self.store, self.queue, *[b"%d" % number for number in range(10)])
        result = self.read(2, 5)
        self.assertEqual(result.status, FOUND)
        self.assertEqual((result.count, result.next_offset), (5, 7))
        self.assertEqual(len(result.records), 1)
        self.assertEqual(len(result.records[0]), result.size)

    def test_scattered(self) -> None:
        """Records with others between them come without those, in order."""
        for number in range(10):
            put(self.store, self.queue, b"mine%d" % number)
            put(self.store, self.other, b"other")
        result = self.read(0)
        self.assertEqual(result.count, 10)
        joined = b"".join(result.records)
        self.assertEqual(len(joined), result.size)
        self.assertEqual(
            [found.body for found in decode_all(joined)],
            [b"mine%d" % number for number in range(10)],
        )

    def test_extents(self) -> None:
        """However records are grouped, and in whichever segment, each comes once."""
        wanted = []
        for round_number in range(300):
            for number in range(round_number % 7):
                wanted.append(b"%d.%d" % (round_number, number))
                put(self.store, self.queue, wanted[-1])
            put(self.store, self.other, b"other" * (round_number % 3))
        self.assertGreater(self.store.published_position, 2 * SEGMENT)
        for most in (1, 5, 32):
            got: list[bytes] = []
            while len(got) < len(wanted):
                result = self.read(len(got), most)
                joined = b"".join(result.records)
                self.assertEqual(len(joined), result.size)
                bodies = [found.body for found in decode_all(joined)]
                self.assertEqual(len(bodies), result.count)
                got += bodies
            self.assertEqual(got, wanted)

    def test_warm(self) -> None:
        """The short way finds what the long one does, or leaves it to that."""
        for number in range(40):
            put(self.store, self.queue, b"%d" % number)
            put(self.store, self.other, b"other" * (number % 3))
        for offset, most, size in ((0, 32, MANY), (39, 32, MANY), (5, 1, MANY)):
            warm = self.store.read_warm(self.queue, offset, most, size)
            assert warm is not None
            long = self.store.read(self.queue, offset, most, size, None)
            first, second = (
                (
                    *(result.status, result.next_offset, result.min_offset),
                    *(result.max_offset, result.count, result.size),
                    b"".join(result.records),
                )
                for result in (warm, long)
            )
            self.assertEqual(first, second)
            # Only the short way gives views; its callers send them in the same turn.
            self.assertEqual({type(each) for each in long.records}, {bytes})
        for offset, most, size in (
            (-1, 32, MANY),
            (40, 32, MANY),
            (0, 0, MANY),
            (0, 32, 200),
        ):
            found = self.store.read_warm(self.queue, offset, most, size)
            self.assertIsNone(found, (offset, most, size))
        self.store.close()
        self.assertIsNone(self.store.read_warm(self.queue, 0, 32, MANY))

    def test_notPublished(self) -> None:
        """Records that entries place at or beyond the published position do not exist,
        whether they stand in one extent or in several."""
        put(self.store, self.queue, *[b"x" * 100] * 4)
        size = self.read(0, 1).size
        end = self.store.published_position
        for first in (end - size, end, end + size):
            for gap in (0, 10):
                for number in range(4):
                    position = first + number * (size + gap)
                    self.overwrite(number, ENTRY.pack(position, size, 0))
                warm = self.store.read_warm(self.queue, 0, 32, MANY)
                self.assertIsNone(warm, (first, gap))
                result = self.read(0)
                self.assertLessEqual(result.count, int(first < end))
                self.assertEqual(len(b"".join(result.records)), result.count * size)

    def test_sizesBelowZero(self) -> None:
        """Entries whose sizes cancel each other out are not believed."""
        put(self.store, self.queue, *[b"x" * 100] * 4)
        size = self.read(0, 1).size
        for number, wrong in ((1, -size), (2, 2 * size)):
            entry = ENTRY.pack(number * size, wrong, 0)
            self.overwrite(number, entry)
        result = self.read(0)
        for found in decode_all(b"".join(result.records)):
            self.assertEqual(found.body, b"x" * 100)

    def test_overSegments(self) -> None:
        """A read goes over the end of a segment."""
        put(self.store, self.queue, *[b"%d" % number * 10_000 for number in range(10)])
        result = self.read(0)
        self.assertEqual((result.count, len(result.records)), (10, 2))
        self.assertEqual(sum(map(len, result.records)), result.size)

    def test_mostMessages(self) -> None:
        """A read gives as many as were asked for, at least one."""
        put(self.store, self.queue, *[b"x"] * 50)
        for asked, given in ((-5, 1), (0, 1), (1, 1), (31, 31), (32, 32)):
            self.assertEqual(self.read(0, asked).count, given)

    def test_capped(self) -> None:
        """No caller gets more than the options allow, whatever it asks for."""
        put(self.store, self.queue, *[b"x" * 1000] * 40)
        self.assertEqual(self.read(0, 33).count, 32)
        warm = self.store.read_warm(self.queue, 0, 1000, MANY)
        assert warm is not None
        self.assertEqual(warm.count, 32)
        put(self.store, self.other, *[b"x" * 20_000] * 40)
        self.assertEqual(self.store.read(self.other, 0, 1000, MANY, None).count, 13)

    def test_capsSet(self) -> None:
        """The options may allow more than their defaults do."""
        store = opened(
            max_transfer_count_on_message_in_memory=35,
            max_transfer_bytes_on_message_in_memory=1 << 20,
        )
        queue = store.queue("T", 0)
        put(store, queue, *[b"x" * 20_000] * 40)
        self.assertEqual(store.read(queue, 0, 1000, MANY, None).count, 35)

    def test_large(self) -> None:
        """Callers that ask for more than the caps get it where an option says so."""
        store = opened(
            rocketbroker_max_pull_messages=36, rocketbroker_max_pull_bytes=700_000
        )
        queue = store.queue("T", 0)
        put(store, queue, *[b"x" * 20_000] * 40)
        self.assertEqual(store.read(queue, 0, 32, MANY, None).count, 13)
        self.assertIsNone(store.read_warm(queue, 0, 33, MANY))
        self.assertEqual(store.read(queue, 0, 33, MANY, None).count, 33)
        self.assertEqual(store.read(queue, 0, 1000, MANY, None).count, 34)
        self.assertEqual(store.read(queue, 0, 1000, 201_000, None).count, 9)

    def test_mostBytes(self) -> None:
        """A read ends before the record that goes beyond the bytes; the first one is
        given whatever its size."""
        drafts = put(self.store, self.queue, *[b"x" * 900] * 5)
        size = drafts[0].end - drafts[0].position
        for asked, given in (
            (1, 1),
            (size, 1),
            (2 * size - 1, 1),
            (2 * size, 2),
            (MANY, 5),
        ):
            self.assertEqual(self.read(0, 32, asked).count, given, asked)

    def test_mostBytesInMemory(self) -> None:
        """Of up to 32 messages not more than 256 KiB are given."""
        put(self.store, self.queue, *[b"x" * 60_000] * 6)
        self.assertEqual(self.read(0).count, 4)

    def test_filter(self) -> None:
        """Only wanted messages are given; the others are passed."""
        drafts = [
            draft(self.queue, b"%d" % number, tag_code=number % 3)
            for number in range(60)
        ]
        self.store.append(drafts)
        self.store.dispatch(100)
        result = self.read(0, 5, tag=1)
        self.assertEqual(result.count, 5)
        self.assertEqual(
            b"".join(result.records)[88:90], b"1" + result.records[0][89:90]
        )
        self.assertEqual(result.next_offset, 14)
        result = self.read(0, 32, tag=7)
        self.assertEqual((result.status, result.next_offset), (NO_MATCHED_MESSAGE, 60))

    def test_scanLimit(self) -> None:
        """A read passes not more than the entries of 16000 bytes, or as many as were
        asked for."""
        store = opened(max_filter_message_size=200)
        queue = store.queue("T", 0)
        put(store, queue, *[b"x"] * 90)
        for asked, passed in ((5, 10), (10, 10), (30, 30)):
            result = store.read(queue, 3, asked, MANY, lambda code: False)
            self.assertEqual(result.next_offset, 3 + passed)

    def test_oneFile(self) -> None:
        """A read that has found something ends with the queue's file; one that has not
        goes on as the option says."""
        for travel in (1, 2):
            store = opened(travel_cq_file_num_when_get_message=travel)
            queue = store.queue("T", 0)
            for _ in range(3):
                put(store, queue, *[b"x"] * 90)
            self.assertEqual(
                store.read(queue, QUEUE_ENTRIES - 5, 32, MANY, None).next_offset,
                QUEUE_ENTRIES,
            )
            result = store.read(queue, QUEUE_ENTRIES - 5, 32, MANY, lambda code: False)
            self.assertEqual(result.next_offset, QUEUE_ENTRIES * travel)

    def test_missingFile(self) -> None:
        """Where a file of the queue is missing the reader is sent to the next one."""
        put(self.store, self.queue, *[b"x"] * 90)
        put(self.store, self.queue, *[b"x"] * 30)
        self.queue.files.all = self.queue.files.all[1:]
        result = self.read(5)
        self.assertEqual(
            (result.status, result.next_offset), (OFFSET_FOUND_NULL, QUEUE_ENTRIES)
        )

    def test_rubbish(self) -> None:
        """Entries that point nowhere are passed; those before and behind are given."""
        put(self.store, self.queue, *[b"%d" % number for number in range(10)])
        end = self.store.published_position
        wrong = (
            ENTRY.pack(-1, 100, 0),
            ENTRY.pack(end, 100, 0),
            ENTRY.pack(end - 10, 100, 0),
            ENTRY.pack(0, 0, 0),
            ENTRY.pack(0, -1, 0),
            ENTRY.pack(1 << 62, 1 << 30, 0),
            FILLED,
            bytes(20),
        )
        for entry in wrong:
            self.overwrite(4, entry)
            for asked in (32, 10, 9):
                result = self.read(0, asked)
                self.assertEqual(result.status, FOUND)
                # One that says to be huge ends the read; the next one passes it.
                huge = int.from_bytes(entry[8:12], "big", signed=True) >= 1 << 30
                self.assertEqual(result.count, 4 if huge else min(9, asked))
            result = self.read(4, 1)
            self.assertTrue(result.next_offset > 4)

    def test_removed(self) -> None:
        """When all that was looked at is gone, that is reported, and the reader goes
        on."""
        put(self.store, self.queue, *[b"x"] * 3)
        for offset in range(3):
            self.overwrite(offset, FILLED)
        result = self.read(0)
        self.assertEqual((result.status, result.next_offset), (MESSAGE_WAS_REMOVING, 3))

    def test_hugeFirst(self) -> None:
        """A first entry with a huge size is believed only if the record says so too."""
        put(self.store, self.queue, b"x" * 50_000, *[b"x"] * 3)
        self.assertEqual(self.read(0, 1, 100).count, 1)
        self.overwrite(0, ENTRY.pack(0, 50_020, 0))
        result = self.read(0, 1, 100)
        self.assertEqual((result.count, result.next_offset), (1, 2))
        self.assertTrue(result.size < 1000)


class ColdTests(SynchronousTestCase):
    """Messages further behind than the memory."""

    def setUp(self) -> None:
        """A store on a machine with 100 KB of memory, 40 % of which count."""
        self.disk = MemoryDisk()
        self.store = Store(
            self.disk, options(), Wall(), STORE_HOST, memory_bytes=100_000
        )
        self.store.open()
        self.queue = self.store.queue("T", 0)

    def test_cold(self) -> None:
        """What is too far behind the end is cold, and given in smaller parts, the same
        bytes."""
        put(self.store, self.queue, *[b"%02d" % number * 500 for number in range(60)])
        self.assertTrue(self.store.is_cold(self.queue, 0))
        self.assertFalse(self.store.is_cold(self.queue, 59))
        self.assertFalse(self.store.is_cold(self.queue, 60))
        result = self.store.read(self.queue, 0, 32, MANY, None)
        self.assertEqual((result.count, result.next_offset), (8, 8))
        preads = self.disk.calls["pread"]
        hot = self.store.read(self.queue, 50, 32, MANY, None)
        self.assertEqual(hot.count, 10)
        self.assertTrue(self.disk.calls["pread"] <= preads + 2)
        data = b"".join(result.records)
        self.assertEqual(len(data), result.size)
        for number in range(8):
            self.assertIn(b"%02d" % number * 500, data)

    def test_young(self) -> None:
        """A small log has nothing cold."""
        put(self.store, self.queue, b"x")
        self.assertFalse(self.store.is_cold(self.queue, 0))


class TagTests(SynchronousTestCase):
    """A search for tags finds what a look at each entry finds."""

    def read_all(
        self, store: Store, matches: Callable[[int], bool], messages: int, size: int
    ) -> list[tuple[str, int, bytes]]:
        """What all reads give, one after the other."""
        queue = store.queue("T", 0)
        at, found = queue.min_offset, []
        while at < queue.max_offset:
            result = store.read(queue, at, messages, size, matches)
            at = result.next_offset
            found.append((result.status, at, b"".join(result.records)))
        return found

    def test_same(self) -> None:
        """In each read, within all limits, of records that this process has written
        and of others; deleted ones and wrong entries are passed over as well."""
        source = Random(5)
        for _ in range(10):
            disk = MemoryDisk()
            store = opened(disk)
            queue = store.queue("T", 0)
            for _ in range(250):
                size = source.choice((10, 10, 10, 300, 3000))
                tag = source.choice("abbbbbbb")
                store.append([draft(queue, bytes(size), tags=tag)])
            while store.dispatch(1000):
                pass
            path = f"{ROOT}/consumequeue/T/0/{segment_name(0)}"
            for number in source.sample(range(100), 5):
                position, size = source.choice(((-5, 100), (0, 1 << 20), (7, -1)))
                entry = ENTRY.pack(position, size, tag_code(source.choice("ab")))
                disk.open(path).pwrite(entry, number * 20)
            for _ in range(2):
                for wanted in (["a"], ["b"], ["a", "b"], ["c"]):
                    codes = TagCodes(map(tag_code, wanted))
                    limits = source.choice((1, 3, 8, 32)), source.choice((100, 4000))
                    for size in (limits[1], MANY):
                        found = self.read_all(store, codes, limits[0], size)
                        each = self.read_all(store, codes.__call__, limits[0], size)
                        self.assertEqual(found, each)
                store.close()
                store = opened(disk)
            store.close()
