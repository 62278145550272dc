"""Walking behind the dispatch."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.records.hashing import tag_code
from rocketbroker.store.dispatched_record import ILogTail
from rocketbroker.store.log_tail import LogTail
from rocketbroker.testing.files import MemoryDisk
from tests.store.cleanings import HOUR_MS, NOW, CleaningCase
from tests.store.stores import SEGMENT, START_MS, draft, opened, put


class LogTailTests(SynchronousTestCase):
    """L{LogTail}."""

    def setUp(self) -> None:
        """A store with one queue, and who walks behind it from the beginning."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queue = self.store.queue("T", 3)
        self.trail = self.store.log_tail(0)

    def test_interface(self) -> None:
        """It provides what the store promises."""
        verifyObject(ILogTail, self.trail)
        self.assertIs(type(self.trail), LogTail)

    def test_order(self) -> None:
        """Records come in the order of the log, each once, with all that is known."""
        _, second = put(self.store, self.queue, b"a", b"b", tags="red")
        self.store.flush()
        records = self.trail.take(10)
        self.assertEqual([each.position for each in records], [0, second.position])
        record = records[1]
        self.assertEqual(record.end, second.end)
        self.assertEqual(record.size, second.end - second.position)
        self.assertEqual((record.topic, record.queue_id), ("T", 3))
        self.assertEqual(record.queue_offset, 1)
        self.assertEqual(record.sys_flag, 0)
        self.assertEqual(record.tag_code, tag_code("red"))
        self.assertEqual(record.store_ms, START_MS)
        self.assertEqual(record.properties["TAGS"], "red")
        self.assertEqual(self.trail.position, second.end)
        self.assertEqual(self.trail.take(10), [])
        put(self.store, self.queue, b"c")
        self.store.flush()
        self.assertEqual([each.queue_offset for each in self.trail.take(10)], [2])
        self.assertEqual(self.trail.lost_bytes, 0)

    def test_notDispatched(self) -> None:
        """What is in no queue yet is not shown."""
        self.store.append([draft(self.queue)])
        self.store.flush()
        self.assertEqual(self.trail.take(10), [])
        self.store.dispatch(10)
        self.assertEqual(len(self.trail.take(10)), 1)

    def test_notOnTheDisk(self) -> None:
        """What a crash could take back is not shown."""
        put(self.store, self.queue, b"a")
        self.assertEqual(self.trail.take(10), [])
        self.store.flush()
        self.assertEqual(len(self.trail.take(10)), 1)

    def test_few(self) -> None:
        """Not more than asked for come at once, and the rest after them."""
        put(self.store, self.queue, *[b"x" * 1000] * 100)
        self.store.flush()
        seen: list[int] = []
        while records := self.trail.take(7):
            self.assertLessEqual(len(records), 7)
            self.assertEqual(self.trail.position, records[-1].end)
            seen += [each.queue_offset for each in records]
        self.assertEqual(seen, list(range(100)))
        self.assertGreater(self.store.published_position, SEGMENT)

    def test_goesOn(self) -> None:
        """One that begins behind a record sees the next one first."""
        first, second = put(self.store, self.queue, b"a", b"b")
        self.store.flush()
        trail = self.store.log_tail(first.end)
        self.assertEqual([each.position for each in trail.take(9)], [second.position])

    def test_allRecords(self) -> None:
        """Half messages are seen too, and say what they are."""
        self.store.append([draft(self.queue, sys_flag=4), draft(self.queue)])
        self.store.dispatch(10)
        self.store.flush()
        self.assertEqual([each.sys_flag for each in self.trail.take(9)], [4, 0])

    def test_broken(self) -> None:
        """Behind a record that cannot be read it goes on as the dispatch does."""
        drafts = put(self.store, self.queue, *[b"x" * 1000] * 100)
        self.store.flush()
        path = "/store/commitlog/00000000000000000000"
        self.disk.open(path).pwrite(b"\xff" * 8, drafts[1].position)
        records = self.trail.take(1000)
        self.assertEqual([each.queue_offset for each in records], [0])
        self.assertEqual(self.trail.position, drafts[2].position)
        self.assertEqual(self.trail.lost_bytes, drafts[2].position - drafts[1].position)
        behind = [each.queue_offset for each in self.trail.take(1000)]
        self.assertEqual(behind, list(range(2, 100)))

    def test_nothingBehind(self) -> None:
        """Where no record follows in a segment, it goes on with the next one."""
        drafts = put(self.store, self.queue, *[b"x" * 1000] * 100)
        self.store.flush()
        path = "/store/commitlog/00000000000000000000"
        start = drafts[1].position
        self.disk.open(path).pwrite(b"\xff" * (SEGMENT - start), start)
        self.assertEqual(len(self.trail.take(1000)), 1)
        (next_one, *_) = self.trail.take(1000)
        self.assertEqual(next_one.position, SEGMENT)
        self.assertEqual(self.trail.lost_bytes, SEGMENT - start)

    def test_noRecord(self) -> None:
        """One that begins where no record does, or beyond all, comes to no harm."""
        _, second = put(self.store, self.queue, b"a", b"b")
        self.store.flush()
        end = self.store.published_position
        beyond = self.store.log_tail(end + 1000)
        self.assertEqual(beyond.take(9), [])
        self.assertEqual(beyond.position, end + 1000)
        within = self.store.log_tail(5)
        self.assertEqual(within.take(9), [])
        self.assertEqual(within.lost_bytes, second.position - 5)
        self.assertEqual([each.position for each in within.take(9)], [second.position])


class RemovedTests(CleaningCase):
    """Segments that go before all of it was seen."""

    def test_removed(self) -> None:
        """It goes on with the oldest that is left, and says how much it missed."""
        self.begin(delete_when=NOW, file_reserved_time=72)
        late, within, fast = (self.store.log_tail(0) for _ in range(3))
        within.take(1)
        fast.take(5)
        self.wall.now_ms += 72 * HOUR_MS
        self.round()
        lowest = self.store.min_position
        self.assertEqual(lowest, 2 * SEGMENT)
        for trail, missed in ((late, lowest), (within, lowest - within.position)):
            self.assertEqual([each.queue_offset for each in trail.take(9)], [4, 5])
            self.assertEqual(trail.lost_bytes, missed)
        self.assertEqual([each.queue_offset for each in fast.take(9)], [5])
        self.assertEqual(fast.lost_bytes, 0)
