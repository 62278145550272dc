"""Tests of L{rocketbroker.broker.pop.check_point_buffer}: what stays in memory."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pop import progress
from rocketbroker.broker.pop.check_point_buffer import MAX_RETRIED
from rocketbroker.broker.pop.progress import HeldCheckPoint, PointInput, PointState
from rocketbroker.broker.roles import Role
from rocketbroker.records.check_points import CheckPoint
from tests.broker.pop.pops import PopCase, handles
from tests.broker.rig import Rig
from tests.machines import MachineContract


class BufferTests(PopCase):
    """With enablePopBufferMerge."""

    def make(self, queues: int = 1, **settings: str) -> Rig:
        """A broker that keeps check points in memory."""
        return super().make(queues, enablePopBufferMerge="true", **settings)

    def written(self) -> list[str | None]:
        """The tags of what was written."""
        return [each.tags for each in self.kept()]

    def test_merged(self) -> None:
        """When all is acknowledged in time nothing is written at all, and the offset is
        committed."""
        self.send("a", "b")
        found = handles(self.pop())
        for handle in found:
            self.pass_by(2)
            self.assertEqual(self.rig.offsets.query("G", "T", 0), 0)
            self.assertEqual(self.ack(handle).code, 0)
        self.pass_by(1)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 2)
        self.pass_by(60)
        self.assertEqual(self.written(), [])
        self.assertEqual(self.rig.broker.pop.buffer.merged, 1)
        self.assertEqual(self.popped(), [])

    def test_written(self) -> None:
        """After popCkStayBufferTime it is written, with the acknowledgements that
        came; those that come later are written, too."""
        self.send("a", "b", "c")
        first, second, _ = handles(self.pop())
        self.ack(first)
        self.pass_by(11)
        self.assertEqual(self.written(), ["ck", "ack"])
        self.ack(second)
        self.assertEqual(self.written(), ["ck", "ack", "ack"])
        self.pass_by(24)
        self.assertEqual(self.popped(), [b"c"])

    def test_shortTime(self) -> None:
        """One that is due soon is written at once."""
        self.send("a")
        self.pop(invisibleTime=4_000)
        self.assertEqual(self.written(), ["ck"])

    def test_inOrder(self) -> None:
        """Offsets are committed in the order of the pops."""
        self.send("a", "b")
        (first,) = handles(self.pop(maxMsgNums=1))
        (second,) = handles(self.pop(maxMsgNums=1))
        self.ack(second)
        self.pass_by(1)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 0)
        self.ack(first)
        self.pass_by(1)
        self.assertEqual(self.rig.offsets.query("G", "T", 0), 2)

    def test_full(self) -> None:
        """Beyond popCkMaxBufferSize they are written at once."""
        self.rig.change(popCkMaxBufferSize="0")
        self.send("a", "b")
        self.pop(maxMsgNums=1)
        self.pop(maxMsgNums=1)
        self.assertEqual(len(self.rig.broker.pop.buffer), 1)
        self.assertEqual(self.written(), ["ck"])

    def test_killed(self) -> None:
        """What was in memory is popped again after a crash."""
        self.send("a", "b")
        self.ack(handles(self.pop())[0])
        self.pass_by(6)
        self.restart()
        self.assertEqual(self.popped(), [b"a", b"b"])

    def test_stopped(self) -> None:
        """What is in memory is written at the end, and goes on with the next."""
        self.send("a", "b")
        self.ack(handles(self.pop())[0])
        self.rig.clock.pump([0.1] * 5)
        stopped = self.rig.broker.stop()
        self.rig.clock.pump([0.1] * 50)
        self.successResultOf(stopped)
        self.restart()
        self.assertEqual(self.popped(), [])
        self.pass_by(34)
        self.assertEqual(self.popped(), [b"b"])


class RefusedTests(PopCase):
    """Check points that could not be stored."""

    def test_refusalWithinTheAppendIsTriedAgain(self) -> None:
        """An acting master that reaches no other broker knows it at once. It has given
        the messages, and tries again to have their check points kept, some at once."""
        self.rig = self.make(
            enableSlaveActingMaster="true", slaveReadEnable="true", totalReplicas="2"
        )
        count = MAX_RETRIED + 1
        self.send(*["a"] * count)
        self.rig.broker.services.act_as(Role.ACTING_MASTER)
        for _ in range(count):
            self.assertEqual(self.popped(maxMsgNums=1), [b"a"])
        buffer = self.rig.broker.pop.buffer
        self.assertEqual((len(buffer), buffer.failures), (count, count))
        buffer.look()
        self.assertEqual((len(buffer), buffer.failures), (count, count + MAX_RETRIED))


class PointStateTests(MachineContract, SynchronousTestCase):
    """The states of a check point."""

    MODULE, TABLE = "rocketbroker.broker.pop.progress", progress.TRANSITIONS
    STATES, INPUTS = PointState, PointInput

    def machine(self, state: PointState) -> HeldCheckPoint:
        """One that has come there."""
        held = self.held()
        held.state = state
        return held

    def state(self, machine: HeldCheckPoint) -> PointState:
        """Where it is."""
        return machine.state

    def held(self, stays: bool = False) -> HeldCheckPoint:
        """One of two messages."""
        point = CheckPoint("T", "G", 0, 5, 1000, 30_000, "broker-a", [0, 1])
        return HeldCheckPoint(point, 0, 7, 0.0, stays)

    def test_beginsByWhatItHas(self) -> None:
        """Without messages it is over; with them it is due, or waits in memory."""
        passed = HeldCheckPoint(None, 0, 7, 0.0)
        self.assertIs(passed.state, PointState.PASSED)
        self.assertIs(self.held().state, PointState.DUE)
        self.assertIs(self.held(stays=True).state, PointState.KEPT)

    def test_isOverAtItsEndsOnly(self) -> None:
        """One in the log is over when the log is flushed behind it."""
        held = self.held()
        held.end = 100
        for state in PointState:
            held.state = state
            ends = state in (PointState.PASSED, PointState.ACKED)
            self.assertEqual(held.is_over(99), ends, state)
            ends |= state is PointState.STORED
            self.assertEqual(held.is_over(100), ends, state)
