"""What takes the place of lost records."""

from __future__ import annotations

import random
import struct

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.delay_messages import destination
from rocketbroker.records.names import HALF_TOPIC
from rocketbroker.records.properties import decode as decode_properties
from rocketbroker.records.record import CRC_PROPERTY_SIZE, decode, encode, record_size
from rocketbroker.records.record_head import MAGIC_BLANK, RecordHead
from rocketbroker.store.commitlog.encoder import FILLER_BYTES, MAX_PROPERTIES
from rocketbroker.store.commitlog.scanner import Blank, parse
from rocketbroker.storetools.repair.filler_records import (
    LOST,
    MAX_DEAD,
    NOBODY,
    SMALLEST_DEAD,
    FillerRecords,
    Slot,
)
from tests.records.samples import sound_size

START = 10_000
MS = 1_700_000_000_000


class FillingTests(SynchronousTestCase):
    """Regions of a log that begins at position 10,000."""

    def filled(
        self,
        data: bytes,
        slots: list[Slot],
        ends_segment: bool = False,
        is_sealed: bool = False,
    ) -> tuple[FillerRecords, list[RecordHead], int]:
        """Fill all of it.

        @return: the records that stand there then, and where they end.
        """
        log = bytearray(data)

        def read(position: int, size: int) -> bytes:
            return bytes(log[position - START : position - START + size])

        filling = FillerRecords(read, MS, is_sealed)
        filling.fill(START, START + len(data), slots, ends_segment)
        for position, patch in filling.patches:
            log[position - START : position - START + len(patch)] = patch
        self.assertEqual(len(log), len(data))
        found = []
        at = 0
        while at < len(log):
            try:
                record = parse(bytes(log), at, START + at, True)
            except Blank:
                self.assertEqual(int.from_bytes(log[at : at + 4], "big"), len(log) - at)
                break
            found.append(record)
            if is_sealed:
                self.assertEqual(sound_size(bytes(log), at, True), record[1])
            at += record[1]
        if ends_segment:
            self.assertLessEqual(at, len(log) - FILLER_BYTES)
        return filling, found, at

    def test_dead(self) -> None:
        """A region that nobody knows becomes one dead record, of any size."""
        for size in (SMALLEST_DEAD, SMALLEST_DEAD + 1, 1000):
            filling, found, end = self.filled(b"\xee" * size, [])
            self.assertEqual(end, size)
            self.assertEqual([each[5] & 0xC for each in found], [0xC])
            self.assertEqual(filling.dead, [(START, START + size)])

    def test_large(self) -> None:
        """A large region becomes several, none of them larger than can be read."""
        for size in (MAX_DEAD, MAX_DEAD + 1, 2 * MAX_DEAD + 50):
            _, found, end = self.filled(bytes(size), [])
            self.assertEqual(end, size)
            self.assertLessEqual(max(each[1] for each in found), MAX_DEAD)

    def test_endOfSegment(self) -> None:
        """Up to the end of a segment a filler does, if there is room for its head."""
        filling, found, _ = self.filled(b"\xee" * 500, [], ends_segment=True)
        self.assertEqual(found, [])
        self.assertEqual(len(filling.patches), 1)
        magic = int.from_bytes(filling.patches[0][1][4:], "big", signed=True)
        self.assertEqual(magic, MAGIC_BLANK)

    def test_lastOfSegment(self) -> None:
        """A filler stays behind the last record, however short it is: without one the
        reference ends its log there."""
        for left in (8, 9, 50, SMALLEST_DEAD - 1, SMALLEST_DEAD, 500):
            slots = [Slot(START, 300, b"T", 3, 7)]
            _, found, end = self.filled(b"\xee" * (300 + left), slots, True)
            alive = [each[4] for each in found if each[5] & 0xC == 0]
            self.assertEqual((alive, end), ([7], 300))

    def test_slots(self) -> None:
        """Records of random places and sizes keep their place; what overlaps or does
        not fit is left out; the whole is filled."""
        luck = random.Random(5)
        for _ in range(300):
            slots = []
            at = START + luck.choice((0, 0, 3, SMALLEST_DEAD, 400))
            for offset in range(luck.randrange(5)):
                size = luck.choice((91, 92, 93, 100, 120, 150, 190, 400))
                slots.append(Slot(at, size, b"T", 3, offset))
                at += size + luck.choice((0, 0, 1, 90, SMALLEST_DEAD, -5))
            size = max(at, START + SMALLEST_DEAD) - START
            size += luck.choice((0, SMALLEST_DEAD, 500))
            ends_segment = luck.random() < 0.3
            filling, found, _ = self.filled(b"\xee" * size, slots, ends_segment)
            kept = {(each.position, each.queue_offset) for each in filling.emptied}
            alive = {(each[0], each[4]) for each in found if each[5] & 0xC == 0}
            self.assertEqual(alive, kept)

    def test_before(self) -> None:
        """Before the first record must be room for a dead one, or none; else it is left
        out. One that is too small to be one hides none behind it."""
        for is_sealed in (False, True):
            least = SMALLEST_DEAD + CRC_PROPERTY_SIZE * is_sealed
            for before in (0, 1, least - 1, least, least + 1):
                slots = [
                    Slot(START, 20, b"T", 3, 6),
                    Slot(START + before, 300, b"T", 3, 7),
                    Slot(START + before + 300, 300, b"T", 3, 8),
                ]
                data = b"\xee" * (before + 600)
                filling, _, _ = self.filled(data, slots, is_sealed=is_sealed)
                kept = slots[1:] if before == 0 or before >= least else slots[2:]
                self.assertEqual(filling.emptied, kept, before)

    def test_behindMended(self) -> None:
        """A record that is whole again stays so if behind it is room for a dead one, or
        none; else it becomes a message without a body that takes the room."""
        record = encode(b"T", b"b" * 99, b"", 3, 7, START + 1, MS, NOBODY, MS, NOBODY)
        behind = START + len(record)
        slot = Slot(START, len(record), b"T", 3, 7)
        for left in (0, 1, SMALLEST_DEAD - 1, SMALLEST_DEAD, SMALLEST_DEAD + 1):
            is_mended = left == 0 or left >= SMALLEST_DEAD
            for more in (0, 300):
                slots = [slot, Slot(behind + left, more, b"T", 3, 8)]
                filling, found, end = self.filled(
                    record + b"\xee" * (left + more), slots
                )
                self.assertEqual(filling.mended, [slot] * is_mended)
                self.assertEqual(slot in filling.emptied, not is_mended)
                self.assertEqual(end, len(record) + left + more)
                self.assertEqual(found[0][:5], (START, found[0][1], b"T", 3, 7))
                dead = [(behind, behind + left)] if is_mended and left else []
                self.assertEqual(filling.dead, dead)
                alive = [each[4] for each in found if not each[5] & 0xC]
                self.assertEqual(alive, [7, 8] if more else [7])

    def test_smallSealed(self) -> None:
        """What has no room for a CRC of its own has none: a dead record, or a message
        that had none."""
        text = b"a\x01b"
        log = bytearray()
        for size in range(SMALLEST_DEAD, SMALLEST_DEAD + CRC_PROPERTY_SIZE):
            body = bytes(size - record_size(0, 1, len(text)))
            whole = encode(b"T", body, text, 3, 7, 0, MS, NOBODY, MS, NOBODY)
            for slots in ([], [Slot(0, size, b"T", 3, 7)]):
                log[:] = whole[:88] + b"!" + whole[89:]
                filling = FillerRecords(
                    lambda at, size: bytes(log[at : at + size]), MS, True
                )
                filling.fill(0, size, slots, False)
                for position, patch in filling.patches:
                    log[position : position + len(patch)] = patch
                self.assertEqual(len(log), size)
                self.assertEqual(sound_size(bytes(log)), size)
                self.assertEqual(filling.emptied, slots)

    def test_properties(self) -> None:
        """A message keeps its properties, whether something ends the last one or not,
        and says besides that its body is lost, if there is room."""
        mark = f"{LOST}\x01000\x02"
        for text in (b"", b"a\x01b", b"a\x01b\x02"):
            for more in range(120):
                record = encode(
                    b"T", bytes(1 + more), text, 3, 7, START, MS, NOBODY, MS, NOBODY
                )
                damaged = record[:88] + b"!" + record[89:]
                slot = Slot(START, len(record), b"T", 3, 7)
                for is_sealed in (False, more > CRC_PROPERTY_SIZE):
                    filling, found, _ = self.filled(
                        damaged, [slot], is_sealed=is_sealed
                    )
                    self.assertEqual(filling.emptied, [slot])
                    properties = decode_properties(found[0][7])
                    seal = CRC_PROPERTY_SIZE * is_sealed
                    if more > len(mark) + seal:
                        self.assertEqual(properties[LOST].strip(), str(len(record)))
                    self.assertEqual(properties.get("a"), "b" if text else None)

    def test_longProperties(self) -> None:
        """So it does however long they are; but its place comes first where they leave
        no room for what is left of the body."""
        for is_sealed in (False, True):
            most = MAX_PROPERTIES - CRC_PROPERTY_SIZE * is_sealed
            for less in range(1, 260, 3):
                text = b"a\x01%b\x02" % (b"b" * (most - 3 - less))
                for size in (40, 400):
                    record = encode(
                        b"T", bytes(size), text, 3, 7, START, MS, NOBODY, MS, NOBODY,
                        append_crc=is_sealed,
                    )  # fmt: skip
                    damaged = record[:88] + b"!" + record[89:]
                    slot = Slot(START, len(record), b"T", 3, 7)
                    filling, found, _ = self.filled(
                        damaged, [slot], is_sealed=is_sealed
                    )
                    self.assertEqual(filling.emptied, [slot])
                    self.assertEqual(found[0][2:5], (b"T", 3, 7))
                    if size > SMALLEST_DEAD or less >= size:
                        self.assertTrue(found[0][7].startswith(text), (less, size))
                    else:
                        self.assertEqual(
                            decode_properties(found[0][7])[LOST], str(len(record))
                        )

    def test_sealed(self) -> None:
        """In a log whose records have CRCs of their own, all that is put there has
        one."""
        luck = random.Random(6)
        least = record_size(0, 1, CRC_PROPERTY_SIZE)
        for _ in range(300):
            slots = []
            at = START + luck.choice((0, 0, SMALLEST_DEAD + CRC_PROPERTY_SIZE, 400))
            for offset in range(luck.randrange(5)):
                size = least + luck.choice((0, 1, 5, 20, 30, 31, 60, 100, 120, 400))
                slots.append(Slot(at, size, b"T", 3, offset))
                at += size + luck.choice((0, 0, 1, 90, SMALLEST_DEAD, 115, -5))
            size = max(at, START + 2 * SMALLEST_DEAD) - START
            size += luck.choice((0, SMALLEST_DEAD, 500))
            ends_segment = luck.random() < 0.3
            filled = self.filled(b"\xee" * size, slots, ends_segment, True)
            kept = {(each.position, each.queue_offset) for each in filled[0].emptied}
            alive = {(each[0], each[4]) for each in filled[1] if each[5] & 0xC == 0}
            self.assertEqual(alive, kept)
        _, found, end = self.filled(bytes(2 * MAX_DEAD + 50), [], is_sealed=True)
        self.assertEqual((len(found), end), (3, 2 * MAX_DEAD + 50))

    def test_sealedProperties(self) -> None:
        """So has a message that keeps its properties, by their exact room."""
        for properties in (b"", b"a\x01b", b"a\x01b\x02"):
            for more in range(0, 200, 7):
                record = encode(
                    b"T", bytes(1 + more), properties, 3, 7, START, MS, bytes(8), MS,
                    bytes(8), append_crc=True,
                )  # fmt: skip
                damaged = record[:88] + b"!" + record[89:]
                slot = Slot(START, len(record), b"T", 3, 7)
                filling, found, _ = self.filled(damaged, [slot], is_sealed=True)
                self.assertEqual(filling.emptied, [slot])
                self.assertIn(properties, found[0][7])

    def test_waiting(self) -> None:
        """A delayed message of which nothing is known any more is one that brokers
        drop when its time comes; one that says where it belongs goes there."""
        topic = b"SCHEDULE_TOPIC_XXXX"
        own = b"REAL_TOPIC\x01T\x02REAL_QID\x013\x02DELAY\x012\x02"
        record = encode(
            topic, b"body" * 9, own, 1, 7, START, MS, bytes(8), MS, bytes(8)
        )
        slot = Slot(START, len(record), topic, 1, 7)
        damaged = record[:88] + b"!" + record[89:]
        for data, wanted in ((bytes(len(record)), None), (damaged, ("T", 3))):
            filling, _, _ = self.filled(data, [slot])
            self.assertEqual(filling.emptied, [slot])
            log = bytearray(data)
            for position, patch in filling.patches:
                log[position - START : position - START + len(patch)] = patch
            message = decode(bytes(log))
            self.assertEqual(destination(message), wanted)
            if wanted is None:
                self.assertEqual(message.properties["REAL_TOPIC"], HALF_TOPIC)
                self.assertEqual(message.properties["REAL_QID"], "0")

    def test_mended(self) -> None:
        """A record of which only the position is wrong is whole again."""
        record = encode(b"T", b"body", b"", 3, 7, START + 1, MS, bytes(8), MS, bytes(8))
        slot = Slot(START, len(record), b"T", 3, 7)
        filling, found, _ = self.filled(record, [slot])
        self.assertEqual(filling.mended, [slot])
        self.assertEqual(found[0][:5], (START, len(record), b"T", 3, 7))

    def test_ofAnother(self) -> None:
        """A record of another place, as in a file that was copied over this one, is no
        record of this one, though it has the same size: its body is not handed out."""
        head = b"body", b"a\x01b\x02", 3
        record = encode(b"T", *head, 9, START + 800, MS, bytes(8), MS, bytes(8))
        for more in (0, 9, -1):
            slot = Slot(START, len(record) + more, b"T", 3, 7)
            data = (record + bytes(9))[: slot.size]
            filling, found, _ = self.filled(data, [slot])
            self.assertEqual((filling.mended, filling.emptied), ([], [slot]))
            self.assertNotIn(b"a\x01b", found[0][7])

    def test_oneNumber(self) -> None:
        """A wrong position, or a wrong offset, is no sign of another record: the right
        one is put back."""
        record = encode(b"T", b"body", b"", 4, 7, START, MS, NOBODY, MS, NOBODY)
        for offset, position in ((7, 800), (9, START), (-1, START)):
            damaged = record[:20] + struct.pack(">qq", offset, position) + record[36:]
            slot = Slot(START, len(record), b"T", 3, 7)
            filling, _, _ = self.filled(damaged, [slot])
            self.assertEqual(filling.mended, [slot])
