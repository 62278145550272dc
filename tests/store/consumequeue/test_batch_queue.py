"""Batch queues: their units, and how they come through stops."""

from __future__ import annotations

import errno

from rocketbroker.records.hashing import tag_code
from rocketbroker.records.queueunits import BATCH_SIZE, BatchUnit, decode_batch
from rocketbroker.records.record import decode
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import (
    MESSAGE_ILLEGAL,
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    Draft,
    Placed,
)
from rocketbroker.testing.files import MemoryDisk
from tests.store.consumequeue.batches import FOLDER, BatchCase
from tests.store.stores import (
    BATCH_UNITS,
    ROOT,
    SEGMENT,
    START_MS,
    batch,
    bodies,
    draft,
    make,
    opened,
    put,
    put_batches,
    unwrapped,
    with_batches,
)


class EnterTests(BatchCase):
    """Batches that come in."""

    def test_unit(self) -> None:
        """A batch is one record and one unit; offsets go on behind its last message,
        and the record says where it begins."""
        put(self.store, self.store.queue("T", 0), b"before")
        first, second = put_batches(self.store, self.queue, [b"a", b"b"], [b"c"])
        self.assertEqual(self.offsets(), (0, 3, 3))
        self.assertEqual((first.queue_offset, second.queue_offset), (0, 2))
        data = self.disk.read(f"{FOLDER}/{segment_name(0)}")
        unit = decode_batch(data, BATCH_SIZE)
        size = second.end - second.position
        self.assertEqual(tuple(unit), (second.position, size, 0, START_MS, 2, 1))
        record = self.store.record_at(second.position)
        assert record is not None
        message = decode(record)
        self.assertEqual(message.queue_offset, 2)
        self.assertEqual(message.sys_flag, 0xC0)
        self.assertEqual(message.properties["INNER_BASE"], "2")
        self.assertEqual(message.properties["INNER_NUM"], "1")
        self.assertEqual(self.disk.list(f"{ROOT}/consumequeue"), ["T"])

    def test_rollOver(self) -> None:
        """Units go over as many files as they need."""
        wanted = self.fill(2 * BATCH_UNITS + 1)
        size = BATCH_UNITS * BATCH_SIZE
        names = [segment_name(at) for at in (0, size, 2 * size)]
        self.assertEqual(self.disk.list(FOLDER), names)
        self.assertEqual(unwrapped(self.store, self.queue), wanted)

    def test_arrival(self) -> None:
        """Who waits hears of a batch as of any message."""
        self.store.append([batch(self.queue, b"a", b"b")])
        (arrival,) = self.store.dispatch(100)
        self.assertIs(arrival.queue, self.queue)
        self.assertEqual(arrival.tag_codes, [0])

    def test_wrong(self) -> None:
        """No other queue takes a batch, and a batch queue none that does not say that
        it is one, or says so and has no place, or no number of messages."""
        other = self.store.queue("T", 0)
        wrong = [
            draft(self.queue, sys_flag=0xC0),
            draft(self.queue, sys_flag=0xC0, parts=[(0, b"x", b"", 0)]),
            draft(self.queue, sys_flag=4, parts=[(0, b"x", b"", 0)]),
            batch(other, b"a"),
            batch(self.queue, b"a", sys_flag=0),
            batch(self.queue, b"a", sys_flag=0xC4),
            batch(self.queue, b"a", parts=Placed(b"", 0)),
            batch(self.queue, b"a", parts=Placed(b"", 32768)),
        ]
        self.store.append(wrong)
        self.assertEqual({each.status for each in wrong}, {MESSAGE_ILLEGAL})
        self.assertEqual(self.store.append_failures, len(wrong))
        most = batch(self.queue, b"a", parts=Placed(b"", 32767))
        self.store.append([most])
        self.assertEqual(most.status, PUT_OK)
        self.assertEqual(self.queue.next_offset, 32767)

    def test_mixed(self) -> None:
        """Batches and other messages that come together all go where they belong."""
        other = self.store.queue("T", 0)
        drafts = [draft(other, b"1"), batch(self.queue, b"a", b"b"), draft(other, b"2")]
        self.store.append(drafts)
        self.store.append([draft(other, b"3")])
        while self.store.dispatch(1):
            pass
        self.assertEqual(bodies(self.store, other), [b"1", b"2", b"3"])
        self.assertEqual(unwrapped(self.store, self.queue), [(0, b"a"), (1, b"b")])

    def test_appendFails(self) -> None:
        """A batch that the disk refused takes no offsets."""
        self.disk.fail("pwrite", errno.ENOSPC)
        refused = batch(self.queue, b"a", b"b")
        self.store.append([refused])
        self.assertNotEqual(refused.status, PUT_OK)
        self.assertEqual(self.queue.next_offset, 0)
        self.wall.now_ms += 1000
        put_batches(self.store, self.queue, [b"c"])
        self.assertEqual(unwrapped(self.store, self.queue), [(0, b"c")])

    def test_dispatchFails(self) -> None:
        """Units that the disk refused are entered by the next step, once."""
        self.store.append([batch(self.queue, b"a", b"b"), batch(self.queue, b"c")])
        self.disk.fail("pwrite", errno.EIO)
        self.assertRaises(OSError, self.store.dispatch, 100)
        self.assertEqual(self.queue.max_offset, 0)
        self.store.dispatch(100)
        self.assertEqual(
            unwrapped(self.store, self.queue), [(0, b"a"), (1, b"b"), (2, b"c")]
        )


class SinglesTests(BatchCase):
    """Messages that are no batch: each is a unit of its own, as RocketMQ has
    them."""

    def drafts(self) -> list[Draft]:
        """One that is alone, three that came as an outer batch, and an inner batch."""
        outer = [(0, b"%d" % n, b"", n) for n in range(1, 4)]
        return [
            draft(self.queue, b"0", "A"),
            draft(self.queue, parts=outer),
            batch(self.queue, b"4", b"5"),
        ]

    def units(self) -> list[BatchUnit]:
        """What stands in the queue."""
        assert self.queue.batch is not None
        return self.queue.batch.units(0, 100)

    def test_units(self) -> None:
        """The offset of a unit is that of its record, which has no other place in it;
        it has the tag code of its message."""
        drafts = self.drafts()
        self.store.append(drafts)
        (arrival,) = self.store.dispatch(100)
        codes = [tag_code("A"), 0, 0, 0, 0]
        self.assertEqual(arrival.tag_codes, codes)
        positions = [drafts[0].position, *drafts[1].positions, drafts[2].position]
        self.assertEqual(
            [(u.position, u.tag_code, u.base, u.messages) for u in self.units()],
            [*zip(positions, codes, range(5), [1, 1, 1, 1, 2], strict=True)],
        )
        self.assertEqual({unit.store_ms for unit in self.units()}, {START_MS})
        self.assertEqual(
            unwrapped(self.store, self.queue), [(n, b"%d" % n) for n in range(6)]
        )
        self.assertEqual(self.offsets(), (0, 6, 6))
        self.assertEqual(self.store.appended_messages, 6)
        record = decode(self.store.record_at(drafts[0].position) or b"")
        self.assertEqual((record.queue_offset, record.sys_flag), (0, 0))
        self.assertEqual(set(record.properties), {"TAGS", "UNIQ_KEY"})

    def test_committed(self) -> None:
        """What a transaction has committed stands in the queue; a half message would
        not."""
        drafts = [draft(self.queue, sys_flag=4), draft(self.queue, b"x", sys_flag=8)]
        self.store.append(drafts)
        self.store.dispatch(100)
        self.assertEqual([each.status for each in drafts], [PUT_OK] * 2)
        self.assertEqual(bodies(self.store, self.queue), [b"x"])

    def test_limits(self) -> None:
        """They may be as large as other messages, and have as long properties."""
        store = with_batches(MemoryDisk(), max_message_size=1000)
        queue = store.queue("B", 0)
        for each, status in (
            (draft(queue, b"x" * 1000), PUT_OK),
            (draft(queue, b"x" * 1001), MESSAGE_ILLEGAL),
            (draft(queue, properties=b"x" * 32767), PUT_OK),
            (draft(queue, properties=b"x" * 32768), PROPERTIES_SIZE_EXCEEDED),
            (draft(queue, parts=[(0, b"x" * 1001, b"", 0)]), MESSAGE_ILLEGAL),
        ):
            store.append([each])
            self.assertEqual(each.status, status)
        self.assertEqual(queue.next_offset, 2)

    def test_refused(self) -> None:
        """What the disk refused takes no offsets, and what comes then gets them."""
        self.disk.fail("pwrite", errno.ENOSPC)
        drafts = self.drafts()
        self.store.append(drafts)
        self.assertNotIn(PUT_OK, {each.status for each in drafts})
        self.assertEqual(self.queue.next_offset, 0)
        self.wall.now_ms += 1000
        self.store.append(self.drafts())
        self.store.dispatch(100)
        self.assertEqual([unit.base for unit in self.units()], [0, 1, 2, 3, 4])

    def test_crash(self) -> None:
        """A queue that is made again from the log has the same units."""
        self.store.append(self.drafts())
        self.store.dispatch(100)
        self.store.flush()
        units = self.units()
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")
        self.disk.crash(keep_all=True)
        self.start()
        self.assertEqual(self.units(), units)
        self.assertEqual(self.offsets(), (0, 6, 6))


class StopTests(BatchCase):
    """Stores that are closed, or stop in the middle."""

    def test_close(self) -> None:
        """After a clean stop all is as it was, and nothing is read again."""
        wanted = self.fill(25)
        self.store.close()
        self.start()
        self.assertEqual(self.store.report, [])
        self.assertEqual(self.store.recovered.records, 0)
        self.assertEqual(self.offsets(), (0, len(wanted), len(wanted)))
        self.assertEqual(unwrapped(self.store, self.queue), wanted)
        put_batches(self.store, self.queue, [b"more"])
        self.assertEqual(
            unwrapped(self.store, self.queue), [*wanted, (len(wanted), b"more")]
        )

    def test_crash(self) -> None:
        """After a crash the queue is made again from the log, whatever of it is on
        the disk."""
        wanted = self.fill(25)
        self.store.flush()
        self.disk.crash()
        self.start()
        self.assertEqual(unwrapped(self.store, self.queue), wanted)
        self.assertEqual(self.offsets(), (0, len(wanted), len(wanted)))

    def test_lostQueue(self) -> None:
        """A queue whose files are gone comes back, too."""
        wanted = self.fill(25)
        self.store.close()
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")
        put_other = opened(self.disk, self.wall)
        put(put_other, put_other.queue("T", 0), b"x")
        self.disk.crash(keep_all=True)
        self.start()
        self.assertEqual(unwrapped(self.store, self.queue), wanted)

    def test_torn(self) -> None:
        """A unit that was half written is written again."""
        wanted = self.fill(5)
        self.disk.crash(keep_all=True)
        file = self.disk.open(f"{FOLDER}/{segment_name(0)}")
        file.pwrite(bytes(30), 3 * BATCH_SIZE + 16)
        self.start()
        self.assertEqual(unwrapped(self.store, self.queue), wanted)

    def test_bound(self) -> None:
        """What follows the end that a start believes is gone from the files, to the
        first unit: a later start must not take it for one."""
        drafts = put_batches(self.store, self.queue, *[[b"1"]] * 15)
        for last in (12, 3):
            self.queue.bound(drafts[last].position, 0, cut=True)
            self.assertEqual(self.queue.max_offset, last)
            content = b"".join(
                self.disk.read(f"{FOLDER}/{name}") for name in self.disk.list(FOLDER)
            )
            self.assertEqual(content[last * BATCH_SIZE :].strip(b"\0"), b"")
            self.assertIsNotNone(decode_batch(content, (last - 1) * BATCH_SIZE))

    def test_firstOnesGone(self) -> None:
        """A queue that is made again from a log that begins later begins with the
        first message in it."""
        drafts = put_batches(self.store, self.queue, *[[b"x" * 9000] * 2] * 10)
        self.disk.crash(keep_all=True)
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")
        self.disk.remove(f"{ROOT}/commitlog/{segment_name(0)}")
        first = [each.position >= SEGMENT for each in drafts].index(True)
        self.start()
        self.assertEqual(self.offsets(), (2 * first, 20, 20))
        self.assertEqual(len(unwrapped(self.store, self.queue)), 20 - 2 * first)

    def test_begin(self) -> None:
        """When the log begins later the queue does, and its files go with it."""
        body = b"x" * 9000
        drafts = put_batches(self.store, self.queue, *[[body, body]] * 25)
        self.assertEqual(self.queue.begin_with(drafts[3].position), 0)
        self.assertEqual(self.offsets(), (6, 50, 50))
        self.assertEqual(self.queue.begin_with(drafts[12].position + 1), 1)
        self.assertEqual(self.offsets(), (26, 50, 50))
        self.assertEqual(self.queue.begin_with(drafts[24].end), 1)
        self.assertEqual(self.offsets(), (50, 50, 50))
        put_batches(self.store, self.queue, [b"last"])
        self.assertEqual(self.offsets(), (50, 51, 51))
        self.assertEqual(unwrapped(self.store, self.queue), [(50, b"last")])

    def test_deleted(self) -> None:
        """A topic that is deleted and made again begins at 0, also after a crash; as
        a topic of another kind, too."""
        self.fill(25)
        self.store.append([batch(self.queue, b"late")])
        self.store.delete_topic("B")
        self.assertEqual(self.disk.list(f"{ROOT}/batchconsumequeue"), [])
        self.assertIs(self.store.queue("B", 0), self.queue)
        put_batches(self.store, self.queue, [b"new", b"new"])
        self.disk.crash(keep_all=True)
        self.start()
        self.assertEqual(unwrapped(self.store, self.queue), [(0, b"new"), (1, b"new")])

    def test_otherKind(self) -> None:
        """A topic that is made again as one of another kind takes the other kind."""
        kinds = {"B"}
        store = make(MemoryDisk())
        store.know_topics(kinds.__contains__)
        store.open()
        queue = store.queue("B", 0)
        put_batches(store, queue, [b"a", b"b"])
        store.delete_topic("B")
        kinds.clear()
        self.assertIs(store.queue("B", 0), queue)
        put(store, queue, b"c")
        self.assertEqual(bodies(store, queue), [b"c"])

    def test_foreign(self) -> None:
        """Directories of the wrong kind are left alone and reported. Batches of a
        topic of ordinary queues are in none; messages of one of batches are units of
        their own."""
        self.fill(3)
        put(self.store, self.store.queue("T", 0), b"x")
        self.store.close()
        store = make(self.disk, self.wall)
        store.know_topics(lambda topic: topic == "T")
        store.open()
        self.assertEqual(
            store.report,
            [
                f"{ROOT}/{folder} is not for queues of that topic; it is ignored."
                for folder in ("consumequeue/T", "batchconsumequeue/B")
            ],
        )
        self.assertEqual([store.queue(topic, 0).max_offset for topic in "BT"], [0, 1])
        self.assertEqual(self.disk.list(f"{ROOT}/batchconsumequeue"), ["B", "T"])

    def test_unknownTopics(self) -> None:
        """A store that nobody has told of topics knows them by their directories."""
        wanted = self.fill(3)
        self.store.close()
        store = opened(self.disk, self.wall)
        self.assertEqual(unwrapped(store, store.queue("B", 0)), wanted)
