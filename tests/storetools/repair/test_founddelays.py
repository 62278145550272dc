"""The delays of levels, as the entries of a store tell them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.levels import MAX_LEVELS
from rocketbroker.records.entries import ENTRY, SIZE
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.repair.founddelays import MAX_MS, delays_in
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
        for number, more in ((0, 600_000), (5, 600_000), (6, 1), (7, 600_000)):
            self.say(number, 7_200_000 + more)

    def say(self, number: int, delay_ms: int) -> None:
        """Let an entry say another delay."""
        place = self.disk.read(self.path)[number * SIZE :][:12]
        self.change(
            number, place + (START_MS + delay_ms).to_bytes(8, "big", signed=True)
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

    def test_senseless(self) -> None:
        """Entries count that say what can be a delay, and lead to a record; if there is
        none, it is as it was said."""
        for wrong in (0, -1000, -START_MS - (1 << 62), 7_200_500, MAX_MS + 1000):
            self.setUp()
            for number in range(19):
                self.say(number, wrong)
            self.assertEqual(self.delays("1s"), "1s 1s 7200s")
            self.say(19, wrong)
            self.assertEqual(self.delays("1s"), "1s")
        for number in range(18):
            self.change(number, ENTRY.pack(number, 300, START_MS + 1000))
        for delay_ms in (1000, MAX_MS):
            self.say(18, delay_ms)
            self.say(19, delay_ms)
            self.assertEqual(self.delays("1s"), f"1s 1s {delay_ms // 1000}s")

    def test_levels(self) -> None:
        """A queue whose number can be no level tells none."""
        for queue_id in (MAX_LEVELS - 1, MAX_LEVELS, (1 << 31) - 1):
            path = self.path.replace("/2/", f"/{queue_id}/")
            self.disk.make_dirs(path.rpartition("/")[0])
            file = self.disk.open(path, create=True)
            file.pwrite(self.disk.read(self.path), 0)
            file.close()
        levels = self.delays("1s 2s").split()
        self.assertEqual(levels[:4], ["1s", "2s", "7200s", "7200s"])
        self.assertEqual(len(levels), MAX_LEVELS)

    def test_repaired(self) -> None:
        """Who repairs it without the broker's settings does not let them arrive
        early."""
        self.change(10, bytes(SIZE))
        repair = repair_of(self.disk)
        repair.run(False)
        self.assertEqual((repair.faults > 0, repair.left), (True, 0))
        entries = ENTRY.iter_unpack(self.disk.read(self.path)[: 20 * SIZE])
        self.assertEqual({entry[2] for entry in entries}, {START_MS + 7_200_000})
