"""Telling records from rubbish."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.hashing import tag_code
from rocketbroker.store.commitlog.loading import load_segments
from rocketbroker.store.commitlog.scanner import (
    MAX_OFFSET,
    PIECE,
    Blank,
    Broken,
    Scan,
    parse,
    tag_code_of,
    whole_record,
)
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.testing.files import MemoryDisk
from tests.store.commitlog.samples import SAMPLE
from tests.store.stores import ROOT, SEGMENT, draft, opened

RECORD = bytes.fromhex(SAMPLE)
AT = 4096


class ParseTests(SynchronousTestCase):
    """One record."""

    def test_sample(self) -> None:
        """The record of the sheet is read."""
        self.assertEqual(
            parse(b"xx" + RECORD + b"yy", 2, AT, True),
            (AT, 101, b"T", 3, 7, 0, 1700000000001, b"TAGS\1a\2"),
        )

    def test_cut(self) -> None:
        """Cut anywhere it is no record."""
        for size in range(101):
            self.assertRaises(Broken, parse, RECORD[:size], 0, AT, True)

    def test_anyByte(self) -> None:
        """Any byte may be another: it is read, or no record, and nothing else."""
        for at in range(101):
            for value in (0, 1, 0x7F, 0x80, 0xFF):
                changed = RECORD[:at] + bytes([value]) + RECORD[at + 1 :]
                for tail in (b"", b"x" * 50):
                    try:
                        parse(changed + tail, 0, AT, True)
                    except (Broken, Blank):
                        continue
                    fixed = {*range(12), *range(28, 36), *range(84, 91)}
                    self.assertTrue(changed == RECORD or at not in fixed, at)

    def test_number(self) -> None:
        """A number in its queue that no entry could stand at is none."""
        for number, good in ((0, True), (MAX_OFFSET, True), (MAX_OFFSET + 1, False)):
            changed = RECORD[:20] + number.to_bytes(8, "big") + RECORD[28:]
            if good:
                self.assertEqual(parse(changed, 0, AT, True)[4], number)
            else:
                self.assertRaises(Broken, parse, changed, 0, AT, True)
        negative = RECORD[:20] + b"\xff" * 8 + RECORD[28:]
        self.assertRaises(Broken, parse, negative, 0, AT, True)

    def test_reasons(self) -> None:
        """What is wrong is reported."""
        for changed, reason in (
            (bytes(101), "nothing was written"),
            (b"x" * 101, "no magic number"),
            (RECORD[:3], "the file ends"),
            (RECORD[:100], "its size is 101"),
            (RECORD[:-1] + b"x", ""),
            (RECORD[:88] + b"HI" + RECORD[90:], "the CRC of its body is another"),
            (RECORD[:35] + b"\1" + RECORD[36:], "its position field is 4097"),
            (RECORD[:90] + b"\2" + RECORD[91:], "its lengths do not add up"),
            (RECORD[:90] + b"\x7f" + RECORD[91:], "its topic is longer"),
        ):
            try:
                parse(changed, 0, AT, True)
            except Broken as error:
                self.assertIn(reason, str(error))
                continue
            self.assertEqual(reason, "")

    def test_withoutCrc(self) -> None:
        """Without the check another body is not noticed."""
        parse(RECORD[:88] + b"HI" + RECORD[90:], 0, AT, False)

    def test_blank(self) -> None:
        """A filler is told apart, however short."""
        filler = bytes.fromhex("00000010cbd43194")
        self.assertRaises(Blank, parse, filler, 0, AT, True)
        self.assertRaises(Blank, parse, filler + bytes(200), 0, AT, True)


class WholeRecordTests(SynchronousTestCase):
    """One record of a log."""

    def test_whole(self) -> None:
        """It is read if it has at most as many bytes as are given, which the segment
        has, all that can be read, and its body is what was written."""
        disk = MemoryDisk()
        store = opened(disk)
        one = draft(store.queue("T", 0), b"one")
        store.append([one, draft(store.queue("T", 0), b"two")])
        store.close()
        segments = Segments(OpenFiles(disk), [f"{ROOT}/commitlog"], SEGMENT)
        load_segments(disk, segments)
        start, size = one.end, one.end - one.position
        for length in (size, size + 1, SEGMENT - start):
            found = whole_record(segments, start, length)
            assert found is not None
            self.assertEqual(
                (found.position, found.size, found.queue_offset), (start, size, 1)
            )
        for position, length in (
            (start, size - 1),
            (start, -1),
            (start, SEGMENT - start + 1),
            (start + 1, size),
            (2 * SEGMENT, size),
        ):
            self.assertIsNone(whole_record(segments, position, length))
        (path,) = (segment.path for segment in segments.all)
        disk.spoil(path, start + 10, start + 11)
        self.assertIsNone(whole_record(segments, start, size))
        disk.heal()
        self.assertIsNotNone(whole_record(segments, start, size))
        disk.open(path).pwrite(b"T", start + 88)
        self.assertIsNone(whole_record(segments, start, size))
        segments.close()


class TagTests(SynchronousTestCase):
    """The tag code out of the properties."""

    def test_tags(self) -> None:
        """It is the hash of TAGS; of two the last counts; a name that only ends so
        does not."""
        for properties, tags in (
            (b"", ""),
            (b"KEYS\1k\2", ""),
            (b"TAGS\1TagA\2", "TagA"),
            (b"TAGS\1TagA", "TagA"),
            (b"KEYS\1k\2TAGS\1TagA\2UNIQ_KEY\1x\2", "TagA"),
            (b"TAGS\1TagA\2TAGS\1TagB\2", "TagB"),
            (b"TAGS\1TagA\2MYTAGS\1TagB\2", "TagA"),
            (b"MYTAGS\1TagB\2", ""),
        ):
            self.assertEqual(tag_code_of(properties), tag_code(tags))


class ScanTests(SynchronousTestCase):
    """A walk through the log."""

    def walk(self, disk: MemoryDisk, size: int, end: int) -> tuple[list[int], Scan]:
        """The positions of all records, and the scan behind them."""
        segments = Segments(OpenFiles(disk), [f"{ROOT}/commitlog"], size)
        load_segments(disk, segments)
        scan = Scan(segments, 0, end, True)
        return [found.position for found in scan], scan

    def test_segments(self) -> None:
        """It goes over fillers to the next segment, and stops at the given end."""
        disk = MemoryDisk()
        store = opened(disk)
        queue = store.queue("T", 0)
        drafts = [draft(queue, b"x" * 10_000) for _ in range(20)]
        store.append(drafts)
        end = store.published_position
        found, scan = self.walk(disk, SEGMENT, end)
        self.assertEqual(found, [each.position for each in drafts])
        self.assertEqual((scan.position, scan.broken), (end, ""))
        found, scan = self.walk(disk, SEGMENT, end - 1)
        self.assertEqual(len(found), 19)
        self.assertEqual(scan.position, drafts[-1].position)

    def test_end(self) -> None:
        """Where nothing is written it ends, and says so."""
        disk = MemoryDisk()
        store = opened(disk)
        store.append([draft(store.queue("T", 0))])
        found, scan = self.walk(disk, SEGMENT, SEGMENT)
        self.assertEqual(found, [0])
        self.assertEqual(scan.position, store.published_position)
        self.assertEqual(scan.broken, "nothing was written")

    def test_largeRecords(self) -> None:
        """A record larger than what is read at once is read by itself."""
        disk = MemoryDisk()
        size = 32 << 20
        store = opened(
            disk, mapped_file_size_commit_log=size, max_message_size=10 << 20
        )
        queue = store.queue("T", 0)
        sizes = (100, PIECE, 100, 2 * PIECE + 5, PIECE - 200, 3)
        drafts = [draft(queue, b"x" * size) for size in sizes]
        store.append(drafts)
        found, scan = self.walk(disk, size, store.published_position)
        self.assertEqual(found, [each.position for each in drafts])
        self.assertEqual(scan.broken, "")

    def test_sizeOutOfTheFile(self) -> None:
        """A record that says to be larger than the rest of its segment ends it."""
        disk = MemoryDisk()
        store = opened(disk)
        drafts = [draft(store.queue("T", 0)) for _ in range(2)]
        store.append(drafts)
        file = disk.open(f"{ROOT}/commitlog/{0:020d}")
        file.pwrite(b"\x7f", drafts[1].position)
        found, scan = self.walk(disk, SEGMENT, SEGMENT)
        self.assertEqual(found, [0])
        self.assertIn("its size is", scan.broken)
