"""Tests of L{rocketbroker.storetools.pending_timers}."""

from __future__ import annotations

from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.records.record import StoredMessage
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools import inspect
from rocketbroker.storetools.pending_timers import PendingTimers
from rocketbroker.storetools.verify.report import Remark
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
        self.assertEqual(
            self.states(timers), ["fired", "pending", "pending", "pending"]
        )
        self.assertEqual(list(timers.findings()), [])

    def test_fine(self) -> None:
        """The precision is that of the files."""
        self.begin(timerPrecisionMs="100")
        self.send(30)
        self.pass_by(5)
        self.stop()
        (row,) = self.opened().rows()
        self.assertEqual(row["next_due_ms"], WALL_MS + 29_900)

    def test_snapshots(self) -> None:
        """Where RocketMQ's broker wrote wheels whole, a remark says that the wheel's
        own file may be older."""
        self.send(30)
        self.pass_by(5)
        self.stop()
        self.rig.disk.open("/store/timerwheel.52", create=True).close()
        (remark,) = self.opened().findings()
        assert isinstance(remark, Remark)
        self.assertIn("timerwheel.52 of RocketMQ's broker may be newer", remark.text)

    def test_new(self) -> None:
        """A message that is not in the wheel yet is new."""
        self.send(30)
        self.pass_by(2)
        self.send(31)
        timers = self.opened(self.rig.disk.image(keep_all=True))
        self.assertEqual(self.states(timers), ["pending", "new"])
        (row,) = timers.rows()
        self.assertEqual(row["not_entered"], 1)

    def test_recalls(self) -> None:
        """What takes another one back is told from it."""
        self.send(30, TIMER_DEL_UNIQKEY="T+x")
        self.pass_by(2)
        self.stop()
        self.assertEqual(self.states(self.opened()), ["recalls"])

    def test_recalled(self) -> None:
        """What is taken back is told from what waits, before its time and after."""
        for seconds in (3, 30):
            self.send(seconds, key="x")
            self.send(seconds, key="y")
            self.send(seconds, TIMER_DEL_UNIQKEY="T+x")
        self.pass_by(5)
        self.stop()
        states = self.states(self.opened())
        self.assertEqual(states[:3], ["recalled", "fired", "recalls"])
        self.assertEqual(states[3:], ["recalled", "pending", "recalls"])

    def test_rolls(self) -> None:
        """What is further ahead than the wheel reaches is entered anew; then its copy
        waits."""
        self.begin(timerRollWindowSlot="10")
        self.send(13)
        self.pass_by(2)
        image = self.rig.disk.image(keep_all=True)
        self.pass_by(7)
        self.stop()
        self.assertEqual(self.states(self.opened()), ["rolled", "pending"])
        self.assertEqual(self.states(self.opened(image)), ["rolls"])

    def test_waiting(self) -> None:
        """All that waits, in the wheel or before it."""
        for seconds in (2, 30):
            self.send(seconds, b"%d" % seconds)
        self.pass_by(5)
        self.send(31, b"31")
        timers = self.opened(self.rig.disk.image(keep_all=True))
        found = [message.body for message in timers.waiting()]
        self.assertEqual(found, [b"30", b"31"])
        self.assertEqual(len(list(timers.waiting("T"))), 2)
        self.assertEqual(list(timers.waiting("U")), [])

    def test_none(self) -> None:
        """A directory without timers has no row, and no fault."""
        self.stop()
        timers = self.opened()
        self.assertEqual((list(timers.rows()), list(timers.findings())), ([], []))

    def test_faults(self) -> None:
        """Units and messages that are not there are faults, and so is a wheel of
        another length."""
        for seconds in (30, 40, 40):
            self.send(seconds)
        self.pass_by(5)
        self.stop()
        self.rig.disk.open(LOG).pwrite(bytes(52), 0)
        self.rig.disk.open(LOG).pwrite((99_999).to_bytes(8, "big"), 104 + 28)
        end, one, two, remark = self.opened().findings()
        self.assertIn("knows of units up to 156", end.text)
        self.assertIn(f"due at {WALL_MS + 29_000} stands there", one.text)
        self.assertIn("cannot be read", two.text)
        self.assertIsInstance(remark, Remark)
        self.assertIn("1 slots of the wheel count", remark.text)
        self.rig.disk.open("/store/timerwheel").truncate(5)
        fault, _ = self.opened().findings()
        self.assertIn("it has 5 bytes", fault.text)
