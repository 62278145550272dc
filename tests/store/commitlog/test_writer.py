"""Appending and flushing."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.write_backoff import RETRY_MS
from rocketbroker.store.commitlog.writer import BESIDE_BODY
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import (
    CREATE_MAPPED_FILE_FAILED,
    MESSAGE_ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    SERVICE_NOT_AVAILABLE,
    Draft,
)
from rocketbroker.store.running_flags import (
    DISK_FULL,
    FENCED,
    NOT_READABLE,
    NOT_WRITEABLE,
)
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    BORN_HOST,
    BORN_HOST_V6,
    ROOT,
    SEGMENT,
    START_MS,
    Wall,
    bodies,
    draft,
    opened,
    put,
)

Part = tuple[int, bytes, bytes, int]


def batch(draft_of: Draft, *parts: Part) -> Draft:
    """The same as an outer batch."""
    draft_of.parts = list(parts)
    return draft_of


class AppendTests(SynchronousTestCase):
    """What becomes of drafts."""

    def setUp(self) -> None:
        """An open store with one queue."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        self.queue = self.store.queue("T", 0)

    def dispatch(self) -> None:
        """Everything into the queues."""
        while self.store.dispatch(1000):
            pass

    def test_places(self) -> None:
        """Drafts get consecutive places and queue offsets, and are there at once;
        those of one queue stand together."""
        other = self.store.queue("T", 1)
        drafts = [draft(self.queue, b"a"), draft(other, b"bb"), draft(self.queue, b"")]
        self.store.append(drafts)
        self.assertEqual([each.status for each in drafts], [PUT_OK] * 3)
        self.assertEqual([each.queue_offset for each in drafts], [0, 0, 1])
        self.assertEqual(drafts[0].position, 0)
        self.assertEqual(drafts[2].position, drafts[0].end)
        self.assertEqual(drafts[1].position, drafts[2].end)
        self.assertEqual(self.store.published_position, drafts[1].end)
        self.assertEqual(self.queue.next_offset, 2)
        self.assertEqual(self.queue.max_offset, 0)
        self.dispatch()
        self.assertEqual(bodies(self.store, self.queue), [b"a", b""])

    def test_storeTime(self) -> None:
        """All records of an append have the same store time."""
        drafts = [draft(self.queue), draft(self.queue)]
        self.wall.now_ms = START_MS + 77
        self.store.append(drafts)
        for each in drafts:
            record = self.store.record_at(each.position)
            assert record is not None
            self.assertEqual(int.from_bytes(record[56:64], "big"), START_MS + 77)

    def test_endOfSegment(self) -> None:
        """A record that leaves less than 8 bytes goes to the next segment, and a filler
        takes the rest."""
        overhead = len(draft(self.queue, b"").properties) + 92
        put(self.store, self.queue, b"a" * 1000)
        left = SEGMENT - self.store.published_position
        drafts = [draft(self.queue, b"b" * (left - 7 - overhead))]
        self.store.append(drafts)
        self.assertEqual(drafts[0].position, SEGMENT)
        filler = self.disk.read(f"{ROOT}/commitlog/{segment_name(0)}")[-left:]
        self.assertEqual(
            filler[:8], left.to_bytes(4, "big") + bytes.fromhex("cbd43194")
        )
        left = 2 * SEGMENT - self.store.published_position
        drafts = [draft(self.queue, b"c" * (left - 8 - overhead)), draft(self.queue)]
        self.store.append(drafts)
        self.assertEqual(drafts[0].end, 2 * SEGMENT - 8)
        self.assertEqual(drafts[1].position, 2 * SEGMENT)
        self.dispatch()
        self.assertEqual(self.queue.max_offset, 4)
        self.assertEqual(bodies(self.store, self.queue)[3], b"body")

    def test_limits(self) -> None:
        """Each limit has its status, at the edge; others of the append are stored."""
        store = opened(max_message_size=1000)
        queue = store.queue("T", 0)
        long_topic = "%RETRY%" + "x" * 249
        drafts = [
            draft(queue, b"x" * 1000),
            draft(queue, b"x" * 1001),
            draft(queue, properties=b"p" * 32767),
            draft(queue, properties=b"p" * 32768),
            draft(store.queue(long_topic[:255], 0)),
            draft(store.queue(long_topic, 0)),
            draft(store.queue("../T", 0)),
            draft(store.queue("T", -1)),
        ]
        store.append(drafts)
        self.assertEqual(
            [each.status for each in drafts],
            [
                PUT_OK,
                MESSAGE_ILLEGAL,
                PUT_OK,
                PROPERTIES_SIZE_EXCEEDED,
                PUT_OK,
                MESSAGE_ILLEGAL,
                MESSAGE_ILLEGAL,
                MESSAGE_ILLEGAL,
            ],
        )
        self.assertEqual(store.append_failures, 5)
        self.assertEqual(queue.next_offset, 2)

    def test_longTopicsOff(self) -> None:
        """Where version 2 is not allowed, long topics are refused."""
        store = opened(auto_message_version_on_topic_len=False)
        drafts = [draft(store.queue("x" * size, 0)) for size in (127, 128)]
        store.append(drafts)
        self.assertEqual([each.status for each in drafts], [PUT_OK, MESSAGE_ILLEGAL])

    def test_recordLimit(self) -> None:
        """A record that fits no segment is refused, not half stored."""
        overhead = len(draft(self.queue, b"").properties) + 92
        most = SEGMENT - 8 - overhead
        self.assertTrue(most < 4 << 20)
        drafts = [draft(self.queue, b"x" * size) for size in (most + 1, most)]
        self.store.append(drafts)
        self.assertEqual([each.status for each in drafts], [MESSAGE_ILLEGAL, PUT_OK])
        self.assertEqual(BESIDE_BODY, 65536)

    def test_transactions(self) -> None:
        """Half and rolled back records are in the log and take no queue offset."""
        drafts = [
            draft(self.queue, sys_flag=kind, prepared_offset=5)
            for kind in (4, 12, 8, 0)
        ]
        self.store.append(drafts)
        self.assertEqual([each.queue_offset for each in drafts], [0, 0, 0, 1])
        self.dispatch()
        self.assertEqual(self.queue.max_offset, 2)
        self.assertIsNotNone(self.store.record_at(drafts[0].position))

    def test_hostsOfSixteenBytes(self) -> None:
        """IPv6 producers make longer records."""
        drafts = [
            draft(self.queue, born_host=host) for host in (BORN_HOST_V6, BORN_HOST)
        ]
        self.store.append(drafts)
        sizes = [each.end - each.position for each in drafts]
        self.assertEqual(sizes[0], sizes[1] + 12)
        self.dispatch()
        self.assertEqual(bodies(self.store, self.queue), [b"body"] * 2)

    def test_batch(self) -> None:
        """A batch becomes records with consecutive offsets, in one segment."""
        put(self.store, self.queue, b"x" * (SEGMENT - 1000))
        one = batch(
            draft(self.queue),
            (1, b"a" * 400, b"", 11),
            (2, b"b" * 400, b"K\1v\2", 12),
            (3, b"", b"", 13),
        )
        self.store.append([one, draft(self.queue, b"after")])
        self.assertEqual(one.status, PUT_OK)
        self.assertEqual(one.position, SEGMENT)
        self.assertEqual(one.queue_offset, 1)
        self.assertEqual(one.positions, [SEGMENT, SEGMENT + 492, SEGMENT + 988])
        self.assertEqual(one.end, SEGMENT + 988 + 92)
        arrivals = self.store.dispatch(100)
        self.assertEqual(arrivals[0].tag_codes, [11, 12, 13, 0])
        self.assertEqual(
            bodies(self.store, self.queue)[1:], [b"a" * 400, b"b" * 400, b"", b"after"]
        )

    def test_counted(self) -> None:
        """What was published is counted, each message of a batch, and no filler."""
        first = draft(self.queue, b"x" * (SEGMENT - 1000))
        self.store.append([first])
        parts = batch(draft(self.queue), (0, b"a" * 900, b"", 0), (0, b"b", b"", 0))
        last = draft(self.queue)
        self.store.append([parts, last, draft(self.queue, b"", flag=1 << 40)])
        self.assertEqual(parts.position, SEGMENT)
        self.assertEqual(self.store.appended_messages, 4)
        self.assertEqual(
            self.store.appended_bytes,
            sum(each.end - each.position for each in (first, parts, last)),
        )
        self.disk.fail("pwrite", errno.EIO)
        self.store.append([draft(self.queue)])
        self.assertEqual(self.store.appended_messages, 4)

    def test_illegalBatches(self) -> None:
        """A batch is stored whole or not at all."""
        drafts = [
            batch(draft(self.queue)),
            batch(draft(self.queue), (0, b"", b"p" * 32768, 0)),
            batch(draft(self.queue), *[(0, b"x" * 7000, b"", 0)] * 10),
            batch(draft(self.queue, sys_flag=4), (0, b"", b"", 0)),
            batch(draft(self.queue), (0, b"x", b"", 0), (1 << 31, b"x", b"", 0)),
        ]
        self.store.append(drafts)
        self.assertEqual(
            [each.status for each in drafts],
            [
                MESSAGE_ILLEGAL,
                PROPERTIES_SIZE_EXCEEDED,
                MESSAGE_ILLEGAL,
                MESSAGE_ILLEGAL,
                MESSAGE_ILLEGAL,
            ],
        )
        self.assertEqual(self.store.published_position, 0)
        self.assertEqual(self.queue.next_offset, 0)
        self.assertEqual(self.store.append_failures, 5)

    def test_numberDoesNotFit(self) -> None:
        """One that cannot be encoded does not hinder the others."""
        drafts = [draft(self.queue), draft(self.queue, flag=1 << 40), draft(self.queue)]
        self.store.append(drafts)
        self.assertEqual(
            [each.status for each in drafts], [PUT_OK, MESSAGE_ILLEGAL, PUT_OK]
        )
        self.assertEqual([drafts[0].queue_offset, drafts[2].queue_offset], [0, 1])
        self.assertEqual(self.store.append_failures, 1)
        self.dispatch()
        self.assertEqual(len(bodies(self.store, self.queue)), 2)

    def test_manyBytes(self) -> None:
        """More than is written at once is written in several goes."""
        store = opened(mapped_file_size_commit_log=32 << 20)
        queue = store.queue("T", 0)
        large = [b"%d" % number * (1 << 20) for number in range(6)]
        put(store, queue, *large, b"small")
        self.assertEqual(bodies(store, queue), [*large, b"small"])


class FullDiskTests(SynchronousTestCase):
    """Disks that refuse."""

    def setUp(self) -> None:
        """A store on a disk."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        self.queue = self.store.queue("T", 0)
        put(self.store, self.queue, b"before")

    def append(self, *sizes: int) -> list[int]:
        """The statuses of drafts of these sizes."""
        drafts = [draft(self.queue, b"x" * size) for size in sizes]
        self.store.append(drafts)
        return [each.status for each in drafts]

    def test_writeFails(self) -> None:
        """A write that fails leaves no trace; reads go on; later it resumes by
        itself."""
        end = self.store.published_position
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertEqual(self.append(1, 2), [SERVICE_NOT_AVAILABLE] * 2)
        self.assertEqual(
            self.store.refusal(),
            "the commit log /store/commitlog cannot be written: No space left on "
            "device; 1024.0 GiB of 1.0 TiB are free",
        )
        self.assertEqual(self.store.published_position, end)
        self.assertEqual(self.queue.next_offset, 1)
        self.assertEqual(bodies(self.store, self.queue), [b"before"])
        self.assertEqual(self.append(1), [SERVICE_NOT_AVAILABLE])
        self.wall.now_ms += RETRY_MS
        self.assertEqual(self.append(1), [PUT_OK])
        self.assertIsNone(self.store.refusal())
        self.assertEqual(self.store.append_failures, 3)

    def test_clockSetBack(self) -> None:
        """A clock that is set back does not put the next try off."""
        self.disk.fail("pwrite", errno.ENOSPC)
        self.append(1)
        self.wall.now_ms -= 3_600_000
        self.assertEqual(self.append(1), [PUT_OK])

    def test_noTrace(self) -> None:
        """What was half written is not found by a later start."""
        self.store.append([draft(self.queue, b"ok")])
        end = self.store.published_position
        self.disk.fail("pwrite", errno.EIO, after=1)
        drafts = [draft(self.queue, b"x" * 30_000) for _ in range(3)]
        self.store.append(drafts)
        self.assertEqual(drafts[0].status, SERVICE_NOT_AVAILABLE)
        self.disk.crash(keep_all=True)
        store = opened(self.disk)
        self.assertEqual(store.published_position, end)
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"before", b"ok"])

    def test_noSegment(self) -> None:
        """Without room for a segment what needs one fails, what does not is stored; and
        with room again it goes on."""
        self.store.allocate_ahead()
        self.append(60_000)
        self.append(60_000)
        self.disk.capacity = self.disk.used()
        self.store.allocate_ahead()
        self.assertEqual(
            self.append(60_000, 100, 60_000),
            [SERVICE_NOT_AVAILABLE, PUT_OK, SERVICE_NOT_AVAILABLE],
        )
        self.assertTrue(self.store.flags.has(DISK_FULL))
        self.wall.now_ms += RETRY_MS
        self.assertEqual(self.append(100), [SERVICE_NOT_AVAILABLE])
        self.assertIn("no commit log segment", self.store.refusal() or "")
        self.assertFalse(self.store.allocate_ahead())
        self.disk.capacity = None
        self.wall.now_ms += RETRY_MS
        self.assertEqual(self.append(60_000), [PUT_OK])
        self.store.dispatch(1000)
        self.assertEqual(
            [len(body) for body in bodies(self.store, self.queue)],
            [6, 60_000, 60_000, 100, 60_000],
        )

    def test_noSegmentOtherwise(self) -> None:
        """A segment that cannot be made for another reason is reported as such."""
        self.append(60_000)
        self.append(60_000)
        self.disk.fail("open", errno.EACCES, times=2)
        self.assertEqual(self.append(60_000), [CREATE_MAPPED_FILE_FAILED])
        self.assertEqual(self.store.flags.bits, NOT_WRITEABLE)
        self.disk.heal()
        self.wall.now_ms += RETRY_MS
        self.assertEqual(self.append(60_000), [PUT_OK])
        self.assertEqual(self.store.flags.bits, 0)

    def test_otherFlags(self) -> None:
        """What another part forbids is not tried before that part allows it again."""
        self.store.flags.set(FENCED, True, "another is the master", by="controller")
        self.wall.now_ms += 10 * RETRY_MS
        self.assertEqual(self.append(1), [SERVICE_NOT_AVAILABLE])
        self.assertEqual(self.store.refusal(), "another is the master")
        self.store.flags.set(FENCED, False, by="controller")
        self.store.flags.set(NOT_READABLE)
        self.assertEqual(self.append(1), [PUT_OK])

    def test_failsAfterRoll(self) -> None:
        """When the write behind a roll fails, the roll is used by the next append."""
        self.append(40_000)
        self.disk.fail("pwrite", errno.EIO, after=1)
        self.assertEqual(self.append(40_000), [SERVICE_NOT_AVAILABLE])
        self.assertTrue(self.store.published_position < SEGMENT)
        self.assertTrue(self.store.allocate_ahead() in (True, False))
        self.assertEqual(self.append(10, 50_000), [PUT_OK] * 2)
        self.store.dispatch(1000)
        self.assertEqual(
            [len(body) for body in bodies(self.store, self.queue)],
            [6, 40_000, 10, 50_000],
        )

    def test_sparseLog(self) -> None:
        """Blocks that cannot be reserved any more are a refusal, before they are
        needed; with room again it resumes."""
        store = opened(self.disk_of_log(), self.wall)
        disk = self.disk
        disk.capacity = disk.used()
        self.assertFalse(store.allocate_ahead())
        self.assertIn("no room for the commit log", store.refusal() or "")
        disk.capacity = None
        self.assertTrue(store.allocate_ahead())
        self.assertIsNone(store.refusal())

    def disk_of_log(self) -> MemoryDisk:
        """The disk after a crash, with a log that has no blocks behind its end."""
        self.disk.crash(keep_all=True)
        store = opened(self.disk)
        store.close()
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        file.truncate(4096)
        file.truncate(SEGMENT)
        self.disk.fail("allocate", errno.ENOSPC, after=1)
        return self.disk
