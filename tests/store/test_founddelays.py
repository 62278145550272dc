"""The delays of levels, as the entries of a store tell them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.founddelays import delays_in
from rocketbroker.store.reader import StoreReader
from rocketbroker.store.segments import segment_name
from rocketbroker.testing.files import MemoryDisk
from tests.store.repairs import repair_of
from tests.store.stores import ROOT, START_MS, draft, opened


class DelayTests(SynchronousTestCase):
    """A store of a broker with levels of its own."""

    def setUp(self) -> None:
        """Twenty messages wait two hours each, in the third level; some entries are
        wrong."""
        self.disk = MemoryDisk()
        store = opened(self.disk, None, message_delay_level="1s 5s 2h")
        queue = store.queue(SCHEDULE_TOPIC, 2)
        waiting = [draft(queue, properties=b"DELAY\x013\x02") for _ in range(20)]
        store.append(waiting)
        while store.dispatch(100):
            pass
        store.close()
        self.path = f"{ROOT}/consumequeue/{SCHEDULE_TOPIC}/2/{segment_name(0)}"
        for number, more in ((5, 600_000), (6, 1), (7, 600_000)):
            place = self.disk.read(self.path)[number * SIZE :][:12]
            self.change(
                number, place + (START_MS + 7_200_000 + more).to_bytes(8, "big")
            )

    def change(self, number: int, entry: bytes) -> None:
        """Overwrite an entry."""
        file = self.disk.open(self.path)
        file.pwrite(entry, number * SIZE)
        file.close()

    def delays(self, said: str) -> str:
        """What the entries tell."""
        reader = StoreReader(self.disk, ROOT)
        found = delays_in(reader, said)
        reader.close()
        return found

    def test_found(self) -> None:
        """Most of them tell it; what none tells is as it was said."""
        self.assertEqual(self.delays("1s 5s 10s 1d"), "1s 5s 7200s 1d")
        self.assertEqual(self.delays("4s"), "4s 4s 7200s")

    def test_repaired(self) -> None:
        """Who repairs it without the broker's settings does not let them arrive
        early."""
        self.change(10, bytes(SIZE))
        repair = repair_of(self.disk)
        repair.run(False)
        self.assertEqual((repair.faults > 0, repair.left), (True, 0))
        entries = ENTRY.iter_unpack(self.disk.read(self.path)[: 20 * SIZE])
        self.assertEqual({entry[2] for entry in entries}, {START_MS + 7_200_000})
