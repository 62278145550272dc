"""Records with a CRC of their own."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import properties
from rocketbroker.records.record import decode
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import (
    PROPERTIES_SIZE_EXCEEDED,
    PUT_OK,
    Draft,
    Placed,
)
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.records.samples import sound_size
from tests.store.stores import (
    BORN_HOST_V6,
    ROOT,
    Wall,
    bodies,
    draft,
    opened,
    put,
    put_batches,
    unwrapped,
    with_batches,
)

ON = {
    "enabled_append_prop_crc": True,
    "enable_multi_dispatch": True,
    "enable_lmq": True,
}

#: What a record has more, and its separator.
CRC_BYTES = 20
FOREIGN = b"__CRC32#\x010123456789\x02"


class SealedCase(SynchronousTestCase):
    """A store that appends CRCs."""

    def setUp(self) -> None:
        """Begin."""
        self.start_over()

    def start_over(self) -> None:
        """It is open, with an ordinary queue and one of batches."""
        self.disk = MemoryDisk()
        self.store = with_batches(self.disk, Wall(), **ON)
        self.queue = self.store.queue("T", 0)
        self.packs = self.store.queue("B", 0)

    def append(self, *drafts: Draft) -> None:
        """Append and dispatch."""
        self.store.append(drafts)
        for each in drafts:
            self.assertEqual(each.status, PUT_OK)
        while self.store.dispatch(1000):
            pass

    def sealed(self, *drafts: Draft) -> list[dict[str, str]]:
        """The properties of all records of drafts, each of which holds by its CRC."""
        found = []
        for each in drafts:
            for position in each.positions or [each.position]:
                record = self.store.record_at(position)
                assert record is not None
                self.assertEqual(sound_size(record, 0, True), len(record))
                self.assertEqual(record.count(b"__CRC32#\x01"), 1)
                found.append(properties.decode(decode(record).property_bytes))
        return found


class RecordCrcTests(SealedCase):
    """The CRC of each kind of record."""

    def test_single(self) -> None:
        """It is the last property, covers the place of the record, and costs 20 bytes;
        after a separator if there was none."""
        drafts = [
            draft(self.queue, b"a", "t"),
            draft(self.queue, b""),
            draft(self.queue, b"b", properties=b""),
            draft(self.queue, b"c", properties=b"A\x01b"),
            draft(self.queue, b"d", born_host=BORN_HOST_V6),
            draft(self.store.queue("%RETRY%" + "g" * 150, 0), b"e"),
        ]
        sizes = [len(each.properties) + CRC_BYTES for each in drafts]
        sizes[3] += 1
        self.append(*drafts)
        found = self.sealed(*drafts)
        self.assertEqual([len(each.properties) for each in drafts], sizes)
        self.assertEqual(found[0]["TAGS"], "t")
        self.assertEqual(found[3]["A"], "b")
        self.assertEqual(bodies(self.store, self.queue), [b"a", b"", b"b", b"c", b"d"])

    def test_foreign(self) -> None:
        """One that a message comes with is dropped, wherever it stands."""
        given = [
            FOREIGN + b"A\x01b\x02",
            b"A\x01b\x02" + FOREIGN,
            b"A\x01b\x02" + FOREIGN[:-1],
            b"A\x01b\x02" + FOREIGN + FOREIGN + b"B\x01c\x02",
        ]
        drafts = [draft(self.queue, properties=each) for each in given]
        self.append(*drafts)
        for found in self.sealed(*drafts):
            self.assertEqual(found.pop("A"), "b")

    def test_notAProperty(self) -> None:
        """What only looks like one inside of a value stays."""
        own = b"A\x01__CRC32#\x01b\x02X__CRC32#\x01c\x02"
        one = draft(self.queue, properties=own)
        self.append(one)
        self.assertTrue(one.properties.startswith(own))
        record = self.store.record_at(one.position)
        assert record is not None
        self.assertEqual(sound_size(record, 0, True), len(record))

    def test_outerBatch(self) -> None:
        """Each record of a batch has its own."""
        parts = [(0, b"%d" % n, b"A\x01%d\x02" % n, 0) for n in range(5)]
        parts.append((0, b"5", b"A\x015\x02" + FOREIGN, 0))
        one = draft(self.queue, b"", parts=parts)
        self.append(one)
        found = self.sealed(one)
        self.assertEqual([each["A"] for each in found], list("012345"))
        self.assertEqual(bodies(self.store, self.queue), [b"%d" % n for n in range(6)])

    def test_lightQueues(self) -> None:
        """The offsets in LMQs stand before it."""
        light = self.store.queue("%LMQ%one", 0)
        drafts = []
        for number in range(3):
            found = b"INNER_MULTI_DISPATCH\x01%LMQ%one\x02"
            parts = Placed(found + (FOREIGN if number else b""), 1, (light,))
            drafts.append(draft(self.queue, b"%d" % number, parts=parts))
        self.append(*drafts)
        offsets = [found["INNER_MULTI_QUEUE_OFFSET"] for found in self.sealed(*drafts)]
        self.assertEqual(offsets, ["0", "1", "2"])
        self.assertEqual(bodies(self.store, light), [b"0", b"1", b"2"])

    def test_tooLong(self) -> None:
        """It counts where the length of properties is limited, to the byte."""
        for room, status in ((0, PUT_OK), (1, PROPERTIES_SIZE_EXCEEDED)):
            size = 32767 - CRC_BYTES + room
            found = b"A\x01" + b"x" * (size - 3) + b"\x02"
            drafts = [
                draft(self.queue, properties=found),
                draft(self.queue, b"", parts=[(0, b"a", found, 0)]),
            ]
            self.store.append(drafts)
            self.assertEqual([each.status for each in drafts], [status] * 2)

    def test_again(self) -> None:
        """A draft that is appended twice has one CRC."""
        one = draft(self.queue)
        self.append(one)
        self.append(one)
        self.sealed(one)

    def test_oneCannotBeEncoded(self) -> None:
        """When the others are appended one by one, they are right, too."""
        drafts = [draft(self.queue), draft(self.queue, flag=1 << 31), draft(self.queue)]
        self.store.append(drafts)
        self.assertNotEqual(drafts.pop(1).status, PUT_OK)
        self.sealed(*drafts)

    def test_recovered(self) -> None:
        """A start after a crash enters them like any other."""
        put(self.store, self.queue, *[b"%d" % number for number in range(50)], tags="t")
        self.disk.crash(keep_all=True)
        store = opened(self.disk, Wall(), **ON)
        self.assertEqual(store.report, [])
        self.assertEqual(store.queue("T", 0).max_offset, 50)

    def test_off(self) -> None:
        """By default no record has one, and what a client sends is left alone."""
        store = opened()
        one = draft(store.queue("T", 0), properties=b"A\x01b\x02" + FOREIGN)
        store.append([one])
        self.assertEqual(one.properties, b"A\x01b\x02" + FOREIGN)

    def test_innerBatch(self) -> None:
        """The record of a batch has one behind the offset of its first message."""
        drafts = put_batches(self.store, self.packs, [b"a", b"b"], [b"c"])
        found = self.sealed(*drafts)
        self.assertEqual([each["INNER_BASE"] for each in found], ["0", "2"])
        wanted = [(0, b"a"), (1, b"b"), (2, b"c")]
        self.assertEqual(unwrapped(self.store, self.packs), wanted)


class VerifyTests(SealedCase):
    """What recovery makes of it with C{forceVerifyPropCRC}."""

    def restart(self, position: int, tags: bytes, **changes: object) -> Store:
        """Turn the tags of a record into others, crash, and start again."""
        record = self.store.record_at(position)
        assert record is not None
        self.disk.crash(keep_all=True)
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        file.pwrite(record.replace(b"TAGS\x01t", b"TAGS\x01" + tags), position)
        file.datasync()
        file.close()
        given: dict[str, object] = {**ON, "force_verify_prop_crc": True, **changes}
        return opened(self.disk, Wall(), **given)

    def fill(self) -> list[Draft]:
        """Some messages."""
        return put(self.store, self.queue, b"0", b"1", b"2", b"3", tags="t")

    def test_right(self) -> None:
        """Whose CRC is right is entered."""
        store = self.restart(self.fill()[1].position, b"t")
        self.assertEqual(store.report, [])
        self.assertEqual(store.queue("T", 0).max_offset, 4)

    def test_wrong(self) -> None:
        """A record whose properties are others is reported; it keeps its place, and
        those behind it are there. Its body is right, and its entry was written
        before: so it is handed out."""
        drafts = self.fill()
        store = self.restart(drafts[1].position, b"u")
        self.assertIn("its own CRC is another", "".join(store.report))
        self.assertEqual(bodies(store, store.queue("T", 0)), [b"0", b"1", b"2", b"3"])

    def test_wrongAtTheEnd(self) -> None:
        """The last record is given up, and its place is free again."""
        drafts = self.fill()
        store = self.restart(drafts[3].position, b"u")
        self.assertIn("its own CRC is another", "".join(store.report))
        self.assertEqual(store.published_position, drafts[3].position)
        self.assertEqual(store.queue("T", 0).next_offset, 3)

    def test_without(self) -> None:
        """Records without one, as a store has them from before the setting, count by
        the CRC of their body: they were acknowledged like any other."""
        self.disk = MemoryDisk()
        self.store = opened(self.disk)
        self.queue = self.store.queue("T", 0)
        store = self.restart(self.fill()[1].position, b"u")
        self.assertEqual(store.report, [])
        self.assertEqual(store.queue("T", 0).max_offset, 4)

    def test_notAsked(self) -> None:
        """Without the setting, or without checks of recovery, it is not looked at."""
        for changes in (
            {"force_verify_prop_crc": False},
            {"check_crc_on_recover": False},
        ):
            self.start_over()
            store = self.restart(self.fill()[1].position, b"u", **changes)
            self.assertEqual(store.report, [])
            self.assertEqual(store.queue("T", 0).max_offset, 4)
