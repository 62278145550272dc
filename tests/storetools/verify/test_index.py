"""The index checked."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.file_names import segment_name
from rocketbroker.store.index.file import HEADER, INDEX_ENTRY, SLOT
from rocketbroker.store.message_store import Store
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.index import MAX_REPORTED, IndexVerification
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.index.keyed import Tagged, java_index, message
from tests.store.stores import ROOT, SEGMENT, Wall, draft, make

SLOTS = 50
NUMBERS = 30


class IndexVerificationTests(SynchronousTestCase):
    """An index of two files, of a store that was stopped cleanly."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """Forty messages with a key each."""
        self.folder = os.path.join(ROOT, "index")
        names = self.make(40)
        self.assertEqual(len(names), 2)
        self.first = os.path.join(self.folder, names[0])
        self.read: list[int] = []

    def walk(self, slots: int = SLOTS) -> tuple[IndexVerification, list[Fault]]:
        """Verify it."""
        faults: list[Fault] = []
        reader = StoreReader(self.disk, ROOT)
        walk = IndexVerification(
            reader, slots, NUMBERS, faults.append, self.read.append
        )
        walk.run()
        reader.close()
        self.assertEqual(walk.faults, len(faults))
        return walk, faults

    def change(self, position: int, data: bytes) -> None:
        """Overwrite bytes of the first file."""
        file = self.disk.open(self.first)
        file.pwrite(data, position)
        file.close()

    def entry(self, number: int) -> int:
        """Where an entry stands."""
        return HEADER.size + SLOTS * SLOT.size + number * INDEX_ENTRY.size

    def test_good(self) -> None:
        """Nothing is wrong, and all entries were seen."""
        walk, faults = self.walk()
        self.assertEqual([fault.text for fault in faults], [])
        self.assertEqual((walk.entries, walk.unknown), (40, []))

    def test_everyBitOfAnEntry(self) -> None:
        """Each flipped bit of an entry is seen, but in its time."""
        at = self.entry(7)
        data = bytearray(self.disk.read(self.first)[at : at + INDEX_ENTRY.size])
        for bit in range(8 * len(data)):
            if 96 < bit < 128:
                continue
            data[bit // 8] ^= 0x80 >> bit % 8
            self.change(at, bytes(data))
            self.assertTrue(self.walk()[1], bit)
            data[bit // 8] ^= 0x80 >> bit % 8
        self.change(at, bytes(data))
        self.assertEqual(self.walk()[1], [])

    def test_reasons(self) -> None:
        """Each fault says what is wrong, and where."""
        at = self.entry(7)
        entry = self.disk.read(self.first)[at : at + INDEX_ENTRY.size]
        code, position, seconds, before = INDEX_ENTRY.unpack(entry)
        for wrong, why in (
            (
                (-code - 1, position, seconds, before),
                "its hash or its time is negative",
            ),
            ((code, position, -1, before), "its hash or its time is negative"),
            ((code, 0, seconds, before), "is before the last one's"),
            ((code, position, seconds, 6), "it names entry 6 before it, not"),
            ((code, position + 1, seconds, before), "no record stands at position"),
            ((code, 1 << 40, seconds, before), "the log has no position"),
            ((code + SLOTS, position, seconds, before), "no key with its hash"),
        ):
            self.change(at, INDEX_ENTRY.pack(*wrong))
            texts = [each.text for each in self.walk()[1] if each.position == at]
            self.assertTrue(any(why in text for text in texts), (why, texts))
            self.assertTrue(all(text.startswith("entry 7: ") for text in texts))

    def test_shorter(self) -> None:
        """A file that becomes shorter while others are read is a fault."""
        for size in (0, HEADER.size, self.entry(3)):
            self.start_over()
            second = os.path.join(ROOT, "index", sorted(self.disk.list(self.folder))[1])
            faults: list[Fault] = []
            reader = StoreReader(self.disk, ROOT)
            file = self.disk.open(second)
            cut = lambda done, to=size, file=file: file.truncate(to)  # noqa: E731
            IndexVerification(reader, SLOTS, NUMBERS, faults.append, cut).run()
            self.assertEqual([each.where for each in faults], [second], size)
            self.assertIn("became shorter", faults[0].text)

    def make(self, count: int, *, keys: bool = True) -> list[str]:
        """A store of so many messages, every second without keys if not C{keys}; the
        names of its index files."""
        self.disk = MemoryDisk()
        store = self.opened()
        for number in range(count):
            plain = draft(store.queue("T", 0), b"x", properties=b"")
            is_plain = number % 2 and not keys
            store.append([plain if is_plain else message(store, f"key{number}")])
        self.build(store)
        return sorted(self.disk.list(self.folder))

    def opened(self) -> Store:
        """The store, open."""
        store = make(self.disk, Wall(), max_hash_slot_num=SLOTS, max_index_num=NUMBERS)
        store.open()
        return store

    def build(self, store: Store) -> None:
        """Build what is missing of its index, and stop it."""
        while store.dispatch(100):
            pass
        while store.build_index(100):
            pass
        store.close()

    def make_java(self) -> str:
        """A store of nine messages with tags, and the index that Java's broker 5.5.0
        would have made of it; the path of that."""
        self.disk = MemoryDisk()
        store = self.opened()
        tagged: list[Tagged] = []
        for number in range(9):
            each = message(store, f"key{number}", f"U{number}", tags=f"tag{number}")
            store.append([each])
            tagged.append((each.position, each.properties, f"tag{number}"))
        self.build(store)
        for name in self.disk.list(self.folder):
            self.disk.remove(os.path.join(self.folder, name))
        return java_index(self.disk, SLOTS, NUMBERS, tagged)

    def test_entriesOfTags(self) -> None:
        """The entries that Java's brokers make for tags from 5.4 on are sound."""
        self.make_java()
        walk, faults = self.walk()
        self.assertEqual([fault.text for fault in faults], [])
        self.assertEqual(walk.entries, 27)

    def test_entriesOfOtherTags(self) -> None:
        """An entry for tags that its record does not have is a fault."""
        self.first = self.make_java()
        at = self.entry(3)
        code, *others = INDEX_ENTRY.unpack(
            self.disk.read(self.first)[at : at + INDEX_ENTRY.size]
        )
        self.change(at, INDEX_ENTRY.pack(code + SLOTS, *others))
        (fault,) = self.walk()[1]
        self.assertIn("no key with its hash", fault.text)

    def test_missingFile(self) -> None:
        """A file that is missing is reported: between others, behind a full one, or
        all of several; but not that the first is, which is a remark."""
        for keys in (True, False):
            for lost, messages in ((1, 0), (2, 1), (0, -1)):
                names = self.make(100 if keys else 200, keys=keys)
                self.assertEqual(self.walk()[1], [])
                for name in names[3:]:
                    self.disk.remove(os.path.join(self.folder, name))
                (fault,) = self.walk()[1]
                self.assertEqual(os.path.basename(fault.where), names[2])
                self.disk.remove(os.path.join(self.folder, names[lost]))
                faults = self.walk()[1]
                found = [os.path.basename(each.where) for each in faults]
                self.assertEqual(
                    found[:1], [names[messages]] if messages >= 0 else found[:1]
                )
        for name in self.make(50):
            self.disk.remove(os.path.join(self.folder, name))
        (fault,) = self.walk()[1]
        self.assertEqual((fault.kind, fault.where), ("index", self.folder))

    def span(self, name: str) -> tuple[int, int]:
        """The positions of the first and the last record of a file."""
        head = self.disk.read(os.path.join(self.folder, name))[: HEADER.size]
        return HEADER.unpack(head)[2:4]

    def test_notFound(self) -> None:
        """Of a file that is missing it is reported which messages no query finds: those
        between the last of the file before and the first of the next."""
        names = self.make(100)
        ends = [self.span(name)[1] for name in names]
        self.disk.remove(os.path.join(self.folder, names[3]))
        (fault,) = self.walk()[1]
        size = self.span(names[1])[0] - ends[0]
        self.assertIn(f"messages from position {ends[2] + size} on;", fault.text)
        self.disk.remove(os.path.join(self.folder, names[1]))
        texts = [fault.text for fault in self.walk()[1]]
        first, end = ends[0] + size, self.span(names[2])[0]
        self.assertIn(f"messages from position {first} to {end};", texts[0])
        self.assertIn("a repair makes the index again", texts[0])

    def test_lateBegin(self) -> None:
        """An index that begins behind records with keys is remarked, and no fault; not
        if the settings say that there is none. A start without any makes it again."""
        for keys in (True, False):
            names = self.make(100, keys=keys)
            self.assertEqual(self.walk()[0].remarks, [])
            self.disk.remove(os.path.join(self.folder, names[0]))
            walk, faults = self.walk()
            (remark,) = walk.remarks
            begin = self.span(names[1])[0]
            second = os.path.join(self.folder, names[1])
            self.assertEqual(
                (faults, remark.where, remark.position), ([], second, begin)
            )
            self.assertIn(f"messages from position 0 to {begin}:", remark.text)
            reader = StoreReader(self.disk, ROOT)
            entries: list[int] = []
            off = IndexVerification(
                reader, SLOTS, NUMBERS, faults.append, entries.append, True
            )
            off.run()
            reader.close()
            self.assertEqual((off.remarks, faults), ([], []))
            for name in names[1:]:
                self.disk.remove(os.path.join(self.folder, name))
            store = self.opened()
            self.build(store)
            walk, faults = self.walk()
            self.assertEqual((walk.remarks, faults), ([], []))
            self.assertEqual(walk.entries, 100 if keys else 50)

    def test_oldGone(self) -> None:
        """It is none where cleaning has removed the log, and the index with it."""
        names = self.make(2000)
        self.assertEqual(self.walk()[0].remarks, [])
        removed = segment_name(0)
        self.disk.remove(os.path.join(ROOT, "commitlog", removed))
        for name in names:
            if self.span(name)[1] < SEGMENT:
                self.disk.remove(os.path.join(self.folder, name))
        walk, faults = self.walk()
        self.assertEqual((walk.remarks, faults), ([], []))

    def test_slot(self) -> None:
        """A slot that leads elsewhere is reported with its place."""
        self.change(HEADER.size + 3 * SLOT.size, SLOT.pack(29))
        faults = self.walk()[1]
        self.assertEqual([fault.position for fault in faults], [HEADER.size + 12])

    def test_header(self) -> None:
        """Numbers that cannot be are reported; entries are not looked at then."""
        self.change(36, SLOT.pack(NUMBERS + 1))
        self.assertEqual(len(self.walk()[1]), 1)

    def test_lost(self) -> None:
        """Of a file that is rubbish only the first faults are reported."""
        self.change(self.entry(1), b"\x55" * INDEX_ENTRY.size * 29)
        faults = self.walk()[1]
        self.assertEqual(faults[-1].text, "more entries are wrong")
        self.assertEqual(len(faults), MAX_REPORTED + 1)

    def test_otherSize(self) -> None:
        """A file of another size than the settings say is not looked at."""
        walk, faults = self.walk(SLOTS + 1)
        self.assertEqual(faults, [])
        self.assertEqual(len(walk.unknown), 2)

    def test_unclean(self) -> None:
        """After a crash the next start makes it again: it is not looked at."""
        self.disk.open(os.path.join(ROOT, "abort"), create=True).close()
        self.change(self.entry(1), b"\x55" * INDEX_ENTRY.size)
        walk, faults = self.walk()
        self.assertEqual((walk.entries, faults), (0, []))
