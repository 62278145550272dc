"""Tests of L{rocketbroker.broker.pop.invisible_time}."""

from __future__ import annotations

from rocketbroker.records.receipt_handle import ReceiptHandle
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import ChangeInvisibleTimeResponseHeader
from tests.broker.pop.pops import PopCase, handles

CHANGE = RequestCode.CHANGE_MESSAGE_INVISIBLETIME


class ChangeTests(PopCase):
    """Request 200053."""

    def change(self, handle: ReceiptHandle, ms: int, **more: object) -> Command:
        """Let a message come again after some time."""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": str(handle.queue_id),
            "extraInfo": handle.text(),
            "offset": str(handle.offset),
            "invisibleTime": str(ms),
            **{name: str(value) for name, value in more.items()},
        }
        return self.rig.ask(CHANGE, ext)

    def test_sooner(self) -> None:
        """A message comes again when the new time is over, once, even if it is changed
        at once."""
        self.send("a", "b")
        first, second = handles(self.pop())
        self.ack(second)
        answer = self.change(first, 10_000)
        header = ChangeInvisibleTimeResponseHeader.from_ext(answer.ext)
        self.assertEqual(header.pop_time, self.rig.wall_ms() + 1)
        self.assertEqual(header.invisible_time, 10_000)
        self.assertEqual(header.revive_qid, first.revive_queue)
        self.pass_by(9)
        self.assertEqual(self.popped(), [])
        self.pass_by(5)
        self.assertEqual(self.popped(invisibleTime=300_000), [b"a"])
        self.pass_by(60)
        self.assertEqual(self.popped(), [])

    def test_later(self) -> None:
        """A message that takes longer does not come meanwhile; its new handle
        acknowledges it."""
        self.send("a")
        (handle,) = handles(self.pop())
        self.pass_by(20)
        answer = self.change(handle, 60_000)
        self.pass_by(50)
        self.assertEqual(self.popped(), [])
        header = ChangeInvisibleTimeResponseHeader.from_ext(answer.ext)
        handle.pop_ms, handle.invisible_ms = header.pop_time, header.invisible_time
        self.ack(handle)
        self.pass_by(60)
        self.assertEqual(self.popped(), [])
        self.assertEqual(self.rig.broker.pop.progress.in_flight("G", "T", 0), 0)

    def test_none(self) -> None:
        """Offsets at or beyond the end have no message."""
        self.send("a")
        (handle,) = handles(self.pop())
        answer = self.change(handle, 10_000, offset=1)
        self.assertEqual(answer.code, ResponseCode.NO_MESSAGE)

    def test_order(self) -> None:
        """In order, the message and what is behind it come again then."""
        self.send("a", "b")
        first, second = handles(self.pop(order="true"))
        self.ack(first)
        header = ChangeInvisibleTimeResponseHeader.from_ext(
            self.change(second, 50_000).ext
        )
        self.assertEqual(header.pop_time, second.pop_ms)
        self.assertEqual((header.invisible_time, header.revive_qid), (50_000, 999))
        self.pass_by(40)
        self.assertEqual(self.popped(order="true"), [])
        self.pass_by(10)
        self.assertEqual(self.popped(order="true"), [b"b"])
        zeros = ChangeInvisibleTimeResponseHeader.from_ext(self.change(first, 1).ext)
        self.assertEqual((zeros.pop_time, zeros.invisible_time), (0, 0))
