"""Tests of L{rocketbroker.store.index.file}."""

from __future__ import annotations

import errno
import random
import struct
from array import array

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.index import file as index_file
from rocketbroker.store.index.file import (
    IndexFile,
    create,
    file_size,
    next_path,
    raw_numbers,
)
from rocketbroker.store.index.keys import Keys
from rocketbroker.testing.files import MemoryDisk

SLOTS = 7
NUMBERS = 100
START_MS = 1_700_000_000_000
PATH = "/20231114221320000"


def slowly(
    content: bytearray, keys: list[tuple[int, int, int]], slots: int = SLOTS
) -> None:
    """Enter keys (hash, position, time) one by one, see C{docs/facts/store.md} 12.2."""
    begin_ms, _, begin, _, used, count = struct.unpack_from(">qqqqii", content)
    for code, position, ms in keys:
        count = max(count, 1)
        at = 40 + code % slots * 4
        (before,) = struct.unpack_from(">i", content, at)
        if before <= 0 or before > count:
            before = 0
            used += 1
        seconds = (ms - begin_ms) // 1000 if begin_ms > 0 else 0
        seconds = max(0, min(seconds, (1 << 31) - 1))
        entry = 40 + slots * 4 + count * 20
        struct.pack_into(">iqii", content, entry, code, position, seconds, before)
        struct.pack_into(">i", content, at, count)
        if count <= 1:
            begin_ms, begin = ms, position
        count += 1
        header = begin_ms, ms, begin, position, used, count
        struct.pack_into(">qqqqii", content, 0, *header)


def columns(*keys: tuple[int, int, int]) -> Keys:
    """Keys (hash, position, time) as columns."""
    codes, positions, times = zip(*keys, strict=True)
    span = min(times), max(times)
    return Keys(codes, array("q", positions), array("q", times), span)


class IndexFileCase(SynchronousTestCase):
    """A file of 7 slots and 99 entries in memory."""

    def setUp(self) -> None:
        """An empty file."""
        self.disk = MemoryDisk()
        self.open_files = OpenFiles(self.disk)
        self.file = create(self.open_files, PATH, SLOTS, NUMBERS, None)
        self.addCleanup(self.file.close)

    def add(self, *keys: tuple[int, int, int]) -> None:
        """Enter keys in one step."""
        self.file.add(columns(*keys))

    def content(self) -> bytes:
        """The file as it is on the disk after a flush."""
        self.file.flush()
        return self.disk.read(PATH)

    def again(self) -> None:
        """Open the file anew."""
        self.file.flush()
        self.file = IndexFile(self.open_files, PATH, SLOTS, NUMBERS)
        self.assertEqual(self.file.load(), "")

    def find(
        self, code: int, most: int = 32, begin: int = 0, end: int = 1 << 62
    ) -> list[int]:
        """The positions of a hash."""
        found: list[int] = []
        self.file.find(code, most, begin, end, found)
        return found


class AddTests(IndexFileCase):
    """What a step writes."""

    def test_steps(self) -> None:
        """However many keys a step has, the file is as if they came one by one."""
        luck = random.Random(2)
        expected = bytearray(file_size(SLOTS, NUMBERS))
        count = ms = 0
        while self.file.room:
            keys = []
            for _ in range(min(luck.randrange(1, 9), self.file.room)):
                count += 1
                ms += luck.choice((0, 1, 999, 5000, -3000))
                position = count * 300 + (1 << 33)
                keys.append((luck.randrange(20), position, START_MS + ms))
            self.add(*keys)
            slowly(expected, keys)
            self.assertEqual(self.content(), bytes(expected))

    def test_next(self) -> None:
        """A file begins where the one before ended, but for its first entry's own
        time."""
        self.add((1, 100, START_MS), (2, 200, START_MS + 5000))
        after = create(self.open_files, "/2", SLOTS, NUMBERS, self.file)
        self.addCleanup(after.close)
        head = struct.unpack_from(">qqqqii", self.disk.read("/2"))
        self.assertEqual(head, (START_MS + 5000, START_MS + 5000, 200, 200, 0, 1))
        expected = bytearray(self.disk.read("/2"))
        keys = [(1, 300, START_MS + 8000), (1, 400, START_MS + 9000)]
        after.add(columns(*keys))
        after.flush()
        slowly(expected, keys)
        self.assertEqual(self.disk.read("/2"), bytes(expected))

    def test_farAway(self) -> None:
        """Differences that an entry cannot hold are cut off."""
        keys = [(1, 100, START_MS), (2, 200, 1 << 62), (3, 300, 1)]
        expected = bytearray(file_size(SLOTS, NUMBERS))
        self.add(*keys)
        slowly(expected, keys)
        self.assertEqual(self.content(), bytes(expected))

    def test_brokenSlots(self) -> None:
        """A slot whose number cannot be counts as empty."""
        self.add((1, 100, START_MS))
        for number in (3, 1 << 30, -1):
            self.file.flush()
            file = self.disk.open(PATH)
            file.pwrite(struct.pack(">i", number), 40 + 2 * 4)
            file.close()
            expected = bytearray(self.disk.read(PATH))
            self.again()
            keys = [(2, 200, START_MS), (2, 300, START_MS)]
            self.add(*keys)
            if number != 3:
                slowly(expected, keys)
                self.assertEqual(self.content(), bytes(expected))
            self.assertEqual(self.find(2)[:2], [300, 200])

    def test_refused(self) -> None:
        """What the disk does not take changes nothing."""
        self.add((1, 100, START_MS), (8, 200, START_MS))
        before = self.content()
        self.disk.fail("pwrite", errno.ENOSPC)
        keys = [(1, 300, START_MS), (2, 300, START_MS), (1, 400, START_MS)]
        self.assertRaises(OSError, self.add, *keys)
        self.assertEqual(self.content(), before)
        self.add(*keys)
        self.assertEqual(self.find(1), [400, 300, 100])

    def test_noRoomForSlots(self) -> None:
        """Without blocks for its slots no keys are entered, as those could not be
        written when they are to be put on the disk."""
        self.disk.capacity = self.disk.used() + 8192
        file = create(self.open_files, "/2", 5000, NUMBERS, None)
        self.addCleanup(file.close)
        self.assertRaises(OSError, file.add, columns((1, 100, START_MS)))
        self.disk.capacity = None
        file.add(columns((1, 100, START_MS)))
        self.assertEqual(file.count, 2)

    def test_noMapping(self) -> None:
        """Nothing is written through a mapping, which would kill the process where the
        file has become unwritable."""
        self.add((1, 100, START_MS), (8, 200, START_MS))
        self.again()
        self.add((1, 300, START_MS))
        self.file.flush()
        self.assertEqual(self.disk.calls.get("map", 0), 0)

    def test_unflushed(self) -> None:
        """Until the flush keys are found by the slots in memory; a flush that the disk
        refuses is made up for by the next one."""
        self.add((1, 100, START_MS), (8, 200, START_MS))
        slots = self.disk.read(PATH)[40 : 40 + SLOTS * 4]
        self.assertEqual(slots, bytes(SLOTS * 4))
        self.assertEqual(self.find(1), [100])
        for call in ("pwrite", "datasync"):
            self.disk.fail(call, errno.EROFS)
            self.assertRaises(OSError, self.file.flush)
        self.again()
        self.assertEqual((self.find(1), self.find(8)), ([100], [200]))

    def test_full(self) -> None:
        """A full file keeps no slots in memory, once it is on the disk."""
        self.add(*[(1, 100, START_MS)] * self.file.room)
        self.assertTrue(self.file.is_ready)
        self.file.flush()
        self.assertFalse(self.file.is_ready)
        self.assertEqual(self.find(1), [100])


class RawTests(SynchronousTestCase):
    """Numbers in the order of bytes of a file."""

    def test_numbers(self) -> None:
        """They are what stands there, read by the machine."""
        for first, end in ((1, 1), (1, 2), (255, 257), (65000, 66500), (1 << 24, 0)):
            raw = array("I", raw_numbers(first, end)).tobytes()
            self.assertEqual(
                raw, b"".join(n.to_bytes(4, "big") for n in range(first, end))
            )


class FindTests(IndexFileCase):
    """What is found."""

    def test_chain(self) -> None:
        """Entries of one slot lead from the newest to the oldest, others between."""
        self.add(*((n % 2 * SLOTS, n * 10, START_MS) for n in range(1, 90)))
        odd = [n * 10 for n in range(89, 0, -2)]
        self.assertEqual(self.find(SLOTS, most=100), odd)
        self.assertEqual(self.find(SLOTS, most=3), odd[:3])

    def test_has(self) -> None:
        """Whether one of the last messages has a hash."""
        self.add((1, 100, START_MS), (8, 200, START_MS), (1, 300, START_MS))
        self.assertTrue(self.file.has(1, 300))
        self.assertTrue(self.file.has(8, 200))
        self.assertFalse(self.file.has(8, 300))
        self.assertFalse(self.file.has(1, 200))
        self.assertFalse(self.file.has(5, 100))

    def test_negative(self) -> None:
        """A negative difference ends the search."""
        self.add((1, 100, START_MS), (1, 200, START_MS))
        file = self.disk.open(PATH)
        file.pwrite(struct.pack(">i", -1), 40 + SLOTS * 4 + 20 + 12)
        file.close()
        self.assertEqual(self.find(1), [200])

    def test_following(self) -> None:
        """A search looks at so many entries and no more."""
        most = index_file.MAX_FOLLOWED
        numbers = most + 100
        file = create(self.open_files, "/2", SLOTS, numbers, None)
        self.addCleanup(file.close)
        file.add(columns((1, 100, START_MS)))
        piece = 20_000
        for start in range(1, most - 1, piece):
            some = min(piece, most - 1 - start)
            file.add(columns(*[(8, 200, START_MS)] * some))
        found: list[int] = []
        file.find(1, 1, 0, 1 << 62, found)
        self.assertEqual(found, [100])
        file.add(columns(*[(8, 200, START_MS)] * 2))
        found.clear()
        file.find(1, 1, 0, 1 << 62, found)
        self.assertEqual(found, [])


class LoadTests(IndexFileCase):
    """What is believed of a file."""

    def test_again(self) -> None:
        """All that was written is there again."""
        self.add((1, 100, START_MS), (2, 200, START_MS))
        again = IndexFile(self.open_files, PATH, SLOTS, NUMBERS)
        self.addCleanup(again.close)
        self.assertEqual(again.load(), "")
        self.assertEqual((again.count, again.end_position), (3, 200))
        self.assertEqual(again.room, self.file.room)

    def test_zeros(self) -> None:
        """A file of zeros, as Java makes it, is an empty one."""
        self.disk.open("/2", create=True).truncate(file_size(SLOTS, NUMBERS))
        file = IndexFile(self.open_files, "/2", SLOTS, NUMBERS)
        self.addCleanup(file.close)
        self.assertEqual(file.load(), "")
        self.assertEqual(file.count, 1)

    def test_noFile(self) -> None:
        """A file that cannot be made is not there."""
        self.disk.fail("truncate", errno.ENOSPC)
        self.assertRaises(OSError, create, self.open_files, "/2", SLOTS, NUMBERS, None)
        self.assertFalse(self.disk.exists("/2"))


class NameTests(SynchronousTestCase):
    """What a file is called that is made now."""

    def setUp(self) -> None:
        """A directory without files."""
        self.disk = MemoryDisk()
        self.open_files = OpenFiles(self.disk)

    def name(self, before: int | None = None) -> str:
        """The name behind a file of that name."""
        last = None
        if before is not None:
            path = f"/{before:017d}"
            last = create(self.open_files, path, SLOTS, NUMBERS, None)
            self.addCleanup(last.close)
        return next_path(self.disk, "/", START_MS, last)[1:]

    def test_time(self) -> None:
        """It is the time of day, to the millisecond."""
        name = self.name()
        self.assertEqual(len(name), 17)
        self.assertTrue(name.startswith("202311"), name)
        self.assertEqual(self.name(2022_11_14_22_13_20_000), name)

    def test_ahead(self) -> None:
        """Behind a name that the clock has not reached, be it by years, it is the next
        number, and is found at once."""
        self.assertEqual(self.name(2999_12_31_23_59_59_999), "29991231235960000")

    def test_taken(self) -> None:
        """A name that something else has, is not taken."""
        for name in ("29991231235960000", "29991231235960001"):
            self.disk.open(f"/{name}", create=True).close()
        self.assertEqual(self.name(2999_12_31_23_59_59_999), "29991231235960002")
