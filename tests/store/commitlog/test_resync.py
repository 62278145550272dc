"""What stands behind a place where no record can be read."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.commitlog.loading import load_segments
from rocketbroker.store.commitlog.resync import CORRECTED_MS, PIECE, Resync
from rocketbroker.store.commitlog.segments import Segments
from rocketbroker.testing.files import MemoryDisk
from tests.store.snapshots import log_file
from tests.store.stores import ROOT, SEGMENT, START_MS, Wall, opened, put


class ResyncTests(SynchronousTestCase):
    """A log that is damaged."""

    def setUp(self) -> None:
        """Some records in two segments."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        self.store = opened(self.disk, self.wall)
        self.queue = self.store.queue("T", 0)
        self.drafts = put(self.store, self.queue, b"one", b"two", b"three")
        for number in range(6):
            body = b"%d" % number * 20_000
            self.drafts += put(self.store, self.queue, body)

    def next_whole(self, position: int, since_ms: int = 0, size: int = SEGMENT) -> int:
        """Look, in the files as they are."""
        segments = Segments(OpenFiles(self.disk), [f"{ROOT}/commitlog"], size)
        load_segments(self.disk, segments)
        return Resync(segments, since_ms).next_whole(position)

    def spoil(self, position: int, content: bytes) -> None:
        """Change some bytes."""
        file = self.disk.open(log_file(position // SEGMENT * SEGMENT))
        file.pwrite(content, position % SEGMENT)

    def test_size(self) -> None:
        """A broken record's own size is believed if it leads to a whole one: a record
        that its body contains does not count."""
        head = self.drafts[-1].end
        content = self.disk.read(log_file())[: self.drafts[0].end]
        at = head + 88 + 5
        inside = content[:28] + at.to_bytes(8, "big") + content[36:]
        outer, last = put(self.store, self.queue, b"outer" + inside, b"last")
        self.assertEqual(outer.position, head)
        self.assertEqual(self.next_whole(head), last.position)
        self.spoil(head, b"\1")
        self.assertEqual(self.next_whole(head), at)

    def test_search(self) -> None:
        """Where the size is corrupt, the next magic number that belongs to a whole
        record."""
        second, third = self.drafts[1:3]
        self.spoil(second.position, b"\1")
        self.assertEqual(self.next_whole(second.position), third.position)
        self.spoil(third.position + 88, b"?")
        self.assertEqual(self.next_whole(second.position), third.end)

    def test_filler(self) -> None:
        """The last record of a segment leads to the filler behind it, or else to the
        next segment."""
        last = max(each.end for each in self.drafts if each.end < SEGMENT)
        (draft,) = [each for each in self.drafts if each.end == last]
        self.assertEqual(self.next_whole(draft.position), last)
        self.spoil(draft.position, b"\1")
        self.assertEqual(self.next_whole(draft.position), SEGMENT)

    def test_nothing(self) -> None:
        """Behind the last record is nothing, nor behind the last segment."""
        last = self.drafts[-1]
        self.assertEqual(self.next_whole(last.position), -1)
        self.assertEqual(self.next_whole(last.end), -1)
        self.assertEqual(self.next_whole(99 * SEGMENT), -1)

    def test_earlierLife(self) -> None:
        """Records stored long before the one in front of the place are left over from
        what was given up once; a little before it, a clock was put right."""
        third = self.drafts[2]
        position = self.drafts[1].position
        latest = START_MS + CORRECTED_MS
        self.assertEqual(self.next_whole(position, latest), third.position)
        self.assertEqual(self.next_whole(position, latest + 1), -1)

    def test_elsewhere(self) -> None:
        """A whole record at another place than it says does not count."""
        first, second = self.drafts[:2]
        content = self.disk.read(log_file())
        rest = SEGMENT - second.position
        self.spoil(second.position, content[: first.end].ljust(rest, b"\0"))
        self.spoil(SEGMENT, bytes(SEGMENT))
        self.assertEqual(self.next_whole(first.position), -1)

    def test_pieces(self) -> None:
        """A record is found wherever the pieces that are read meet in it."""
        disk = MemoryDisk()
        size = 4 * PIECE
        store = opened(disk, mapped_file_size_commit_log=size)
        queue = store.queue("T", 0)
        near = PIECE - 135 - 92
        put(store, queue, b"one", b"x" * near)
        draft = put(store, queue, b"two")[0]
        store.close()
        self.disk = disk
        zeros = bytes(draft.position)
        for shift in range(12):
            disk.open(log_file()).pwrite(zeros, 0)
            self.assertEqual(self.next_whole(shift * 20, size=size), draft.position)
