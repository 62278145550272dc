"""Appends of processes that have joined a store."""

from __future__ import annotations

import errno
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.hashing import tag_code
from rocketbroker.records.record import decode_all
from rocketbroker.store.interfaces import PROPERTIES_SIZE_EXCEEDED, PUT_OK, Draft
from rocketbroker.store.shared_positions import APPENDING, OWNER_APPENDS
from rocketbroker.testing.files import MemoryDisk
from tests.store.sharing.joined import TOLD, Killed, Mortal, Shared
from tests.store.stores import BORN_HOST_V6, SEGMENT, draft, opened, options


class JoinedStoreTests(SynchronousTestCase):
    """An owner and two others."""

    def setUp(self) -> None:
        """A store with a queue."""
        self.shared = Shared()
        self.owner = self.shared.owner
        self.queue = self.shared.queue()
        self.joined = self.shared.join()
        self.theirs = self.shared.theirs(self.joined, self.queue)

    def append(self, *bodies: bytes, version: int = TOLD) -> list[Draft]:
        """Append by the other process; nothing if it was left to the owner."""
        drafts = [draft(self.theirs, body) for body in bodies]
        return drafts if self.joined.append(drafts, version) else []

    def test_inTurns(self) -> None:
        """Owner and others append in turns: offsets are dense, order is that of
        appends, and all of it is dispatched."""
        third = self.shared.join()
        its = self.shared.theirs(third, self.queue)
        for number in range(5):
            self.assertTrue(self.append(b"%da" % number, b"%db" % number))
            self.owner.append([draft(self.queue, b"%dc" % number)])
            self.assertTrue(third.append([draft(its, b"%dd" % number)], TOLD))
        bodies = [b"%d%c" % (n, letter) for n in range(5) for letter in b"abcd"]
        self.assertEqual(self.shared.stored(self.queue), [*enumerate(bodies)])
        self.assertEqual((self.joined.appends, self.joined.left), (5, 0))

    def test_answers(self) -> None:
        """A draft is told its place, as by the owner."""
        (one,) = self.append(b"one")
        mine = draft(self.queue, b"two")
        self.owner.append([mine])
        self.assertEqual((one.status, one.queue_offset), (PUT_OK, 0))
        self.assertEqual((mine.queue_offset, mine.position), (1, one.end))
        (record,) = decode_all(self.owner.record_at(one.position) or b"")
        self.assertEqual((record.body, record.store_ms), (b"one", self.shared.wall()))

    def test_batches(self) -> None:
        """An outer batch becomes as many records."""
        parts = [(0, b"%d" % number, b"", 0) for number in range(3)]
        drafts = [draft(self.theirs, b"", parts=parts)]
        self.assertTrue(self.joined.append(drafts, TOLD))
        found = [(0, b"0"), (1, b"1"), (2, b"2")]
        self.assertEqual(self.shared.stored(self.queue), found)

    def test_dispatched(self) -> None:
        """What others have appended is dispatched and in the index as if the owner had
        appended it, whatever it is, some at a time."""
        tagged = draft(self.theirs, b"one", "A")
        half = draft(self.theirs, b"half", sys_flag=4)
        self.assertTrue(self.joined.append([tagged, half], TOLD))
        self.owner.append([draft(self.queue, b"two")])
        v6 = draft(self.theirs, b"three", born_host=BORN_HOST_V6, sys_flag=0x10)
        self.assertTrue(self.joined.append([v6], TOLD))
        arrivals = []
        while got := self.owner.dispatch(1000):
            arrivals += got
        codes = [code for arrival in arrivals for code in arrival.tag_codes]
        self.assertEqual(codes, [tag_code("A"), 0, 0])
        bodies = [b"one", b"two", b"three"]
        self.assertEqual(self.shared.stored(self.queue), [*enumerate(bodies)])
        self.owner.build_index(1000)
        now = self.shared.wall()
        found = self.owner.find_by_key("T", "0" * 32, 10, 0, now + 1)
        # A half message stands in the index and in no queue.
        self.assertEqual(len(found.records), 4)

    def test_notMapped(self) -> None:
        """What others have appended is not read through a mapping: all of a log would
        count as memory of the owner."""
        self.append(b"one")
        before = Path("/proc/self/maps").read_text().count("memfd:")
        self.assertEqual(len(self.owner.dispatch(1000)), 1)
        after = Path("/proc/self/maps").read_text().count("memfd:")
        self.assertEqual(after, before)

    def test_version(self) -> None:
        """By another version nothing is appended, nor by none."""
        self.assertEqual(self.joined.version, TOLD)
        self.assertEqual(self.append(b"one", version=TOLD - 1), [])
        self.owner.sharing.let_append(0)
        self.assertEqual(self.append(b"one", version=0), [])
        self.assertEqual(self.append(b"one"), [])
        self.assertEqual(self.joined.left, 3)
        self.assertEqual(self.owner.published_position, 0)

    def test_topicMadeAnew(self) -> None:
        """A topic that was deleted begins at 0 for all."""
        self.append(b"one")
        self.owner.sharing.let_append(TOLD + 1)
        self.owner.delete_topic("T")
        self.assertEqual(self.append(b"two"), [])
        self.append(b"three", version=TOLD + 1)
        self.assertEqual(self.shared.stored(self.queue), [(0, b"three")])

    def test_segmentFull(self) -> None:
        """What does not fit into the segment is the owner's; in the next one others
        append again."""
        size = SEGMENT // 3
        counts = 0
        while self.append(bytes(size)):
            counts += 1
        self.assertEqual(counts, 2)
        self.owner.append([draft(self.queue, bytes(size))])
        self.assertGreater(self.owner.published_position, SEGMENT)
        self.assertTrue(self.append(b"one"))
        self.assertEqual(len(self.shared.stored(self.queue)), 4)

    def test_removedSegment(self) -> None:
        """A segment that the log has left behind is let go, though nobody appends
        there; so it can be removed."""
        self.append(b"one")
        before = self.shared.disk.open_files
        self.joined.let_go()
        self.assertEqual(self.shared.disk.open_files, before)
        for _ in range(3):
            self.owner.append([draft(self.queue, bytes(SEGMENT // 3))])
        before = self.shared.disk.open_files
        self.joined.let_go()
        self.assertEqual(self.shared.disk.open_files, before - 1)
        self.joined.let_go()
        self.assertTrue(self.append(b"two"))

    def test_segmentIsFoundAnewAfterAChange(self) -> None:
        """After a change a segment is appended to that was made again by its name."""
        self.append(b"one")
        disk, path = self.shared.disk, "/store/commitlog/" + "0" * 20
        content = disk.read(path)
        disk.remove(path)
        disk.open(path, create=True).pwrite(content, 0)
        self.joined.configure(options())
        self.append(b"two")
        self.assertIn(b"two", disk.read(path))

    def test_ownerAppends(self) -> None:
        """While the owner is in an append nothing is done, though it has died there and
        the lock is free."""
        view = self.owner._positions.view
        view[APPENDING] = OWNER_APPENDS
        self.assertEqual(self.append(b"one"), [])
        view[APPENDING] = 0
        self.assertTrue(self.append(b"one"))

    def test_diskRefuses(self) -> None:
        """What the disk refuses is left to the owner, and tried again a while later."""
        self.append(b"one")
        self.shared.disk.fail("pwrite", errno.EIO)
        self.assertEqual(self.append(b"two"), [])
        self.assertEqual(self.append(b"two"), [])
        self.owner.append([draft(self.queue, b"three")])
        self.shared.wall.now_ms += 1000
        self.assertTrue(self.append(b"four"))
        bodies = [b"one", b"three", b"four"]
        self.assertEqual(self.shared.stored(self.queue), [*enumerate(bodies)])

    def test_refused(self) -> None:
        """One that can never be stored does not hinder the others."""
        drafts = [
            draft(self.theirs, properties=b"x" * 40_000),
            draft(self.theirs, b"two"),
        ]
        self.assertFalse(self.joined.append(drafts[:1], TOLD))
        self.assertTrue(self.joined.append(drafts, TOLD))
        self.assertEqual(drafts[0].status, PROPERTIES_SIZE_EXCEEDED)
        self.assertEqual(self.shared.stored(self.queue), [(0, b"two")])

    def test_manyQueues(self) -> None:
        """Queues that were made after it has joined have their words, too, however
        many."""
        for number in range(3000):
            self.shared.queue("U", number)
        last = self.shared.queue("V")
        its = self.shared.theirs(self.joined, last)
        self.assertTrue(self.joined.append([draft(its, b"one")], TOLD))
        self.assertEqual(self.shared.stored(last), [(0, b"one")])
        self.assertRaises(OSError, self.joined.queue, "V", 1, 1 << 40)

    def test_closed(self) -> None:
        """When the owner closes the store nobody appends any more, and nobody can join;
        the next owner finds all."""
        self.append(b"one")
        self.owner.close()
        self.assertEqual(self.append(b"two"), [])
        self.assertRaises(OSError, self.shared.join)
        self.joined.close()
        store = opened(self.shared.disk)
        self.assertEqual(store.queue("T", 0).max_offset, 1)

    def test_alone(self) -> None:
        """A store that is not shared cannot be joined."""
        shared = Shared.__new__(Shared)
        shared.disk, shared.changes, shared.wall = MemoryDisk(), {}, self.shared.wall
        store = opened(shared.disk)
        self.assertFalse(store.sharing.is_on)
        store.sharing.let_append(1)
        self.assertRaises(OSError, shared.join)


class DeathTests(SynchronousTestCase):
    """A process that dies at any of its writes."""

    def die_at(self, count: int) -> tuple[int, bool]:
        """Let it die before a write.

        @param count: after so many; negative: it lives.
        @return: how many there are, and whether its append exists.
        """
        shared = Shared()
        mortal = Mortal(shared.disk)
        joined = shared.join(mortal.as_words)
        queues = [shared.queue("T", number) for number in range(3)]
        theirs = [shared.theirs(joined, queue) for queue in queues]
        shared.owner.append([draft(queues[0], b"old"), draft(queues[2], b"old")])
        drafts = [draft(theirs[n % 2], b"%d" % n) for n in range(4)]
        mortal.begin(count)
        try:
            joined.append(drafts, TOLD)
        except Killed:
            # The kernel releases its lock, and nothing of the process is left.
            joined._lock.close()
        mortal.end()
        there = shared.owner.published_position > drafts[0].position > 0
        shared.owner.append([draft(queues[1], b"new")])
        self.assertEqual(shared.owner._positions.view[APPENDING], 0)
        self.assertEqual(set(shared.behind()), {0})
        got = [[b"0", b"2"], [b"1", b"3"]] if there else [[], []]
        self.assertEqual(shared.stored(queues[0]), [*enumerate([b"old", *got[0]])])
        self.assertEqual(shared.stored(queues[1]), [*enumerate([*got[1], b"new"])])
        self.assertEqual(shared.stored(queues[2]), [(0, b"old")])
        # The others go on.
        other = shared.join()
        its = shared.theirs(other, queues[0])
        self.assertTrue(other.append([draft(its, b"next")], TOLD))
        self.assertEqual(shared.stored(queues[0])[-1][1], b"next")
        return mortal.writes, there

    def test_anyWrite(self) -> None:
        """Whichever write is the last, the append is there as a whole or not at all,
        and offsets go on without a gap. Nothing of it is left behind the log."""
        writes, there = self.die_at(-1)
        self.assertTrue(there)
        found = [self.die_at(count)[1] for count in range(writes)]
        # It exists from one write on, and that is the last but one.
        self.assertEqual(found, [False] * (writes - 1) + [True])

    def test_othersDoNotMend(self) -> None:
        """Until the owner has mended it, others leave their appends to it."""
        shared = Shared()
        mortal = Mortal(shared.disk)
        dying, other = shared.join(mortal.as_words), shared.join()
        queue = shared.queue()
        drafts = [draft(shared.theirs(dying, queue), b"one")]
        mortal.begin(8)
        self.assertRaises(Killed, dying.append, drafts, TOLD)
        dying._lock.close()
        mortal.end()
        its = shared.theirs(other, queue)
        self.assertFalse(other.append([draft(its, b"two")], TOLD))
        shared.owner.sharing.mend()
        self.assertEqual(shared.owner.sharing.mended, 1)
        self.assertTrue(other.append([draft(its, b"two")], TOLD))
        self.assertEqual(shared.stored(queue), [(0, b"two")])

    def test_disksRefusesZeros(self) -> None:
        """If zeros cannot be written where it has died, later appends overwrite what is
        there."""
        shared = Shared()
        mortal = Mortal(shared.disk)
        dying = shared.join(mortal.as_words)
        queue = shared.queue()
        drafts = [draft(shared.theirs(dying, queue), b"one")]
        mortal.begin(8)
        self.assertRaises(Killed, dying.append, drafts, TOLD)
        dying._lock.close()
        mortal.end()
        shared.disk.fail("pwrite", errno.EIO)
        shared.owner.sharing.mend()
        shared.owner.append([draft(queue, b"two")])
        self.assertEqual(shared.stored(queue), [(0, b"two")])
