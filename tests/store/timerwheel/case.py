"""What tests of the timer wheel share: timers in memory."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.store.timerwheel.timers import Entry, Timers
from rocketbroker.store.timerwheel.units import Unit
from rocketbroker.testing.files import MemoryDisk

NOW_MS = 1_700_000_000_000

#: A segment of the timer log has so many units in these tests.
UNITS = 10
SEGMENT = UNITS * 52 + 30


class TimersCase(SynchronousTestCase):
    """Timers on a disk in memory."""

    log_end = 1 << 40

    def setUp(self) -> None:
        """An empty store."""
        self.begin()

    def begin(self) -> None:
        """Begin with an empty store."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s/config")
        self.disk.sync_dir("/")
        self.disk.sync_dir("/s")
        self.timers = self.open()

    def open(self, now_ms: int = NOW_MS, **more: object) -> Timers:
        """Timers as a start finds them."""
        options = StoreOptions(
            store_path_root_dir="/s",
            mapped_file_size_timer_log=SEGMENT,
            **more,  # type: ignore[arg-type]
        )
        timers = Timers(OpenFiles(self.disk), options)
        self.checkpoint = timers.load(now_ms, self.log_end)
        return timers

    def enter(self, *seconds: int, write_ms: int = NOW_MS) -> None:
        """Enter messages that are due so many seconds after C{NOW_MS}; their positions
        count the units of the log."""
        entries = []
        for number, second in enumerate(seconds):
            position = 1000 * (self.entered() + number + 1)
            entries.append(Entry(NOW_MS + 1000 * second, position, 99, False, 7))
        self.timers.enter(entries, write_ms)

    def entered(self) -> int:
        """How many units the log has."""
        segments, rest = divmod(self.timers.log.end, SEGMENT)
        return segments * UNITS + rest // 52

    def flush(self, read_ms: int = NOW_MS) -> None:
        """Put all on the disk."""
        flush = self.timers.begin_flush()
        checkpoint = Checkpoint(read_ms, flush.log_position, 5, 5)
        flush.write(checkpoint, 77)

    def chain(self, second: int) -> list[Unit]:
        """The units of a slot, in the order in which they were entered."""
        slot = self.timers.wheel.get(NOW_MS + 1000 * second)
        if slot is None:
            return []
        units, rest = self.timers.log.chain(slot.last, 1000)
        self.assertEqual(rest, -1)
        return units[::-1]

    def positions(self, second: int) -> list[int]:
        """The messages of a slot, in thousands."""
        return [unit.position // 1000 for unit in self.chain(second)]
