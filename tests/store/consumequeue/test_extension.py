"""Extensions of queues: their units, and how they come through stops."""

from __future__ import annotations

import contextlib
import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import ENTRY
from rocketbroker.records.hashing import tag_code
from rocketbroker.store.consumequeue.extension import (
    AHEAD_BYTES,
    Extension,
    UnitRun,
    is_address,
)
from rocketbroker.store.consumequeue.files import QueueFiles
from rocketbroker.store.consumequeue.loading import QueueLoading
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import ROOT, START_MS, Wall, bodies, draft, opened, put

FOLDER = f"{ROOT}/consumequeue_ext/T/0"
FIRST = -(1 << 63)
SIZE = 100


def entries(count: int) -> list[bytes]:
    """Entries with tag codes 0, 1, 2..."""
    return [ENTRY.pack(number * 100, 100, number) for number in range(count)]


class UnitTests(SynchronousTestCase):
    """Units in files of 100 bytes."""

    def setUp(self) -> None:
        """No units yet."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.extension = self.make()

    def make(self) -> Extension:
        """The extension that is on the disk."""
        files = QueueFiles(OpenFiles(self.disk), "/s/ext", SIZE)
        QueueLoading(OpenFiles(self.disk), True, self.fail).load([([files], 1)])
        return Extension(files)

    def enter(self, *bit_maps: bytes) -> list[bytes]:
        """Write units; the entries with their addresses."""
        for number, bit_map in enumerate(bit_maps):
            self.extension.add(number, number, START_MS, bit_map)
        return self.extension.enter(entries(len(bit_maps)))

    def addresses(self, found: list[bytes]) -> list[int]:
        """The bytes at which the units of entries begin."""
        return [ENTRY.unpack(entry)[2] - FIRST for entry in found]

    def test_addresses(self) -> None:
        """An entry gets the address of its unit; position and size stay."""
        (_, second) = found = self.enter(b"", b"map")
        self.assertEqual(self.addresses(found), [0, 20])
        self.assertEqual(ENTRY.unpack(second)[:2], (100, 100))
        address = ENTRY.unpack(second)[2]
        self.assertTrue(is_address(address))
        unit = self.extension.unit(address)
        assert unit is not None
        self.assertEqual(tuple(unit), (1, START_MS, b"map"))
        self.assertEqual(self.extension.tag_code(address), 1)

    def test_hashes(self) -> None:
        """No hash of a tag is an address."""
        for code in (-(1 << 31), -1, 0, (1 << 31) - 1):
            self.assertFalse(is_address(code))
            self.assertEqual(self.extension.tag_code(code), code)

    def test_run(self) -> None:
        """Units of a run of entries are read together, and the same is read."""
        some = [b"." * (number * 7 % 70) for number in range(200)]
        addresses = [ENTRY.unpack(entry)[2] for entry in self.enter(*some)]
        for order in (addresses, addresses[::-1]):
            run = UnitRun(self.extension)
            units = [run.unit(address) for address in order]
            self.assertEqual(units, [self.extension.unit(each) for each in order])
        run = UnitRun(self.extension)
        self.assertIsNone(run.unit(addresses[-1] + 10_000))
        self.assertIsNone(run.unit(addresses[3] + 1))

    def test_runEnd(self) -> None:
        """No unit behind the last one that counts is read, and one that is longer than
        what is read at once is."""
        self.disk.make_dirs("/s/long")
        files = QueueFiles(OpenFiles(self.disk), "/s/long", 4 * AHEAD_BYTES)
        self.extension = Extension(files)
        some = self.enter(b"a", b"." * AHEAD_BYTES, b"c")
        addresses = [ENTRY.unpack(entry)[2] for entry in some]
        self.extension.bound(lambda at, most: b"".join(some[at:2]), 0, 2, False)
        run = UnitRun(self.extension)
        self.assertIsNone(run.unit(addresses[2]))
        for number, bit_map in ((0, b"a"), (1, b"." * AHEAD_BYTES)):
            unit = run.unit(addresses[number])
            assert unit is not None
            self.assertEqual(unit.bit_map, bit_map)

    def test_rollOver(self) -> None:
        """The last four bytes of a file stay free: a unit that would reach into them
        begins the next file, and two bytes say so."""
        found = self.enter(*[b""] * 4, b"x" * 60, b"y" * 55)
        self.assertEqual(self.addresses(found), [0, 20, 40, 60, 100, 200])
        data = self.disk.read(f"/s/ext/{segment_name(0)}")
        self.assertEqual(data[80:82], b"\xff\xff")
        data = self.disk.read(f"/s/ext/{segment_name(100)}")
        self.assertEqual(data[80:82], b"\xff\xff")
        for entry, bit_map in zip(found[3:], (b"", b"x" * 60, b"y" * 55), strict=True):
            unit = self.extension.unit(ENTRY.unpack(entry)[2])
            assert unit is not None
            self.assertEqual(unit.bit_map, bit_map)

    def test_most(self) -> None:
        """A unit that fits into no file is left out, and the entry keeps its code."""
        found = self.enter(b"x" * 76, b"x" * 77, b"")
        codes = [ENTRY.unpack(entry)[2] for entry in found]
        self.assertEqual(codes, [FIRST, 1, FIRST + 100])

    def test_noUnit(self) -> None:
        """Addresses where no unit is give none; then everybody gets the message."""
        self.enter(b"", b"")
        for address in (FIRST + 1, FIRST + 40, FIRST + 4000, FIRST + (1 << 62)):
            self.assertIsNone(self.extension.unit(address))
            self.assertIsNone(self.extension.tag_code(address))
            self.assertTrue(self.extension.matching(lambda code: False)(address))
        matching = self.extension.matching(lambda code: code == 1)
        self.assertEqual(
            [matching(code) for code in (0, 1, FIRST, FIRST + 20)],
            [False, True, False, True],
        )

    def test_keptAddress(self) -> None:
        """An entry that is kept with the address that it had before a stop leads
        nowhere: what is written there now is another's."""
        (old,) = self.enter(b"")
        again = self.make()
        again.add(1, 7, START_MS, b"")
        kept, new = again.enter([old, entries(1)[0]])
        self.assertIsNone(again.tag_code(ENTRY.unpack(kept)[2]))
        self.assertEqual(again.tag_code(ENTRY.unpack(new)[2]), 7)

    def test_diskRefuses(self) -> None:
        """What the disk refused is written by the next try, in the same place."""
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertRaises(OSError, self.enter, b"")
        self.extension.pending.clear()
        self.assertEqual(self.addresses(self.enter(b"", b"")), [0, 20])

    def test_bound(self) -> None:
        """A start ends the units behind the one with the last address, wherever in the
        queue that is."""
        found = self.enter(*[b""] * 6)
        plain = entries(9000)
        for kept, end in ((6, 140), (5, 120), (4, 100), (1, 20)):
            table = b"".join(found[:kept] + plain)

            def read(offset: int, most: int, table: bytes = table) -> bytes:
                return table[offset * 20 : (offset + most) * 20]

            again = self.make()
            again.bound(read, 0, kept + len(plain), False)
            again.add(0, 0, 0, b"")
            (entry,) = again.enter(entries(1))
            self.assertEqual(self.addresses([entry]), [end])

    def test_nobodyPoints(self) -> None:
        """Units that nothing points to are removed."""
        self.enter(*[b""] * 6)
        again = self.make()
        again.bound(lambda offset, most: b"".join(entries(9)), 0, 9, False)
        self.assertEqual(self.disk.list("/s/ext"), [])

    def test_begin(self) -> None:
        """Files before the first unit that counts go."""
        found = self.enter(*[b""] * 12)
        self.extension.begin_with(ENTRY.unpack(found[7])[2])
        self.assertEqual(
            self.disk.list("/s/ext"), [segment_name(at) for at in (100, 200)]
        )
        self.extension.begin_with(7)
        self.assertEqual(len(self.disk.list("/s/ext")), 2)


class StoreTests(SynchronousTestCase):
    """Stores with extensions."""

    def setUp(self) -> None:
        """A store with a message with tag A, one with B, one without."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.start()
        for tags in ("A", "B", ""):
            put(self.store, self.queue, tags.encode(), tags=tags)

    def start(self, **settings: object) -> None:
        """Open the store that is on the disk."""
        more = {"enable_consume_queue_ext": True, **settings}
        self.store: Store = opened(self.disk, self.wall, **more)
        self.queue = self.store.queue("T", 0)

    def wanted(self, tags: str) -> list[bytes]:
        """The bodies that a consumer of a tag gets."""
        code = tag_code(tags)
        result = self.store.read(self.queue, 0, 32, 1 << 20, lambda c: c == code)
        data = b"".join(result.records)
        return [data[88:89]] if data else []

    def codes(self) -> list[int]:
        """What stands in the entries."""
        data = self.queue.read(0, self.queue.max_offset)
        return [code for _, _, code in ENTRY.iter_unpack(data)]

    def test_read(self) -> None:
        """Consumers do not notice: filters see tag codes, arrivals have them."""
        self.assertTrue(all(map(is_address, self.codes())))
        self.assertEqual(self.wanted("A"), [b"A"])
        self.assertEqual(self.wanted("B"), [b"B"])
        self.assertEqual(self.wanted("C"), [])
        self.assertEqual(bodies(self.store, self.queue), [b"A", b"B", b""])
        self.store.append([draft(self.queue, tags="A")])
        (arrival,) = self.store.dispatch(10)
        self.assertEqual(arrival.tag_codes, [tag_code("A")])

    def test_bitMaps(self) -> None:
        """Who knows the filters is asked for a bit map of each message."""
        asked = []

        def bit_map(topic: bytes, properties: bytes) -> bytes:
            asked.append(topic)
            return b"\x05" * 14 if b"TAGS\x01A" in properties else b""

        self.store.calculate_bit_maps(bit_map)
        put(self.store, self.queue, b"1", tags="A")
        put(self.store, self.queue, b"2", tags="B")
        self.assertEqual(asked, [b"T", b"T"])
        assert self.queue.extension is not None
        units = [self.queue.extension.unit(code) for code in self.codes()[3:]]
        self.assertEqual([unit and unit.bit_map for unit in units], [b"\x05" * 14, b""])

    def test_close(self) -> None:
        """After a clean stop all can be read, and goes on behind."""
        self.store.close()
        self.start()
        self.assertEqual(self.store.report, [])
        self.assertEqual(self.wanted("B"), [b"B"])
        put(self.store, self.queue, b"C", tags="C")
        self.assertEqual(self.wanted("C"), [b"C"])
        self.assertEqual(self.codes(), [FIRST + 20 * number for number in range(4)])

    def test_switchedOff(self) -> None:
        """What there is can be read when it is switched off; what comes is ordinary;
        and it can be switched on again."""
        self.store.close()
        self.start(enable_consume_queue_ext=False)
        put(self.store, self.queue, b"C", tags="C")
        for tags in "ABC":
            self.assertEqual(self.wanted(tags), [tags.encode()])
        self.assertEqual(self.codes()[3], tag_code("C"))
        self.store.close()
        self.start()
        put(self.store, self.queue, b"D", tags="D")
        for tags in "ABCD":
            self.assertEqual(self.wanted(tags), [tags.encode()])
        self.assertEqual(self.codes()[4], FIRST + 60)

    def test_crash(self) -> None:
        """After a crash units are made again with the entries, whatever the disk has
        kept of either."""
        put(self.store, self.queue, *[b"%d" % n for n in range(300)], tags="X")
        self.store.flush()
        self.disk.crash()
        self.start()
        self.assertEqual(self.wanted("B"), [b"B"])
        self.assertTrue(all(map(is_address, self.codes())))
        self.assertEqual(self.queue.max_offset, 303)
        codes = self.codes()
        self.assertEqual(codes, sorted(set(codes)))

    def test_lostUnits(self) -> None:
        """Units that are lost with their files are missed by nobody: messages are
        given to everybody."""
        self.store.close()
        for name in self.disk.list(FOLDER):
            self.disk.remove(f"{FOLDER}/{name}")
        self.start()
        self.assertEqual(self.wanted("A"), [b"A"])
        result = self.store.read(self.queue, 1, 32, 1 << 20, lambda code: False)
        self.assertEqual(result.count, 2)

    def test_deleted(self) -> None:
        """A topic that is deleted takes its units with it."""
        self.store.delete_topic("T")
        self.assertEqual(self.disk.list(f"{ROOT}/consumequeue_ext"), [])
        put(self.store, self.queue, b"A", tags="A")
        self.assertEqual(self.codes(), [FIRST])

    def test_diskRefuses(self) -> None:
        """When the disk refuses a unit or an entry, the next step enters both, and no
        entry points to another's unit."""
        for after in range(4):
            drafts = [draft(self.queue, tags=tags) for tags in "AB"]
            self.store.append(drafts)
            self.disk.fail("pwrite", errno.EIO, after)
            with contextlib.suppress(OSError):
                self.store.dispatch(10)
            self.disk.heal()
            while self.store.dispatch(10):
                pass
        extension = self.queue.extension
        assert extension is not None
        self.assertEqual(
            [extension.tag_code(code) for code in self.codes()[3:]],
            [tag_code("A"), tag_code("B")] * 4,
        )
