"""Every record and every entry of a store checked."""

from __future__ import annotations

import os
from zlib import compress

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import SIZE
from rocketbroker.records.record import decode, decode_all, encode, record_size
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.log import PIECE, Verification
from rocketbroker.storetools.verify.queues import MAX_RECORD
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.accidents import forget_ends, lose_folder
from tests.store.repairs import LOG, QUEUE, SmallStore, verified
from tests.store.stores import (
    BORN_HOST_V6,
    ROOT,
    SEGMENT,
    batch,
    draft,
    opened,
    put,
    with_batches,
)


class VerificationTests(SmallStore):
    """A store of 80 messages in two queues, over two segments."""

    def walk(self) -> tuple[Verification, list[Fault]]:
        """Verify it."""
        faults: list[Fault] = []
        walked: list[int] = []
        reader = StoreReader(self.disk, ROOT)
        walk = Verification(reader, faults.append, walked.append)
        expected = walk.expected_bytes()
        walk.run()
        if not faults and not walk.queues.orphans and not walk.tail:
            self.assertEqual(walk.done, expected)
        reader.close()
        self.assertEqual(walk.faults, len(faults))
        return walk, faults

    def test_good(self) -> None:
        """Of a good store all is counted, nothing is reported, nothing is written."""
        self.store.close()
        before = dict(self.disk.calls)
        walk, faults = self.walk()
        self.assertEqual(faults, [])
        self.assertEqual(walk.records, 80)
        self.assertEqual(
            (walk.queues.unlisted, walk.queues.orphans, walk.tail), (0, 0, 0)
        )
        for call in ("open", "pwrite", "truncate", "remove", "make_dirs", "lock"):
            self.assertEqual(self.disk.calls[call], before[call])

    def test_live(self) -> None:
        """Beside a running broker all that is published is checked."""
        walk, faults = self.walk()
        self.assertEqual(faults, [])
        self.assertEqual(walk.records, 80)
        self.store.close()

    def test_oddTopics(self) -> None:
        """A record whose topic has become one that no directory can be called: no
        file is looked for under it."""
        self.store.close()
        position, size = self.position(7)
        at = self.disk.read(LOG).index(b"\x01T", position + 88 + 1200) + 1
        self.assertLess(at, position + size)
        for topic in (b"\0", b"/", b"."):
            self.change(LOG, at, topic)
            _, faults = self.walk()
            queues = {each.queue for each in faults} - {None, ("T", 0)}
            self.assertEqual(len(queues), 0)
            texts = " ".join(each.text for each in faults)
            self.assertIn("the record there is 7 of \ufffd", texts)

    def test_everyBitOfABody(self) -> None:
        """Each flipped bit of a body is found and nothing else is reported."""
        self.store.close()
        position, size = self.position(7)
        for at in (0, 599, 1199):
            for bit in range(8):
                self.flip(LOG, position + 88 + at, bit)
                walk, (fault,) = self.walk()
                self.flip(LOG, position + 88 + at, bit)
                self.assertEqual(walk.records, 80)
                self.assertEqual(fault.kind, "body")
                self.assertEqual(fault.position, position + 88)
                self.assertEqual(fault.where, LOG)
                self.assertIn("message 7 of T/0", fault.text)
        self.assertGreater(size, 1200)

    def test_everyBitOfTheFirstHead(self) -> None:
        """A flipped bit of size, magic, CRC, queue or position is found, too."""
        self.store.close()
        position, _ = self.position(5)
        for at in (*range(16), *range(20, 36)):
            for bit in (0, 7):
                self.flip(LOG, position + at, bit)
                _, faults = self.walk()
                self.flip(LOG, position + at, bit)
                self.assertTrue(faults, (at, bit))

    def test_everyBitOfEveryBody(self) -> None:
        """Each flipped bit of any body is found: of plain ones, of one byte and of
        many, of compressed ones, of batches and of batches kept as one record."""
        self.store.close()
        self.disk = MemoryDisk()
        store = with_batches(self.disk)
        queue = store.queue("T", 0)
        drafts = [
            draft(queue, b"x"),
            draft(queue, compress(b"many times " * 20, 3), sys_flag=0x301),
            draft(queue, b"half", sys_flag=0x4),
            draft(queue, b"born on IPv6", born_host=BORN_HOST_V6),
            draft(queue, b"a", parts=[(0, b"one", b"", 0), (0, b"two", b"", 0)]),
            batch(store.queue("B", 0), b"first", b"second"),
            draft(queue, bytes(64), tags="A"),
        ]
        for each in drafts:
            store.append([each])
            self.assertEqual(each.status, PUT_OK)
        while store.dispatch(10):
            pass
        store.close()
        self.assertEqual(self.walk()[1], [])
        found = list(decode_all(self.disk.read(LOG)[: drafts[-1].end]))
        self.assertEqual(len(found), 8)
        log = self.disk.read(LOG)
        for message in found:
            first = log.index(message.body, message.position + 88)
            for at in range(first, first + len(message.body)):
                for bit in range(8):
                    self.flip(LOG, at, bit)
                    (fault,) = self.walk()[1]
                    self.flip(LOG, at, bit)
                    self.assertEqual((fault.kind, fault.position), ("body", first))

    def test_ownCrc(self) -> None:
        """Of a record with a CRC of its own each flipped bit is found, in whatever part
        of it, but in the name of the property: then it has none."""
        position, size = self.position(6)
        self.store.close()
        old = decode(self.disk.read(LOG)[position : position + size])
        properties = b"TAGS\x01A\x02k\x01v\x02"
        spare = size - record_size(0, 1, len(properties) + 20)
        record = encode(
            b"T", b"y" * spare, properties, 0, 6, position, old.born_ms, old.born_host,
            old.store_ms, old.store_host, append_crc=True,
        )  # fmt: skip
        self.assertEqual(len(record), size)
        self.change(LOG, position, record)
        self.assertEqual(self.walk()[1], [])
        kinds = set()
        for at in (*range(88), *range(size - 45, size - 20), *range(size - 11, size)):
            self.flip(LOG, position + at, at % 8)
            faults = self.walk()[1]
            self.flip(LOG, position + at, at % 8)
            self.assertTrue(faults, at)
            kinds |= {each.kind for each in faults}
            if 88 + spare + 4 <= at < size - 20 or 40 <= at < 84:
                (fault,) = [each for each in faults if each.kind == "crc"]
                self.assertEqual((fault.where, fault.position), (LOG, position))
        self.assertIn("crc", kinds)

    def test_lostRecord(self) -> None:
        """Behind a record that has no end the next is found, and what is lost said."""
        self.store.close()
        position, size = self.position(3)
        self.change(LOG, position, bytes(size))
        walk, faults = self.walk()
        self.assertEqual(walk.records, 79)
        self.assertEqual([each.kind for each in faults], ["record", "order", "entry"])
        self.assertEqual(faults[0].position, position)
        self.assertIn(f"{size} bytes up to the next record are lost", faults[0].text)
        self.assertIn("offsets 3 to 3 have no record", faults[1].text)
        self.assertEqual(faults[2].position, 3 * SIZE)

    def test_keptPlace(self) -> None:
        """A second entry of the record before is no fault where a record is lost, as a
        start makes it; elsewhere it is one."""
        self.store.close()
        position, size = self.position(3)
        self.change(LOG, position, bytes(size))
        entries = self.disk.read(QUEUE)
        self.change(QUEUE, 3 * SIZE, entries[2 * SIZE : 3 * SIZE])
        self.assertEqual([each.kind for each in self.walk()[1]], ["record", "order"])
        self.change(QUEUE, 5 * SIZE, entries[4 * SIZE : 5 * SIZE])
        (_, _, fault) = self.walk()[1]
        self.assertEqual((fault.kind, fault.position), ("entry", 5 * SIZE))

    def test_lastOfASegment(self) -> None:
        """A broken filler, or record before one, is reported with all that it hides."""
        self.store.close()
        content = self.disk.read(LOG)
        filler = content.index(b"\xcb\xd4\x31\x94") - 4
        self.change(LOG, filler, b"\x01" + bytes(7))
        walk, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.position), ("record", filler))
        self.assertIn("no record follows", fault.text)
        self.assertEqual(walk.remarks, [])

    def test_endedEarly(self) -> None:
        """A file that ends in zeros without a filler is a fault: a broker of RocketMQ's
        may end the log there."""
        self.store.close()
        filler = self.disk.read(LOG).index(b"\xcb\xd4\x31\x94") - 4
        self.change(LOG, filler, bytes(8))
        walk, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.region), ("record", (filler, SEGMENT)))
        self.assertEqual((walk.remarks, walk.records), ([], 80))

    def test_entry(self) -> None:
        """A wrong position, size or tag code of an entry is reported with its place."""
        self.store.close()
        for at in (7, 11, 19):
            self.flip(QUEUE, 4 * SIZE + at)
            _, (fault,) = self.walk()
            self.flip(QUEUE, 4 * SIZE + at)
            self.assertEqual((fault.kind, fault.where), ("entry", QUEUE))
            self.assertEqual(fault.position, 4 * SIZE)

    def test_farEntry(self) -> None:
        """One entry that points far behind the others leaves these what they are."""
        self.store.close()
        self.flip(QUEUE, 4 * SIZE, 5)
        walk, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.position), ("entry", 4 * SIZE))
        self.assertEqual(walk.records, 80)

    def test_madeAgain(self) -> None:
        """Records of a topic that was deleted and made again have no entries."""
        self.store.delete_topic("T")
        for number in range(3):
            put(self.store, self.store.queue("T", 0), b"%d" % number * 100, tags="B")
        self.store.close()
        walk, faults = self.walk()
        self.assertEqual(faults, [])
        self.assertEqual((walk.records, walk.queues.orphans), (83, 40))

    def test_missingEntries(self) -> None:
        """Records without entries are a fault after a clean stop, else a number."""
        self.store.close()
        self.change(QUEUE, 30 * SIZE, bytes(10 * SIZE))
        walk, faults = self.walk()
        self.assertEqual([each.kind for each in faults], ["missing"] * 10)
        file = self.disk.open(os.path.join(ROOT, "abort"), create=True)
        file.close()
        walk, faults = self.walk()
        self.assertEqual((faults, walk.queues.unlisted), ([], 10))

    def test_tail(self) -> None:
        """Rubbish behind the last record is a fault only after a clean stop."""
        self.store.close()
        second = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))
        self.change(second, 60_000, b"rubbish")
        _, (fault,) = self.walk()
        self.assertEqual(fault.kind, "record")
        file = self.disk.open(os.path.join(ROOT, "abort"), create=True)
        file.close()
        walk, faults = self.walk()
        self.assertEqual(faults, [])
        self.assertGreater(walk.tail, 0)

    def test_emptySegment(self) -> None:
        """A segment made ahead of the writer is none of a store's faults."""
        self.store.close()
        path = os.path.join(ROOT, "commitlog", segment_name(2 * SEGMENT))
        file = self.disk.open(path, create=True)
        file.truncate(SEGMENT)
        file.close()
        self.assertEqual(self.walk()[1], [])

    def test_missingSegment(self) -> None:
        """A file of the log that is missing between others is reported."""
        self.store.close()
        path = os.path.join(ROOT, "commitlog", segment_name(3 * SEGMENT))
        file = self.disk.open(path, create=True)
        file.truncate(SEGMENT)
        file.close()
        _, (fault,) = self.walk()
        self.assertEqual((fault.kind, fault.position), ("file", 2 * SEGMENT))
        self.assertEqual(os.path.basename(fault.where), segment_name(2 * SEGMENT))

    def test_deletedTopic(self) -> None:
        """Records of queues that are gone are counted."""
        self.store.close()
        forget_ends(self.disk)
        lose_folder(self.disk, os.path.join(ROOT, "consumequeue", "T", "1"))
        walk, faults = self.walk()
        self.assertEqual((faults, walk.queues.orphans), ([], 40))


class PieceTests(SynchronousTestCase):
    """Files of the log that are read in several pieces."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """An empty store, with files of five pieces."""
        self.disk = MemoryDisk()
        self.settings = {"mapped_file_size_commit_log": 5 * PIECE}

    def fill(self, *sizes: int) -> list[int]:
        """Store messages.

        @param sizes: how long their bodies are.
        @return: where they stand.
        """
        store = opened(self.disk, None, **self.settings)
        queue = store.queue("T", 0)
        drafts = [put(store, queue, bytes(size))[0] for size in sizes]
        store.close()
        return [each.position for each in drafts]

    def change(self, position: int, data: bytes) -> None:
        """Overwrite bytes of the log."""
        file = self.disk.open(LOG)
        file.pwrite(data, position)
        file.close()

    def test_cut(self) -> None:
        """Records that do not end with their piece, or are longer than one, are whole;
        and their bodies are checked."""
        sizes = [*[PIECE // 8 - 1000] * 9, PIECE // 2 * 3, PIECE + 5, 10, 20]
        starts = self.fill(*sizes)
        walk, faults = verified(self.disk)
        self.assertEqual((faults, walk.records), ([], len(sizes)))
        for start in starts:
            self.change(start + 92, b"!")
            walk, faults = verified(self.disk)
            self.assertEqual([each.kind for each in faults], ["body"])
            self.assertEqual(faults[0].region[0], start)
            self.assertEqual(walk.records, len(sizes))
            self.change(start + 92, b"\0")

    def test_wrongSize(self) -> None:
        """A record that says to be longer than its piece, and is not, hides nothing
        behind it."""
        starts = self.fill(10, 20, PIECE - 500, 30, 40)
        for size in (PIECE, 3 * PIECE, MAX_RECORD, MAX_RECORD + 1, 1 << 31):
            self.change(starts[1], size.to_bytes(4, "big"))
            walk, faults = verified(self.disk)
            self.assertEqual(faults[0].region, (starts[1], starts[2]))
            self.assertEqual(walk.records, 4)

    def test_search(self) -> None:
        """Behind what cannot be read the next record is found, wherever the pieces end
        in which it is looked for."""
        starts = self.fill(10, 10)
        overhead = starts[1] - starts[0] - 10
        for less in range(-3, 12):
            self.start_over()
            starts = self.fill(10, 10, PIECE - less - 10 - 2 * overhead, 10)
            self.assertEqual(starts[3] - starts[1], PIECE - less)
            self.change(starts[1], b"\xaa" * (PIECE - less))
            walk, faults = verified(self.disk)
            self.assertEqual(faults[0].region, (starts[1], starts[3]))
            self.assertEqual(walk.records, 2)

    def test_zeros(self) -> None:
        """Nor do pieces of nothing but zeros hide it."""
        starts = self.fill(10, PIECE + 500, PIECE + 500, 10, 20)
        self.change(starts[1], bytes(starts[3] - starts[1]))
        walk, faults = verified(self.disk)
        self.assertEqual(faults[0].region, (starts[1], starts[3]))
        self.assertEqual(walk.records, 3)

    def test_noStart(self) -> None:
        """What has but the number that records have, or that fillers have, is none."""
        starts = self.fill(10, 1000, 10)
        for magic in (b"\xda\xa3\x20\xa7", b"\xcb\xd4\x31\x94"):
            self.change(starts[1], b"\xaa" * 1000)
            self.change(starts[1] + 500, magic)
            walk, faults = verified(self.disk)
            records = [each.region for each in faults if each.kind == "record"]
            self.assertEqual(records, [(starts[1], starts[2])])
            self.assertEqual(walk.records, 2)
