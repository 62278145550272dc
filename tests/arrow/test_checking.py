"""Records gathered by the entries of a queue, and checked."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.arrow.checking import opened
from rocketbroker.arrow.layout import lay_out
from rocketbroker.sources.offline import StoreOrigin
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import EVERYTHING, Piece
from rocketbroker.testing.files import MemoryDisk
from tests.examples import examples
from tests.store.stores import ROOT, SEGMENT, put
from tests.store.stores import opened as opened_store

QUEUE = Queue("T", "broker-a", 1)

#: Messages of the queue, more than fit into one file of the log, or of the queue.
COUNT = 300


def filled() -> MemoryDisk:
    """A store: messages of the queue, and between some of them those of others, in
    all distances."""
    disk = MemoryDisk()
    store = opened_store(disk)
    for number in range(COUNT):
        put(store, store.queue("T", 1), b"%d " % number * (number % 50))
        if number % 7 == 0:
            put(store, store.queue("U", 0), bytes(number * 100 % 30_000))
    store.close()
    return disk


def rows(pieces: Iterable[Piece]) -> list[tuple[int, bytes | str]]:
    """Offset and bytes of each record that pieces give; of lost ones the reason."""
    found: list[tuple[int, bytes | str]] = []
    for piece, layout in opened(pieces):
        if piece.lost:
            found += [(each, piece.lost) for each in range(piece.start, piece.until)]
            continue
        layout = lay_out(piece.records) if layout is None else layout
        data = layout.data.tobytes()
        ends = (layout.starts + layout.front["size"]).tolist()
        for offset, start, end in zip(
            layout.front["queue_offset"].tolist(),
            layout.starts.tolist(),
            ends,
            strict=True,
        ):
            found.append((offset, data[start:end]))
    return found


class CheckingTests(SynchronousTestCase):
    """L{opened} gives what reading record by record gives."""

    def setUp(self) -> None:
        """A store."""
        self.disk = filled()
        self.options = ReadOptions(
            store=ROOT, topics=("T",), broker_name="broker-a", verify_counts=True
        )

    def origin(self) -> StoreOrigin:
        """The store as it is now, read in small steps."""
        return StoreOrigin(self.options, self.disk, 20_000)

    def test_gathered(self) -> None:
        """All messages, none of them read by itself; whatever range is asked for."""
        origin = self.origin()
        for start, until in ((0, COUNT), (7, 8), (99, 201), (250, COUNT)):
            pieces = list(origin.pieces(Range(QUEUE, start, until), EVERYTHING))
            self.assertNotIn(None, [piece.places for piece in pieces])
            found = rows(pieces)
            self.assertEqual([row for row, _ in found], list(range(start, until)))
            self.assertEqual(found, rows(origin._one_by_one(QUEUE, start, until)))

    @examples()
    @given(st.integers(0, 2 * SEGMENT), st.integers(1, 255))
    def test_damagedLog(self, place: int, change: int) -> None:
        """A changed byte of the log costs at most the record that it is in, and is
        found and told as by reading one by one."""
        self.change(f"{ROOT}/commitlog", place, change)

    @examples()
    @given(st.integers(0, 3 * 2000), st.integers(1, 255))
    def test_damagedQueue(self, place: int, change: int) -> None:
        """So does one of the queue."""
        self.change(f"{ROOT}/consumequeue/T/1", place, change)

    def change(self, folder: str, place: int, change: int) -> None:
        """Change a byte of a directory's files, read, change it back."""
        names = sorted(self.disk.list(folder))
        size = self.disk.size(f"{folder}/{names[0]}")
        path = f"{folder}/{names[min(place // size, len(names) - 1)]}"
        place %= size
        before = self.disk.read(path)[place : place + 1]
        self.write(path, place, bytes([before[0] ^ change]))
        try:
            origin = self.origin()
            first, until = origin.bounds(QUEUE)
            found = rows(origin.pieces(Range(QUEUE, first, until), EVERYTHING))
            expected = rows(self.origin()._one_by_one(QUEUE, first, until))
            self.assertEqual(found, expected)
        finally:
            self.write(path, place, before)

    def write(self, path: str, place: int, data: bytes) -> None:
        """Write into a file."""
        file = self.disk.open(path)
        file.pwrite(data, place)
        file.close()
