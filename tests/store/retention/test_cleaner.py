"""Removing what is old."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import SIZE
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reads import FOUND, OFFSET_TOO_SMALL
from rocketbroker.store.retention.cleaner import MANUAL_ROUNDS, local_hour
from rocketbroker.testing.files import MemoryDisk
from tests.store.cleanings import (
    HALF,
    HOUR_MS,
    LOG,
    MINUTE_MS,
    NEVER,
    NOW,
    CleaningCase,
)
from tests.store.stores import (
    QUEUE_ENTRIES,
    ROOT,
    SEGMENT,
    START_MS,
    bodies,
    draft,
    make,
    opened,
    put,
)


class AgeTests(CleaningCase):
    """Segments that have expired."""

    def test_hour(self) -> None:
        """Those whose last change is fileReservedTime ago go during the hours of
        deleteWhen, but never the last one."""
        self.begin(delete_when=NOW, file_reserved_time=72)
        self.wall.now_ms += 72 * HOUR_MS - 2 * MINUTE_MS
        self.assertEqual(self.round(), [])
        self.assertEqual(self.segments(), [0, SEGMENT, 2 * SEGMENT])
        self.wall.now_ms += 2 * MINUTE_MS
        self.round()
        self.assertEqual(self.segments(), [2 * SEGMENT])
        self.assertEqual(self.numbers(), [4, 5])
        self.assertEqual(self.store.min_position, 2 * SEGMENT)
        self.assertEqual(self.store.cleaner.removed_segments, 2)
        self.assertEqual(self.round(), [])

    def test_pullKeepsWhatItHasFoundOfSegmentThatIsRemoved(self) -> None:
        """A thread removes a segment while a pull with a filter reads it: each message
        that counts is there, or the client would wait for the rest of the answer."""
        self.begin(delete_when=NOW, file_reserved_time=72)
        self.wall.now_ms += 72 * HOUR_MS
        queue = self.store.queue("T", 0)

        looked_at = []

        def takes(code: int) -> bool:
            looked_at.append(code)
            if len(looked_at) == 2:
                self.round()
            return True

        result = self.store.read(queue, 0, 32, 1 << 20, takes)
        self.assertEqual(self.segments(), [2 * SEGMENT])
        self.assertEqual((result.status, result.count), (FOUND, 4))
        self.assertEqual(sum(map(len, result.records)), result.size)

    def test_pullOfQueueFileThatIsRemoved(self) -> None:
        """A thread removes a queue's first file while a pull passes over its entries:
        the pull was at an offset that is too small, as each later one."""
        two = 2 * SIZE
        self.begin(
            delete_when=NOW, file_reserved_time=72, mapped_file_size_consume_queue=two
        )
        self.wall.now_ms += 72 * HOUR_MS
        queue = self.store.queue("T", 0)

        def passes_over(code: int) -> bool:
            self.round()
            return False

        result = self.store.read(queue, 0, 1, 1 << 20, passes_over)
        self.assertEqual(result.status, OFFSET_TOO_SMALL)
        self.assertEqual((result.next_offset, result.min_offset), (4, 4))

    def test_otherHour(self) -> None:
        """During other hours nothing goes, unless the disk is rather full."""
        self.begin(delete_when=NEVER, file_reserved_time=1)
        self.wall.now_ms += 24 * HOUR_MS
        self.round()
        self.assertEqual(len(self.segments()), 3)
        self.disk.capacity = self.disk.used() * 100 // 80
        self.round()
        self.assertEqual(len(self.segments()), 1)

    def test_manual(self) -> None:
        """An operator's call is good for some rounds at any hour."""
        self.begin(messages=2, file_reserved_time=1)
        self.store.cleaner.expire_now()
        for _ in range(MANUAL_ROUNDS):
            self.put(2)
            self.wall.now_ms += 2 * HOUR_MS
            self.round()
            self.assertEqual(len(self.segments()), 1)
        self.put(2)
        self.wall.now_ms += 2 * HOUR_MS
        self.round()
        self.assertEqual(len(self.segments()), 2)

    def test_steps(self) -> None:
        """A round removes deleteFileBatchMax files, one a step, with pauses."""
        self.begin(
            messages=12,
            delete_when=NOW,
            file_reserved_time=0,
            delete_file_batch_max=3,
            delete_commit_log_files_interval=70,
        )
        steps = self.store.clean()
        for left in (5, 4):
            self.assertEqual(next(steps), 70)
            self.assertEqual(len(self.segments()), left)
        self.assertEqual(list(steps), [])
        self.assertEqual(len(self.segments()), 3)

    def test_order(self) -> None:
        """A segment that has not expired keeps those behind it."""
        self.begin(file_reserved_time=1)
        self.wall.now_ms += 2 * HOUR_MS
        self.touch([segment_name(SEGMENT)])
        self.store.cleaner.expire_now()
        self.round()
        self.assertEqual(self.segments(), [SEGMENT, 2 * SEGMENT])

    def test_lasting(self) -> None:
        """What is removed does not come back with a power failure, between others that
        do not."""
        self.begin(delete_when=NOW, file_reserved_time=0)
        self.assertEqual(len(self.segments()), 3)
        self.disk.sync_dir(LOG)
        self.round()
        self.assertEqual(self.disk.image().list(LOG), [segment_name(2 * SEGMENT)])

    def test_alreadyGone(self) -> None:
        """A file that somebody else has removed is taken for removed."""
        self.begin(delete_when=NOW, file_reserved_time=1)
        self.disk.remove(f"{LOG}/{segment_name(0)}")
        self.round()
        self.assertEqual(self.store.min_position, SEGMENT)
        self.assertEqual(self.numbers(), [2, 3, 4, 5])

    def test_needed(self) -> None:
        """What is not flushed, not dispatched or not in the index stays."""
        self.begin(messages=0, delete_when=NOW, file_reserved_time=0)
        for _ in range(6):
            put(self.store, self.queue, b"x" * HALF)
        self.round()
        self.assertEqual(len(self.segments()), 3, "not flushed")
        self.store.flush()
        self.round()
        self.assertEqual(len(self.segments()), 3, "not in the index")
        self.store.build_index(1000)
        self.round()
        self.assertEqual(len(self.segments()), 1)

    def test_flushed(self) -> None:
        """A segment whose last bytes alone are not on the disk stays, whatever has
        become of the queues and the index."""
        self.begin(messages=0, delete_when=NOW, file_reserved_time=0)
        put(self.store, self.queue, b"x" * HALF)
        left = SEGMENT - self.store.published_position
        put(self.store, self.queue, b"x" * (left - 300))
        self.store.flush()
        put(self.store, self.queue, b"x" * HALF)
        self.store.build_index(1000)
        self.round()
        self.assertEqual(len(self.segments()), 2)
        self.store.flush()
        self.round()
        self.assertEqual(len(self.segments()), 1)

    def test_notDispatched(self) -> None:
        """What no queue has yet is never removed, not even by force."""
        self.begin(messages=0, clean_file_forcibly_enable=True)
        self.store.append([draft(self.queue, b"x" * HALF) for _ in range(6)])
        self.store.flush()
        self.disk.capacity = self.disk.used()
        self.round()
        self.assertEqual(len(self.segments()), 3)
        self.disk.capacity = None
        self.store.dispatch(100)
        self.disk.capacity = self.disk.used()
        self.round()
        self.assertEqual(len(self.segments()), 2)


class ForceTests(CleaningCase):
    """A disk that is so full that the oldest segments go before their time."""

    def begin(self, messages: int = 8, **changes: object) -> None:
        """A store of four segments; the index takes nothing."""
        super().begin(messages, message_index_enable=False, **changes)

    def test_asMuchAsNeeded(self) -> None:
        """Only as many go as bring the disk below the level."""
        self.begin()
        self.disk.capacity = self.disk.used() * 100 // 90
        self.round()
        self.assertEqual(len(self.segments()), 3)
        self.round()
        self.assertEqual(len(self.segments()), 3)

    def test_switchedOff(self) -> None:
        """Without cleanFileForciblyEnable nothing goes before it has expired."""
        self.begin(clean_file_forcibly_enable=False, file_reserved_time=1)
        self.disk.capacity = self.disk.used()
        self.round()
        self.assertEqual(len(self.segments()), 4)
        self.wall.now_ms += 2 * HOUR_MS
        self.round()
        self.assertEqual(len(self.segments()), 1)

    def test_resumes(self) -> None:
        """A store that was full takes messages again once it has been cleaned."""
        self.begin()
        self.disk.capacity = self.disk.used() * 100 // 95
        self.store.measure_disk()
        self.assertIn("the disk is full", self.store.refusal() or "")
        self.round()
        self.assertIsNone(self.store.refusal())
        put(self.store, self.queue, b"009")
        self.assertEqual(self.numbers()[-1], 9)

    def test_indexDoesNotWait(self) -> None:
        """The index does not hold up a removal by force, and goes on behind it."""
        CleaningCase.begin(self, messages=0)
        for _ in range(8):
            put(self.store, self.queue, b"x" * HALF)
        self.store.flush()
        self.disk.capacity = self.disk.used()
        self.round()
        self.assertEqual(len(self.segments()), 3)
        self.disk.capacity = None
        while self.store.build_index(1000):
            pass
        found = self.store.find_by_key("T", "0" * 32, 64, 0, 1 << 62)
        self.assertEqual(len(found.records), 6)
        self.assertEqual(self.store._index.entered, 6, "not those that are gone")


class HangingTests(CleaningCase):
    """Files that the system does not let go."""

    def begin(self, messages: int = 6, **changes: object) -> None:
        """A store whose segments may all go but the last."""
        super().begin(messages, delete_when=NOW, file_reserved_time=0, **changes)

    def test_retry(self) -> None:
        """Such a file stays readable, keeps those behind it, is reported, and is tried
        again after redeleteHangedFileInterval."""
        self.begin(redelete_hanged_file_interval=5000)
        self.disk.fail("remove", errno.EPERM)
        self.round()
        self.assertEqual(len(self.segments()), 3)
        self.assertEqual(self.numbers(), list(range(6)))
        cleaner = self.store.cleaner
        self.assertEqual(
            cleaner.hanging,
            f"{LOG}/{segment_name(0)} cannot be removed: Operation not permitted",
        )
        self.assertEqual(cleaner.failures, 1)
        self.wall.now_ms += 4999
        self.round()
        self.assertEqual(len(self.segments()), 3)
        self.wall.now_ms += 1
        self.round()
        self.assertEqual(len(self.segments()), 1)
        self.assertEqual(cleaner.hanging, "")

    def test_clockSetBack(self) -> None:
        """A clock that is set back does not put it off."""
        self.begin()
        self.disk.fail("remove", errno.EPERM)
        self.round()
        self.wall.now_ms -= HOUR_MS
        self.touch(self.disk.list(LOG))
        self.store.cleaner.expire_now()
        self.round()
        self.assertEqual(len(self.segments()), 1)

    def test_noTime(self) -> None:
        """A file whose age cannot be asked has not expired."""
        self.begin()
        self.store.cleaner.expire_now()
        names = self.disk.list(LOG)
        self.disk.heal()
        self.wall.now_ms = START_MS - HOUR_MS
        self.round()
        self.assertEqual(self.disk.list(LOG), names)

    def test_queueFile(self) -> None:
        """A file of a queue that cannot be removed is out of the queue; the next start
        removes it."""
        self.begin(messages=0)
        for _ in range(QUEUE_ENTRIES + 30):
            put(self.store, self.queue, b"x" * 2000)
        self.settle()
        folder = f"{ROOT}/consumequeue/T/0"
        self.disk.fail("remove", errno.EPERM, after=4)
        self.round()
        self.assertEqual(len(self.segments()), 1)
        self.assertEqual(len(self.disk.list(folder)), 2)
        self.assertEqual(self.store.cleaner.failures, 1)
        first = self.queue.min_offset
        self.store.close()
        self.store = opened(self.disk, self.wall, max_index_num=20, max_hash_slot_num=9)
        self.round()
        self.assertEqual(len(self.disk.list(folder)), 1)
        self.assertEqual(self.store.queue("T", 0).min_offset, first)


class FollowTests(CleaningCase):
    """Queues and index after the log."""

    def test_queues(self) -> None:
        """All queues begin where the log does: those that are still written, those
        whose messages are all gone, those that have none."""
        self.begin(messages=0, delete_when=NOW, file_reserved_time=0)
        gone, never = self.store.queue("U", 0), self.store.queue("V", 0)
        self.put(2, gone)
        self.put(4)
        self.round()
        self.assertEqual(self.segments(), [2 * SEGMENT])
        self.assertEqual((self.queue.min_offset, self.queue.max_offset), (2, 4))
        self.assertEqual((gone.min_offset, gone.max_offset), (2, 2))
        self.assertEqual((never.min_offset, never.max_offset), (0, 0))
        for queue, first in ((self.queue, 2), (gone, 2)):
            result = self.store.read(queue, 0, 32, 1 << 20, None)
            self.assertEqual(
                (result.status, result.next_offset), (OFFSET_TOO_SMALL, first)
            )
        put(self.store, gone, b"goes on")
        self.assertEqual(bodies(self.store, gone), [b"goes on"])
        self.assertEqual(gone.max_offset, 3)

    def test_queueFiles(self) -> None:
        """Files of queues go when all their records are gone, the last one stays."""
        self.begin(
            messages=0,
            delete_when=NOW,
            file_reserved_time=0,
            delete_consume_queue_files_interval=30,
            message_index_enable=False,
        )
        for _ in range(2 * QUEUE_ENTRIES + 60):
            put(self.store, self.queue, b"x" * 1000)
        self.settle()
        folder = f"{ROOT}/consumequeue/T/0"
        self.assertEqual(len(self.disk.list(folder)), 3)
        self.assertEqual(self.round().count(30), 1)
        self.assertEqual(len(self.disk.list(folder)), 1)
        self.assertEqual(self.store.cleaner.removed_files, 2)
        self.put(1, self.store.queue("U", 0))
        self.put(3, self.store.queue("U", 0))
        self.round()
        self.assertEqual(len(self.disk.list(folder)), 1)
        self.assertEqual(self.queue.min_offset, self.queue.max_offset)

    def test_index(self) -> None:
        """Files of the index go when all they know is gone, the last one stays."""
        self.begin(messages=0, delete_when=NOW, file_reserved_time=0)
        for _ in range(50):
            put(self.store, self.queue, b"x" * 10_000)
        self.settle()
        before = self.disk.list(f"{ROOT}/index")
        self.assertGreater(len(before), 2)
        self.round()
        self.assertEqual(self.disk.list(f"{ROOT}/index"), before[-1:])

    def test_indexBound(self) -> None:
        """Of a file of the index one message in the log is enough for it to stay."""
        self.begin(
            messages=22,
            delete_when=NOW,
            file_reserved_time=0,
            delete_file_batch_max=9,
        )
        before = self.disk.list(f"{ROOT}/index")
        self.assertEqual(len(before), 2, "of 19 messages and of 3")
        self.round()
        self.assertEqual(self.store.min_position, 9 * SEGMENT)
        self.assertEqual(self.disk.list(f"{ROOT}/index"), before)
        found = self.store.find_by_key("T", "0" * 32, 64, 0, 1 << 62)
        self.assertEqual(len(found.records), 4)

    def test_firstRound(self) -> None:
        """The first round of a start looks through the queues unless the log begins at
        0, as a crash may have come between log and queues."""
        self.begin(messages=0, delete_when=NOW, file_reserved_time=0)
        for _ in range(QUEUE_ENTRIES + 30):
            put(self.store, self.queue, b"x" * 2000)
        self.settle()
        for _ in zip(range(4), self.store.clean(), strict=False):
            pass
        self.assertEqual(len(self.segments()), 1)
        self.disk.crash(keep_all=True)
        self.store = opened(self.disk, self.wall, delete_when=NEVER)
        folder = f"{ROOT}/consumequeue/T/0"
        self.assertEqual(len(self.disk.list(folder)), 2)
        self.round()
        self.assertEqual(len(self.disk.list(folder)), 1)
        self.assertEqual(self.store.queue("T", 0).min_offset, 120)

    def test_readers(self) -> None:
        """Who reads a segment reads on when it goes; who comes later gets what follows,
        and when the queue begins there hears that the offset is too small."""
        self.begin(delete_when=NOW, file_reserved_time=0)
        reader = self.disk.open_readonly(f"{LOG}/{segment_name(0)}")
        before = reader.pread(SEGMENT, 0)
        next(self.store.clean())
        self.assertEqual(reader.pread(SEGMENT, 0), before)
        self.assertNotIn(segment_name(0), self.disk.list(LOG))
        result = self.store.read(self.queue, 0, 1, 1 << 20, None)
        self.assertEqual((result.status, result.next_offset), (FOUND, 3))
        self.round()
        result = self.store.read(self.queue, 0, 1, 1 << 20, None)
        self.assertEqual(result.status, OFFSET_TOO_SMALL)

    def test_afterCrash(self) -> None:
        """After a crash at any time of a round the store starts, and what is left of
        the log is served."""
        for steps in range(4):
            self.disk = MemoryDisk()
            self.begin(delete_when=NOW, file_reserved_time=0, messages=8)
            for _ in zip(range(steps), self.store.clean(), strict=False):
                pass
            self.disk.crash()
            store = opened(self.disk, self.wall)
            queue = store.queue("T", 0)
            found = [int(body[:3]) for body in bodies(store, queue)]
            self.assertEqual(found, list(range(8))[-len(found) :])
            self.assertGreaterEqual(len(found), 2)
            put(store, queue, b"more")
            self.assertEqual(queue.max_offset, 9)
            store.close()
            self.store = make(self.disk)

    def test_closed(self) -> None:
        """A store that is closed is not cleaned."""
        self.begin(messages=0)
        self.store.close()
        self.assertEqual(self.round(), [])


class HourTests(SynchronousTestCase):
    """The local clock."""

    def test_local(self) -> None:
        """An hour later is the next hour."""
        hour = local_hour(START_MS)
        self.assertIn(hour, range(24))
        self.assertEqual(local_hour(START_MS + HOUR_MS), (hour + 1) % 24)
