"""Damaged stores made good again."""

from __future__ import annotations

import errno
import json
import os
import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.records.entries import SIZE
from rocketbroker.records.record import decode, encode, record_size
from rocketbroker.records.record_head import MAGIC_BLANK
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import PUT_OK
from rocketbroker.storetools.repair.backup import Done
from rocketbroker.storetools.repair.filler_records import LOST
from rocketbroker.storetools.repair.run import Keeping
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.users import GivenUsers
from tests.store.consumequeue.mixed import contents, start
from tests.store.lmq import spread
from tests.store.repairs import LOG, QUEUE, DamagedStore, repair_of
from tests.store.stores import ROOT, SEGMENT, Wall, batch, draft, opened


class RepairTests(DamagedStore):
    """Faults that are repaired, discarded, and left alone."""

    def test_good(self) -> None:
        """A good store is not touched."""
        before = dict(self.disk.calls)
        repair = self.repair()
        self.assertEqual((repair.faults, repair.copies, self.steps), (0, "", []))
        for call in ("pwrite", "truncate", "remove", "rename", "make_dirs"):
            self.assertEqual(self.disk.calls[call], before[call])

    def test_body(self) -> None:
        """A message with a corrupt body keeps its place, its properties and its tag;
        the bytes are kept."""
        position, size = self.position(7)
        self.change(LOG, position + 500, b"!")
        before = self.disk.read(LOG)[position : position + size]
        repair = self.repair()
        self.assertEqual(repair.faults, 1)
        self.assertEqual(self.kinds(), ["emptied", "moved"])
        self.expect_lost(7)
        lost = self.messages()[7]
        self.assertEqual((lost.tags, lost.properties[LOST]), ("A", str(size)))
        self.assertEqual(self.faults(), [])
        lines = self.disk.read(os.path.join(repair.copies, "changes.jsonl"))
        changes = [json.loads(line) for line in lines.splitlines()]
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        restored = bytearray(self.disk.read(LOG))
        for each in changes:
            if each["path"] == LOG:
                old = kept[each["at"] : each["at"] + each["length"]]
                restored[each["position"] : each["position"] + len(old)] = old
        self.assertEqual(restored[position : position + size], before)

    def test_smallBodies(self) -> None:
        """Bodies of every small size can be lost, though no record fits there."""
        store = opened(self.disk)
        queue = store.queue("S", 0)
        drafts = [draft(queue, b"b" * size) for size in range(1, 130)]
        store.append(drafts)
        self.assertEqual({each.status for each in drafts}, {PUT_OK})
        store.close()
        for each in drafts[::2]:
            path = os.path.join(
                ROOT, "commitlog", segment_name(each.position // SEGMENT * SEGMENT)
            )
            self.change(path, each.position % SEGMENT + 88, b"!")
        self.assertEqual(self.repair().faults, 65)
        store = opened(self.disk)
        queue = store.queue("S", 0)
        self.assertEqual(queue.max_offset, 129)
        for number in range(129):
            data = store.read(queue, number, 1, 1 << 20, None).copied()[0]
            lost = number % 2 == 0
            self.assertEqual(decode(data).body, b"" if lost else b"b" * (number + 1))
        store.close()

    def test_ownCrc(self) -> None:
        """A record whose body is right, but not its own CRC, keeps all that it says,
        and gets that CRC again."""
        position, size = self.position(6)
        old = decode(self.disk.read(LOG)[position : position + size])
        body = b"y" * (size - record_size(0, 1, len(old.property_bytes) + 20))
        record = encode(
            b"T", body, old.property_bytes, 0, 6, position, old.born_ms,
            old.born_host, old.store_ms, old.store_host, append_crc=True,
        )  # fmt: skip
        self.change(LOG, position, record[:40] + b"!" + record[41:])
        self.assertEqual([each.kind for each in self.faults()], ["crc"])
        self.repair()
        self.assertEqual(self.kinds(), ["changed", "moved"])
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.messages()[6].body, body)

    def test_head(self) -> None:
        """A size, magic, position, queue or offset that is wrong is set right from what
        the queue knows, and nothing is lost."""
        for number, at in enumerate((0, 4, 12, 20, 28)):
            position, _ = self.position(5 + 3 * number)
            self.change(LOG, position + at, b"\x41")
        self.repair()
        self.assertEqual(self.kinds(), ["mended", "moved"])
        self.expect_lost()
        self.assertEqual(self.faults(), [])

    def test_filler(self) -> None:
        """The filler of a file says another length: it is reported, and set right,
        since RocketMQ ends its log before one that is too long. Nothing is
        lost."""
        end = self.disk.read(LOG).rindex(struct.pack(">i", MAGIC_BLANK)) - 4
        for length in (SEGMENT, 1 << 27, 0, -1):
            self.change(LOG, end, struct.pack(">i", length))
            self.assertEqual([each.position for each in self.faults()], [end])
            self.repair(dry=True, left=1)
            self.assertEqual(self.kinds(), ["changed", "moved"])
            self.repair()
            self.assertEqual(self.kinds(), ["changed", "moved"])
            self.expect_lost()
            self.assertEqual(self.faults(), [])
            length_there = int.from_bytes(self.disk.read(LOG)[end : end + 4], "big")
            self.assertEqual(length_there, SEGMENT - end)

    def test_lastFiller(self) -> None:
        """So it is in the last file, as long as nothing follows yet, also after a
        crash; the right one is no fault."""
        path = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))
        end = len(self.disk.read(path).rstrip(b"\0"))
        for crashed in (False, True):
            for length in (SEGMENT - end + 1, 1 << 27, 0, SEGMENT - end):
                self.start_over()
                self.change(path, end, struct.pack(">ii", length, MAGIC_BLANK))
                if crashed:
                    self.disk.open(f"{ROOT}/abort", create=True).close()
                wrong = length != SEGMENT - end
                places = [each.position for each in self.faults()]
                self.assertEqual(places, [SEGMENT + end] * wrong, length)
                repair = self.repair()
                self.assertEqual((repair.faults, repair.left), (wrong, 0))
                self.assertEqual("changed" in self.kinds(), wrong)
                length_there = int.from_bytes(
                    self.disk.read(path)[end : end + 4], "big"
                )
                self.assertEqual(length_there, SEGMENT - end)
                self.expect_lost()
                self.assertEqual(self.faults(), [])

    def test_region(self) -> None:
        """Rubbish over several records leaves each message its place."""
        start, _ = self.position(10)
        position, size = self.position(12)
        self.change(LOG, start, b"\xaa" * (position + size - start))
        self.repair()
        found = self.messages()
        self.assertEqual([m.body for m in found[10:13]], [b""] * 3)
        self.assertEqual(found[13].body, b"13" * 600)
        self.assertEqual([m.body for m in self.messages(1)[10:12]], [b""] * 2)
        self.assertEqual(self.faults(), [])
        self.assertEqual(self.kinds(), ["emptied", "moved"])

    def test_regionNobodyKnows(self) -> None:
        """Where no queue knows what stood there, the broker steps over it; what is
        behind it stays where it was."""
        start, _ = self.position(10)
        position, _ = self.position(11)
        self.change(LOG, start, b"\xaa" * (position - start))
        for queue_id in (0, 1):
            path = os.path.join(ROOT, "consumequeue", "T", str(queue_id))
            self.disk.remove(os.path.join(path, segment_name(0)))
        self.repair(left=2)
        self.assertIn("discarded", self.kinds())
        store = opened(self.disk)
        queue = store.queue("T", 0)
        self.assertEqual(queue.max_offset, 40)
        data = store.read(queue, 11, 1, 1 << 20, None).copied()[0]
        self.assertEqual(decode(data).body, b"11" * 600)
        store.close()

    def test_queue(self) -> None:
        """Wrong, missing and zero entries are made again."""
        self.change(QUEUE, 3 * SIZE, b"\x01" * SIZE)
        self.change(QUEUE, 9 * SIZE, bytes(SIZE))
        other = os.path.join(ROOT, "consumequeue", "T", "1")
        self.disk.remove(os.path.join(other, segment_name(0)))
        repair = self.repair()
        self.expect_lost()
        moved = os.path.join(repair.copies, "consumequeue", "T", "0", segment_name(0))
        self.assertEqual(self.disk.read(moved)[9 * SIZE : 10 * SIZE], bytes(SIZE))
        self.assertEqual(self.faults(), [])

    def test_longQueueFile(self) -> None:
        """A file of a queue that is too long does not make all of them so long."""
        size = self.disk.size(QUEUE)
        file = self.disk.open(QUEUE)
        file.truncate(2 * size)
        file.pwrite(b"\x01" * SIZE, 7 * SIZE)
        file.close()
        self.repair()
        for queue_id in ("0", "1"):
            folder = os.path.join(ROOT, "consumequeue", "T", queue_id)
            for name in self.disk.list(folder):
                self.assertEqual(self.disk.size(os.path.join(folder, name)), size)
        self.expect_lost()
        self.assertEqual(self.faults(), [])

    def test_tail(self) -> None:
        """Bytes of a crash behind the last record are kept and discarded."""
        path = os.path.join(ROOT, "abort")
        self.disk.open(path, create=True).close()
        entry = self.disk.read(
            os.path.join(ROOT, "consumequeue", "T", "1", segment_name(0))
        )[39 * SIZE : 39 * SIZE + 12]
        end = int.from_bytes(entry[:8], "big") + int.from_bytes(entry[8:], "big")
        log = os.path.join(ROOT, "commitlog", segment_name(SEGMENT))
        self.change(log, end - SEGMENT, b"torn")
        repair = self.repair()
        self.assertEqual(self.kinds(), ["discarded", "start"])
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        self.assertEqual(kept[:4], b"torn")
        self.assertFalse(self.disk.exists(path))
        self.expect_lost()

    def test_lengths(self) -> None:
        """Segments get the length that their names say; what is cut off is kept."""
        file = self.disk.open(LOG)
        file.truncate(SEGMENT + 100)
        file.pwrite(b"more", SEGMENT)
        file.close()
        repair = self.repair()
        self.assertEqual(self.disk.size(LOG), SEGMENT)
        kept = self.disk.read(os.path.join(repair.copies, "before.bin"))
        self.assertEqual(kept[:100], b"more".ljust(100, b"\0"))
        self.expect_lost()

    def test_shortSegment(self) -> None:
        """Of a segment that was cut off the messages are empty, and those of the next
        one are there."""
        position, _ = self.position(20)
        file = self.disk.open(LOG)
        file.truncate(position)
        file.close()
        self.repair()
        found = self.messages()
        self.assertEqual(len(found), 40)
        self.assertEqual(found[19].body, b"19" * 600)
        self.assertEqual(found[20].body, b"")
        self.assertEqual(found[39].body, b"39" * 600)
        self.assertEqual(self.faults(), [])

    def test_dry(self) -> None:
        """A dry run says the same and changes nothing."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        before = dict(self.disk.calls)
        self.repair(dry=True, left=1)
        self.assertEqual(self.kinds(), ["emptied", "moved"])
        for call in ("pwrite", "truncate", "remove", "rename", "make_dirs"):
            self.assertEqual(self.disk.calls[call], before[call])
        file = self.disk.open(LOG)
        file.truncate(SEGMENT + 100)
        file.close()
        before = dict(self.disk.calls)
        self.assertEqual(self.repair(dry=True, left=2).faults, 2)
        self.assertEqual(self.kinds(), ["changed", "emptied", "moved"])
        for call in ("pwrite", "truncate", "remove", "rename", "make_dirs"):
            self.assertEqual(self.disk.calls[call], before[call])

    def test_ends(self) -> None:
        """The file of the last clean stop is kept and made again if it cannot be read;
        all else is repaired without it."""
        ends = os.path.join(ROOT, "rocketbroker.ends")
        good = self.disk.read(ends)

        def known(data: bytes) -> list[object]:
            """All but the stamps of files."""
            content = json.loads(data)
            return [content["published"], *(row[:-1] for row in content["queues"])]

        for is_damaged in (False, True):
            self.start_over()
            self.disk.spoil(ends, 3, 4)
            if is_damaged:
                self.change(LOG, self.position(7)[0] + 500, b"!")
            dry = self.repair(dry=True, left=None)
            repair = self.repair()
            self.assertEqual(repair.faults, 1 + is_damaged)
            self.assertEqual((dry.faults, dry.left), (repair.faults,) * 2)
            self.assertIn(ends, [each.where for each in self.steps])
            kept = os.path.join(repair.copies, "rocketbroker.ends")
            self.assertEqual(self.disk.size(kept), len(good))
            self.assertEqual(known(self.disk.read(ends)), known(good))
            self.expect_lost(*[7] * is_damaged)

    def test_inUse(self) -> None:
        """A store that a broker uses is left alone."""
        store = opened(self.disk)
        for dry in (False, True):
            error = self.assertRaises(StoreError, self.repair, dry)
            self.assertIn("used by a broker", str(error))
        store.close()

    def test_usedMeanwhile(self) -> None:
        """Who begins to use its log while it is walked is noticed."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        before = self.disk.read(LOG)
        users = GivenUsers()

        def others(keeping: Keeping | None) -> list[Done]:
            users.uses.append((9, LOG))
            return []

        repair = repair_of(self.disk, others=others, users=users)
        error = self.assertRaises(StoreError, repair.run, False)
        self.assertIn(f"Process 9 uses {LOG}", str(error))
        self.assertEqual((self.disk.read(LOG), repair.copies), (before, ""))

    def test_noRoom(self) -> None:
        """Without room for the copies nothing is changed."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        before = self.disk.read(LOG)
        self.disk.capacity = self.disk.used() + (1 << 20)
        error = self.assertRaises(StoreError, self.repair)
        self.assertIn("Nothing was changed", str(error))
        self.assertEqual(self.disk.read(LOG), before)

    def test_interrupted(self) -> None:
        """A repair that the disk ends can be run again."""
        self.change(LOG, self.position(7)[0] + 500, b"!")
        self.change(QUEUE, 3 * SIZE, b"\x01" * SIZE)
        for after in range(0, 12, 3):
            self.disk.fail("rename", errno.EIO, after=after // 3)
            self.disk.fail("datasync", errno.EIO, after=after)
            with_error = False
            try:
                self.repair()
            except StoreError as error:
                with_error = True
                self.assertIn(ROOT, str(error))
            self.disk.heal()
            if not with_error:
                break
        self.repair()
        self.expect_lost(7)
        self.assertEqual(self.faults(), [])


class OtherQueuesTests(SynchronousTestCase):
    """A store with batch queues, LMQs and extensions."""

    def test_bodies(self) -> None:
        """A batch and a message in an LMQ are emptied; all others are where
        they were, in queues of all kinds."""
        disk = MemoryDisk()
        store = start(disk, Wall())
        queue, batches = store.queue("T", 0), store.queue("B", 0)
        light = store.queue("%LMQ%a", 0)
        drafts = []
        for number in range(9):
            body = b"%d" % number * 200
            drafts += [
                draft(queue, body, "A"),
                spread(queue, body, light),
                batch(batches, body, body),
            ]
        store.append(drafts)
        while store.dispatch(100):
            pass
        before = [list(each.items()) for _, each in contents(store)]
        store.close()
        for each in (drafts[10], drafts[14]):
            log = disk.open(LOG)
            log.pwrite(b"!", each.position + 200)
            log.close()
        repair = repair_of(disk)
        repair.run(False)
        self.assertEqual((repair.faults, repair.left), (2, 0))
        store = start(disk, Wall())
        after = [list(each.items()) for _, each in contents(store)]
        before[0][7] = (7, b"")
        before[2][3] = (3, b"")
        del before[1][8:10]
        self.assertEqual(after, before)
        self.assertEqual(store.report, [])
        store.close()


class BatchQueueTests(SynchronousTestCase):
    """A store with a batch queue, in which most messages are alone."""

    def repaired(self, *hits: tuple[int, int], bodies: str = "") -> dict[int, bytes]:
        """Damage records of ten messages, and repair the store.

        @param hits: of each, its number, and the place of the byte in it.
        @param bodies: what of these is a batch of so many messages, other than 0.
        @return: the bodies that the queue has then, by offset.
        """
        disk = MemoryDisk()
        store = start(disk, Wall())
        queue = store.queue("B", 0)
        drafts = []
        for number, size in enumerate(map(int, bodies or "0" * 10)):
            body = b"%d" % number * 200
            each = batch(queue, *[body] * size) if size else draft(queue, body, "A")
            drafts.append(each)
        store.append(drafts)
        store.dispatch(100)
        store.close()
        for number, at in hits:
            log = disk.open(LOG)
            log.pwrite(b"\x11", drafts[number].position + at)
            log.close()
        repair = repair_of(disk)
        repair.run(False)
        self.assertEqual(repair.left, 0)
        store = start(disk, Wall())
        self.assertEqual(store.report, [])
        found = contents(store)[1][1]
        self.assertEqual(store.queue("B", 0).max_offset, max(found) + 1)
        store.close()
        return found

    def test_heads(self) -> None:
        """Numbers that the queue knows are set right, of batches, too."""
        wanted = {n: b"%d" % n * 200 for n in range(10)}
        for at in (0, 4, 20, 28):
            self.assertEqual(self.repaired((3, at), (4, at), (9, at)), wanted)
        found = self.repaired((1, 0), bodies="03000")
        wanted = {n: b"%d" % m * 200 for n, m in enumerate([0, 1, 1, 1, 2, 3, 4])}
        self.assertEqual(found, wanted)

    def test_bodies(self) -> None:
        """A message that is lost keeps its place, also as a batch of one; not a batch
        of several."""
        both = (3, 0), (3, 200)
        found = self.repaired(*both, (4, 200), (9, 0), (9, 200))
        wanted = {n: b"%d" % n * 200 for n in range(10)}
        self.assertEqual(found, {**wanted, 3: b"", 4: b"", 9: b""})
        found = self.repaired((1, 200), (2, 200), bodies="0120")
        self.assertEqual(found, {0: b"0" * 200, 1: b"", 4: b"3" * 200})
