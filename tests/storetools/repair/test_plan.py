"""What is written in place of lost records, by what is known of them."""

from __future__ import annotations

import os

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.record_head import MAGIC_BLANK
from rocketbroker.store.file_names import segment_name
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.testing.files import MemoryDisk
from tests.records.samples import sound_size
from tests.store.lmq import LmqCase, spread
from tests.store.repairs import LOG, QUEUE, DamagedStore, repair_of, verified
from tests.store.stores import ROOT, SEGMENT, START_MS, Wall, bodies, opened, put

LAST_LOG = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))
LAST_QUEUE = os.path.join(ROOT, "consumequeue", "T", "1", segment_name(0))


class LastRecordTests(DamagedStore):
    """The end of a log that was stopped cleanly: its last two records, 39 of both
    queues."""

    def start_over(self) -> None:
        """Find them."""
        super().start_over()
        self.ends = [
            ENTRY.unpack(self.disk.read(path)[39 * SIZE : 40 * SIZE])[0] - SEGMENT
            for path in (QUEUE, LAST_QUEUE)
        ]

    def test_heads(self) -> None:
        """One bit of a head is wrong: it is set right from what the queue knows, though
        no record follows, and nothing is lost."""
        for at in (0, 3, 4, 7, 12, 15, 20, 27, 28, 35):
            self.start_over()
            for start in self.ends:
                was = self.disk.read(LAST_LOG)[start + at]
                self.change(LAST_LOG, start + at, bytes([was ^ 1]))
            self.repair(dry=True, left=None)
            self.assertEqual(self.kinds(), ["mended", "moved"])
            self.repair()
            self.assertEqual(self.kinds(), ["mended", "moved"])
            self.expect_lost()
            self.assertEqual(self.faults(), [])

    def test_headAndBody(self) -> None:
        """What cannot be set right keeps its place, without a body; what is behind the
        last record is kept and discarded."""
        start = self.ends[0]
        before = self.disk.read(LAST_LOG)
        self.change(LAST_LOG, start, b"\xaa" * 2000)
        repair = self.repair()
        self.assertEqual(self.kinds(), ["discarded", "emptied", "moved", "start"])
        self.assertEqual([m.body for m in self.messages()][38:], [b"38" * 600, b""])
        self.assertEqual([m.body for m in self.messages(1)][38:], [b"x" * 300, b""])
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        self.assertIn(b"\xaa" * (2000 - len(before[start:].rstrip(b"\0"))), kept)
        self.assertEqual(self.faults(), [])

    def test_nobodyKnows(self) -> None:
        """Where the queue has lost it, too, its bytes are kept, and it is reported."""
        start = self.ends[1]
        self.change(LAST_LOG, start, b"\xaa")
        record = self.disk.read(LAST_LOG)[start:].rstrip(b"\0")
        self.change(LAST_QUEUE, 39 * SIZE, bytes(SIZE))
        repair = self.repair()
        self.assertIn("discarded", self.kinds())
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        self.assertIn(record, kept)
        self.assertEqual(len(self.messages(1)), 39)

    def test_wrongSize(self) -> None:
        """An entry behind the last one that leads beyond the log is not believed."""
        self.change(LAST_LOG, self.ends[1], b"\xaa")
        entry = ENTRY.pack(self.ends[1] + SEGMENT, SEGMENT, 0)
        self.change(LAST_QUEUE, 39 * SIZE, entry)
        self.repair()
        self.assertEqual(len(self.messages(1)), 39)
        self.assertEqual(self.disk.size(LAST_LOG), SEGMENT)


class ForgottenTests(DamagedStore):
    """A record that no queue knows any more, and of which the body is wrong."""

    def forget(self, path: str, text: bytes, *changes: tuple[int, bytes]) -> None:
        """Change the last record of a queue in its body, and in what else is
        reported, and take away its entry."""
        position = ENTRY.unpack(self.disk.read(path)[39 * SIZE : 40 * SIZE])[0]
        at = self.disk.read(LAST_LOG).index(text, position - SEGMENT)
        self.change(LAST_LOG, at + 3, b"!")
        for where, data in changes:
            self.change(LAST_LOG, position - SEGMENT + where, data)
        self.change(path, 39 * SIZE, bytes(SIZE))

    def test_place(self) -> None:
        """It keeps its place in its queue, which it says itself."""
        self.forget(QUEUE, b"39")
        self.repair()
        self.assertIn("emptied", self.kinds())
        self.expect_lost(39)

    def test_noPlace(self) -> None:
        """If it has none, as one that was rolled back, a batch, or one of a topic that
        cannot be one, it is reported as discarded, and no message is made of it."""
        for where, data in ((39, b"\x04"), (39, b"\x0c"), (39, b"\x80"), (389, b"/")):
            self.start_over()
            self.forget(LAST_QUEUE, b"xxx", (where, data))
            self.repair()
            self.assertIn("discarded", self.kinds())
            self.assertNotIn("emptied", self.kinds())
            self.assertEqual(len(self.messages(1)), 39)
            self.assertEqual(self.faults(), [])


class TimeTests(DamagedStore):
    """Messages of which one came each second."""

    def start_over(self) -> None:
        """Store them; the repair comes later than all."""
        self.disk = MemoryDisk()
        self.steps = []
        wall = Wall(START_MS - 1_000_000)
        store = opened(self.disk, wall)
        for number in range(40):
            wall.now_ms += 1000
            put(store, store.queue("T", 0), b"%02d" % number * 600)
            put(store, store.queue("T", 1), b"x" * 300)
        store.close()

    def test_times(self) -> None:
        """A message of which nothing can be read any more was stored when the next one
        that can be read was, as who looks for a time believes that they grow; the last
        one just now."""
        before = [message.store_ms for message in self.messages()]
        for number in (3, 4, 20, 39):
            position, size = self.position(number)
            path = LOG if position < SEGMENT else LAST_LOG
            self.change(path, position % SEGMENT, b"\xaa" * size)
        end = ENTRY.unpack(self.disk.read(LAST_QUEUE)[39 * SIZE : 40 * SIZE])[0]
        self.change(LAST_LOG, end - SEGMENT, b"\xaa" * 100)
        self.repair()
        # What follows each of them is of the other queue, and of the same second, but
        # for the last two, which nothing follows.
        after = [message.store_ms for message in self.messages()]
        self.assertEqual(after, [*before[:39], START_MS])
        others = [message.store_ms for message in self.messages(1)]
        self.assertEqual(others, after)


class EarlyEndTests(DamagedStore):
    """A file that ends early before another, as one that was away."""

    def test_filler(self) -> None:
        """It is given a filler, and nothing is discarded."""
        filler = self.disk.read(LOG).index(b"\xcb\xd4\x31\x94") - 4
        self.change(LOG, filler, bytes(8))
        self.repair()
        self.assertEqual(self.kinds(), ["changed", "moved"])
        (done,) = [each for each in self.steps if each.kind == "changed"]
        self.assertEqual((done.position, done.length), (filler, SEGMENT - filler))
        self.assertIn("only zeros stand there", done.text)
        self.expect_lost()
        self.assertEqual(self.faults(), [])


class PlaceTests(DamagedStore):
    """Records that say another place than the entry that leads to them."""

    def test_entries(self) -> None:
        """If it is the entry that is wrong, records are left as they are."""
        data = self.disk.read(LAST_QUEUE)
        for number in (0, 20, 39):
            self.start_over()
            # The entry of another message of the other queue, of the same size.
            position = ENTRY.unpack(data[number * SIZE : (number + 1) * SIZE])[0]
            log = self.disk.read(LOG)
            entry = ENTRY.pack(position, self.position(number)[1], 0)
            self.change(QUEUE, number * SIZE, entry)
            self.repair()
            self.assertNotIn("mended", self.kinds())
            self.assertEqual(self.disk.read(LOG), log)
            self.expect_lost()

    def test_topics(self) -> None:
        """A record whose topic is another is set right, if its neighbours are."""
        for number in (0, 20, 39):
            self.start_over()
            position, size = self.position(number)
            path = LOG if position < SEGMENT else LAST_LOG
            at = self.disk.read(path).index(b"\x01T", position % SEGMENT + 1200) + 1
            for topic in (b"U", b"\0", b"/", b"."):
                self.change(path, at, topic)
                self.repair()
                self.assertIn("mended", self.kinds())
                self.assertEqual(self.disk.read(path)[at : at + 1], b"T")
                self.expect_lost()
                self.assertEqual(self.faults(), [])
        self.assertGreater(size, 1200)

    def test_besides(self) -> None:
        """Wrong entries before it, wherever they lead, do not keep it from that; nor
        is anything changed in the records into whose middle they lead."""
        log = self.disk.read(LOG)
        position, size = self.position(5)
        entries = (9, 9), (position + 8, size - 8), (100, 1 << 30), (SEGMENT - 9, 200)
        for number, entry in zip((3, 5, 7, 9), entries, strict=True):
            self.change(QUEUE, number * SIZE, ENTRY.pack(*entry, 0))
        self.change(QUEUE, 11 * SIZE, self.disk.read(QUEUE)[13 * SIZE : 14 * SIZE])
        at = log.index(b"\x01T", self.position(20)[0] + 1200) + 1
        self.change(LOG, at, b"U")
        self.repair()
        self.assertEqual([each.kind for each in self.steps].count("mended"), 1)
        self.assertEqual(self.disk.read(LOG), log)
        self.expect_lost()
        self.assertEqual(self.faults(), [])

    def test_exchanged(self) -> None:
        """Where the files of two queues have been exchanged the log tells where its
        messages belong."""
        one, other = self.disk.read(QUEUE), self.disk.read(LAST_QUEUE)
        log = self.disk.read(LOG)
        self.change(QUEUE, 0, other)
        self.change(LAST_QUEUE, 0, one)
        self.repair()
        self.assertEqual(self.disk.read(LOG), log)
        self.expect_lost()
        self.assertEqual(self.faults(), [])

    def test_nowhere(self) -> None:
        """An entry that leads nowhere is made again, first, last or in the middle."""
        for number in (0, 20, 39):
            for place in ((9, 9), (1 << 60, 500), (3, -2), (100, 1 << 30)):
                self.start_over()
                entry = ENTRY.pack(*place, 0)
                self.change(QUEUE, number * SIZE, entry)
                self.repair()
                self.expect_lost()
                self.assertEqual(self.faults(), [])


class SealedPlaceTests(DamagedStore):
    """The same in a log of records with CRCs of their own."""

    settings = {"enabled_append_prop_crc": True}

    def test_topics(self) -> None:
        """A record whose topic is another has the right CRC again, too, which is that
        of what it says then."""
        position, _ = self.position(20)
        log = self.disk.read(LOG)
        self.change(LOG, log.index(b"\x01T", position + 1200) + 1, b"U")
        self.repair()
        self.assertIn("mended", self.kinds())
        self.assertEqual(self.disk.read(LOG), log)
        self.expect_lost()
        self.assertEqual(self.faults(), [])


class CopiedTests(DamagedStore):
    """A file of the log that was copied over another one."""

    def test_copied(self) -> None:
        """Each message keeps its place, also the one that stood where the other file
        has its filler; no body of another message is handed out."""
        store = opened(self.disk)
        put(store, store.queue("T", 1), *[b"y" * 2000] * 40)
        store.close()
        other = self.disk.read(LAST_LOG)
        self.assertIn(b"\xcb\xd4\x31\x94", other)
        self.change(LOG, 0, other)
        self.repair()
        self.assertEqual(self.faults(), [])
        first = [self.position(number)[0] < SEGMENT for number in range(40)]
        self.assertEqual(first, sorted(first, reverse=True))
        lost = first.count(True)
        self.assertGreater(lost, 10)
        found = self.messages()
        self.assertEqual([m.body for m in found[:lost]], [b""] * lost)
        self.assertEqual(found[lost].body, b"%02d" % lost * 600)

    def test_wrongEntry(self) -> None:
        """In what is lost one wrong entry hides no other."""
        self.change(LOG, 0, b"\xaa" * SEGMENT)
        self.change(QUEUE, 9 * SIZE, b"\x70")
        self.repair(left=1)
        self.assertIn("T/0: offsets 9 to 9 have", " ".join(t.text for t in self.steps))


class LmqTests(LmqCase):
    """A store with LMQs."""

    def test_region(self) -> None:
        """Messages of which nothing can be read any more keep their places in their
        queue, but not in LMQs; all before and behind them are there."""
        self.fill()
        drafts = [spread(self.queue, b"more", self.a, self.b) for _ in range(4)] + [
            spread(self.queue, b"last", self.b)
        ]
        self.put(*drafts)
        self.store.close()
        log = self.disk.open(LOG)
        start, end = drafts[1].position, drafts[3].position
        log.pwrite(b"\xaa" * (end - start), start)
        log.close()
        repair_of(self.disk).run(False)
        self.start()
        self.assertEqual(self.store.report, [])
        wanted = [b"more", b"", b"", b"more", b"last"]
        self.assertEqual(bodies(self.store, self.queue)[-5:], wanted)
        for queue in (self.a, self.b):
            found = bodies(self.store, queue)
            self.assertEqual(found.count(b"more"), 2)
        self.assertEqual(bodies(self.store, self.b)[-1], b"last")
        self.store.close()

    def test_shorter(self) -> None:
        """So they are where less is left of a message than it was: all queues say how
        long it is now, and what they said is kept."""
        self.put(*[spread(self.queue, b"x" * 3000, self.a, self.b) for _ in range(4)])
        self.store.close()
        log = self.disk.open(LOG)
        log.pwrite(b"!", self.disk.read(LOG).index(b"xxx") + 9)
        log.close()
        steps: list[Done] = []
        repair = repair_of(self.disk, steps.append)
        repair.run(False)
        moved = [each.where for each in steps if each.kind == "moved"]
        for queue in (self.queue, self.a, self.b):
            self.assertIn(f"{ROOT}/consumequeue/{queue.topic}/0", moved)
        self.assertEqual((repair.left, verified(self.disk)[1]), (0, []))
        self.start()
        for queue in (self.queue, self.a, self.b):
            wanted = [b"", *[b"x" * 3000] * 3]
            self.assertEqual(bodies(self.store, queue), wanted)
        self.store.close()


class SealedTests(DamagedStore):
    """A store whose records have CRCs of their own."""

    settings = {"enabled_append_prop_crc": True}

    def test_sealed(self) -> None:
        """So have those that are put in the place of lost ones: the log is whole for
        who counts by these CRCs alone."""
        self.change(LOG, self.position(3)[0] + 500, b"!")
        start, _ = self.position(10)
        position, size = self.position(12)
        self.change(LOG, start, b"\xaa" * (position + size - start))
        self.change(LOG, self.position(20)[0] + 28, b"\x41")
        repair_of(self.disk).run(False)
        self.assertEqual(self.faults(), [])
        self.assertEqual([m.body for m in self.messages()][10:13], [b""] * 3)
        for path in (LOG, LAST_LOG):
            log = self.disk.read(path)
            at = 0
            while size := sound_size(log, at, True):
                at += size
            blank = MAGIC_BLANK.to_bytes(4, "big", signed=True)
            ends = log[at + 4 : at + 8] == blank or not any(log[at:])
            self.assertTrue(ends, (path, at))
            self.assertGreater(at, 1000)
