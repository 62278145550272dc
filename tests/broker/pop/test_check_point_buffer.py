"""Tests of L{rocketbroker.broker.pop.check_point_buffer}: what stays in memory."""

from __future__ import annotations

from tests.broker.pop.pops import PopCase, handles
from tests.broker.rig import Rig


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
