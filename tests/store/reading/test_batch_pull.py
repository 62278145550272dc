"""Reading batches, and their times."""

from __future__ import annotations

import attrs

from rocketbroker.config.store import StoreOptions
from rocketbroker.records.batches import unwrap
from rocketbroker.records.record import decode_all
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.interfaces import Placed
from rocketbroker.store.reads import (
    FOUND,
    MESSAGE_WAS_REMOVING,
    NO_MATCHED_MESSAGE,
    NO_MESSAGE_IN_QUEUE,
    OFFSET_OVERFLOW_BADLY,
    OFFSET_OVERFLOW_ONE,
    OFFSET_TOO_SMALL,
)
from tests.store.consumequeue.batches import FOLDER, BatchCase
from tests.store.stores import ROOT, START_MS, batch, put, put_batches


class ReadTests(BatchCase):
    """What a pull gets."""

    def read(self, offset: int, most: int = 32, size: int = 1 << 20) -> list[int]:
        """The offsets of the messages that a read gives; it says where to go on."""
        result = self.store.read(self.queue, offset, most, size, None)
        messages = decode_all(b"".join(result.records))
        found = [part.queue_offset for each in messages for part in unwrap(each)]
        if found:
            self.assertEqual(result.status, FOUND)
            self.assertEqual(result.next_offset, found[-1] + 1)
            self.assertEqual(result.count, len(found))
        return found

    def test_fileThatIsRemoved(self) -> None:
        """A thread removes the queue's first file while it is read: the offset was too
        small, and the pull goes on at the first message that is there."""
        drafts = put_batches(self.store, self.queue, *[[b"0", b"1"]] * 12)
        assert self.queue.batch is not None
        before = self.disk.calls["pread"]
        self.queue.batch.find(0)
        last_of_find = 2 * self.disk.calls["pread"] - before - 1

        first = []

        def note(call: str) -> None:
            if call == "remove":
                first.append(self.queue.min_offset)

        def clean(call: str) -> None:
            if call == "pread" and self.disk.calls["pread"] == last_of_find:
                self.disk.watch = note
                self.queue.begin_with(drafts[11].position)

        self.disk.watch = clean
        result = self.store.read(self.queue, 0, 32, 1 << 20, None)
        self.assertEqual(result.status, OFFSET_TOO_SMALL)
        self.assertEqual((result.next_offset, result.min_offset), (22, 22))
        self.assertEqual(first, [22], "known before the file goes")

    def test_whole(self) -> None:
        """A batch is given whole, from whichever of its messages the read begins."""
        put_batches(self.store, self.queue, [b"0"], [b"1", b"2", b"3"], [b"4"])
        self.assertEqual(self.read(0), [0, 1, 2, 3, 4])
        for offset in (1, 2, 3):
            self.assertEqual(self.read(offset), [1, 2, 3, 4])
        self.assertEqual(self.read(4), [4])

    def test_most(self) -> None:
        """As many messages as are asked for, in whole batches; the first batch has as
        many as it has."""
        put_batches(self.store, self.queue, [b"0"] * 3, [b"1"] * 3, [b"2"] * 3)
        self.assertEqual(self.read(0, 1), [0, 1, 2])
        self.assertEqual(self.read(0, 5), [0, 1, 2])
        self.assertEqual(self.read(0, 6), [0, 1, 2, 3, 4, 5])
        self.assertEqual(self.read(3, 1), [3, 4, 5])

    def test_brokersLimitIsExceededByLastBatch(self) -> None:
        """No batch is begun behind it, while what a client asks for is the most."""
        options = StoreOptions(
            max_transfer_count_on_message_in_memory=8, rocketbroker_max_pull_messages=0
        )
        self.store.configure(options)
        put_batches(self.store, self.queue, *[[b"x"] * 3] * 5)
        self.assertEqual(self.read(0), [*range(9)])
        self.assertEqual(self.read(0, 9), [*range(9)])
        self.assertEqual(self.read(0, 8), [*range(6)])
        self.store.configure(
            attrs.evolve(options, max_transfer_count_on_message_in_memory=9)
        )
        self.assertEqual(self.read(0), [*range(9)])

    def test_bytes(self) -> None:
        """As many bytes as fit, but always one batch."""
        put_batches(self.store, self.queue, *[[b"x" * 500] * 2] * 3)
        self.assertEqual(self.read(0, 32, 100), [0, 1])
        self.assertEqual(self.read(0, 32, 3000), [0, 1, 2, 3])

    def test_outside(self) -> None:
        """Where nothing is, it is reported as for any queue."""
        read = self.store.read
        result = read(self.queue, 5, 32, 1000, None)
        self.assertEqual((result.status, result.next_offset), (NO_MESSAGE_IN_QUEUE, 0))
        drafts = put_batches(self.store, self.queue, [b"0", b"1"], [b"2", b"3"])
        self.queue.begin_with(drafts[1].position)
        for offset, status, onward in (
            (1, OFFSET_TOO_SMALL, 2),
            (4, OFFSET_OVERFLOW_ONE, 4),
            (9, OFFSET_OVERFLOW_BADLY, 4),
        ):
            result = read(self.queue, offset, 32, 1000, None)
            self.assertEqual((result.status, result.next_offset), (status, onward))

    def test_tags(self) -> None:
        """A batch with a tag is given to who wants it, one without to everybody: its
        messages may have tags, also if it is one."""
        tagged = Placed(b"TAGS\x01A\x02INNER_NUM\x011\x02", 1)
        self.store.append([batch(self.queue, b"0", parts=tagged)])
        self.store.dispatch(10)
        read = self.store.read
        self.assertEqual(read(self.queue, 0, 32, 1000, lambda c: c == 65).count, 1)
        result = read(self.queue, 0, 32, 1000, lambda code: code == 66)
        self.assertEqual((result.status, result.next_offset), (NO_MATCHED_MESSAGE, 1))
        put_batches(self.store, self.queue, [b"1", b"2"])
        result = read(self.queue, 0, 32, 1000, lambda code: code == 66)
        self.assertEqual((result.count, result.next_offset), (2, 3))

    def test_tagsOfSingles(self) -> None:
        """A message that is alone is given to those who want its tag, and without one
        to those who want everything."""
        put(self.store, self.queue, b"0", tags="A")
        put(self.store, self.queue, b"1")
        put_batches(self.store, self.queue, [b"2"])
        for code, wanted in ((65, [0, 2]), (66, [2]), (None, [0, 1, 2])):
            matches = None if code is None else code.__eq__
            result = self.store.read(self.queue, 0, 32, 1000, matches)
            found = decode_all(b"".join(result.records))
            self.assertEqual([message.queue_offset for message in found], wanted)
            self.assertEqual(result.next_offset, 3)

    def test_warm(self) -> None:
        """The short way leaves batches to the long one."""
        put_batches(self.store, self.queue, [b"0"])
        self.assertIsNone(self.store.read_warm(self.queue, 0, 32, 1000))
        self.assertFalse(self.store.is_cold(self.queue, 0))

    def test_brokenUnits(self) -> None:
        """Units that say nonsense are passed over; nothing raises, and a reader gets
        on."""
        put_batches(self.store, self.queue, *[[b"0", b"1"]] * 6)
        file = self.disk.open(f"{FOLDER}/{segment_name(0)}")
        file.pwrite(bytes(46), 46)
        self.assertEqual(self.read(0)[-8:], [*range(4, 12)])
        file.pwrite(b"\x7f", 0)
        result = self.store.read(self.queue, 0, 1, 1000, None)
        self.assertIn(result.status, (MESSAGE_WAS_REMOVING, FOUND))
        self.assertTrue(result.next_offset > 0)
        file.pwrite(b"\xff" * 460, 0)
        result = self.store.read(self.queue, 0, 1, 1000, None)
        self.assertEqual(result.next_offset, 12)


class TimeTests(BatchCase):
    """Offsets of times."""

    def setUp(self) -> None:
        """Batches of two, stored at 10, 20, 20 and 30 ms after the start."""
        super().setUp()
        for ms in (10, 20, 20, 30):
            self.wall.now_ms = START_MS + ms
            put_batches(self.store, self.queue, [b"a", b"b"])

    def test_boundaries(self) -> None:
        """The lower boundary is the first batch of that time or later, the upper one
        the last of that time or earlier."""
        for ms, lower, upper in (
            (0, 0, 0),
            (10, 0, 0),
            (11, 2, 0),
            (20, 2, 4),
            (29, 6, 4),
            (30, 6, 6),
            (31, 6, 6),
        ):
            for is_upper, offset in ((False, lower), (True, upper)):
                found = self.store.offset_by_time(self.queue, START_MS + ms, is_upper)
                self.assertEqual(found, offset, (ms, is_upper))

    def test_first(self) -> None:
        """No offset is before the first that can be read."""
        unit = self.queue.batch.unit(2) if self.queue.batch is not None else None
        assert unit is not None
        self.queue.begin_with(unit.position)
        for upper in (False, True):
            self.assertEqual(self.store.offset_by_time(self.queue, START_MS, upper), 4)

    def test_storeTime(self) -> None:
        """Each message of a batch was stored when the batch was."""
        for offset, ms in ((0, 10), (1, 10), (3, 20), (7, 30)):
            self.assertEqual(self.store.store_time(self.queue, offset), START_MS + ms)
        self.assertEqual(self.store.store_time(self.queue, 8), -1)
        file = self.disk.open(f"{ROOT}/commitlog/{segment_name(0)}")
        file.pwrite(bytes(8), 0)
        self.assertEqual(self.store.store_time(self.queue, 0), -1)
