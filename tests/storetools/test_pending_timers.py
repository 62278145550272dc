"""Tests of L{rocketbroker.storetools.pending_timers}."""

from __future__ import annotations

from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.pending_timers import PendingTimers
from rocketbroker.testing.files import MemoryDisk
from tests.broker.rig import WALL_MS
from tests.broker.timer.case import TimerCase

LOG = "/store/timerlog/00000000000000000000"


class PendingTimersTests(TimerCase):
    """A directory in which timers wait."""

    def opened(self, disk: MemoryDisk | None = None) -> PendingTimers:
        """The timers of the directory."""
        self.reader = StoreReader(disk or self.rig.disk, "/store")
        self.addCleanup(self.reader.close)
        return PendingTimers(self.reader)

    def states(self, timers: PendingTimers) -> list[object]:
        """The states of all messages of the topic."""
        found = inspect.messages(self.reader, TIMER_TOPIC, 0, 0, None)
        assert isinstance(found, object)
        states = []
        for message in found:
            assert isinstance(message, StoredMessage)
            states.append(timers.more(message)["state"])
        return states

    def test_rows(self) -> None:
        """What waits and when it is due, after a stop."""
        for seconds in (2, 30, 40, 40):
            self.send(seconds)
        self.pass_by(5)
        self.stop()
        timers = self.opened()
        (row,) = timers.rows()
        self.assertEqual((row["pending"], row["not_entered"]), (3, 0))
        self.assertEqual(row["next_due_ms"], WALL_MS + 29_000)
        self.assertEqual(row["last_due_ms"], WALL_MS + 39_000)
        self.assertEqual(self.states(timers), ["over", "waits", "waits", "waits"])
        self.assertEqual(list(timers.faults()), [])

    def test_fine(self) -> None:
        """The precision is that of the files."""
        self.begin(timerPrecisionMs="100")
        self.send(30)
        self.pass_by(5)
        self.stop()
        (row,) = self.opened().rows()
        self.assertEqual(row["next_due_ms"], WALL_MS + 29_900)

    def test_new(self) -> None:
        """A message that is not in the wheel yet is new."""
        self.send(30)
        self.pass_by(2)
        self.send(31)
        timers = self.opened(self.rig.disk.image(keep_all=True))
        self.assertEqual(self.states(timers), ["waits", "new"])
        (row,) = timers.rows()
        self.assertEqual(row["not_entered"], 1)

    def test_recalls(self) -> None:
        """What takes another one back is told from it."""
        self.send(30, TIMER_DEL_UNIQKEY="T+x")
        self.pass_by(2)
        self.stop()
        self.assertEqual(self.states(self.opened()), ["recalls"])

    def test_none(self) -> None:
        """A directory without timers has no row, and no fault."""
        self.stop()
        timers = self.opened()
        self.assertEqual((list(timers.rows()), list(timers.faults())), ([], []))

    def test_faults(self) -> None:
        """Units and messages that are not there are faults, and so is a wheel of
        another length."""
        for seconds in (30, 40, 40):
            self.send(seconds)
        self.pass_by(5)
        self.stop()
        self.rig.disk.open(LOG).pwrite(bytes(52), 0)
        self.rig.disk.open(LOG).pwrite((99_999).to_bytes(8, "big"), 104 + 28)
        (one, two) = self.opened().faults()
        self.assertIn(f"due at {WALL_MS + 29_000} stands there", one.text)
        self.assertIn("cannot be read", two.text)
        self.rig.disk.open("/store/timerwheel").truncate(5)
        (fault,) = self.opened().faults()
        self.assertIn("it has 5 bytes", fault.text)
