"""Tests of L{rocketbroker.broker.timer.recall}."""

from __future__ import annotations

import base64

from rocketbroker.broker.messages.timer_messages import decode_handle
from rocketbroker.errors import (
    BrokerError,
    IllegalOperation,
    NoPermission,
    TopicNotExist,
)
from rocketbroker.wire.command import Command
from tests.broker.rig import WALL_MS
from tests.broker.timer.case import TimerCase

#: More than one step enters.
MANY = 3000


class RecallTests(TimerCase):
    """A message that is taken back."""

    def setUp(self) -> None:
        """A broker where that is allowed."""
        super().setUp()
        self.begin(recallMessageEnable="true")

    def recall(self, handle: str, topic: str = "T") -> Command:
        """Take it back."""
        ext = {"producerGroup": "PG", "topic": topic, "recallHandle": handle}
        answer = self.rig.ask(370, ext)
        self.rig.scheduler.dispatch()
        return answer

    def handle(self, *seconds: float) -> str:
        """Send messages; the handle of the last one."""
        for each in seconds:
            answer = self.send(each, b"%d" % self.number)
        assert answer.ext is not None
        return answer.ext["recallHandle"]

    def test_taken(self) -> None:
        """It is not delivered, and others of the same time are, sent before and
        after."""
        self.handle(5.5)
        handle = self.handle(5.5)
        self.handle(5.5)
        self.pass_by(1)
        answer = self.recall(handle)
        self.assertEqual(answer.code, 0)
        assert answer.ext is not None
        self.assertEqual(answer.ext["msgId"], f"{2:032X}")
        self.pass_by(8)
        self.assertEqual(self.bodies(), [b"0", b"2"])
        self.assertEqual(self.timers.counts.topics["T"].waiting, 0)
        self.assertEqual(self.timers.timers.wheel.pending, 0)

    def test_exact(self) -> None:
        """So it is with a time that is a full second."""
        handle = self.handle(5)
        self.assertEqual(self.recall(handle).code, 0)
        self.pass_by(8)
        self.assertEqual(self.bodies(), [])

    def test_notEntered(self) -> None:
        """A kill at once does not matter, even if the time of the message has passed
        when the broker is up again."""
        handle = self.handle(5)
        self.pass_by(1)
        self.recall(handle)
        self.restart(seconds=7, recallMessageEnable="true")
        self.pass_by(2)
        self.assertEqual(self.bodies(), [])

    def test_muchNotEntered(self) -> None:
        """So it is if more has to be entered before it than a look takes."""
        handle = self.handle(5)
        self.pass_by(1)
        for _ in range(MANY):
            self.send(600)
        self.recall(handle)
        self.restart(seconds=7, recallMessageEnable="true")
        self.pass_by(4)
        self.assertEqual(self.bodies(), [])

    def test_restart(self) -> None:
        """A restart forgets neither the message nor that it was taken back."""
        handle = self.handle(5)
        self.recall(handle)
        self.pass_by(0.5)
        self.restart(recallMessageEnable="true")
        self.pass_by(8)
        self.assertEqual(self.bodies(), [])

    def test_rolled(self) -> None:
        """A message that is further ahead than the wheel can be taken back, too."""
        self.begin(recallMessageEnable="true", timerRollWindowSlot="60")
        handle = self.handle(150)
        self.pass_by(70, step=1)
        self.assertEqual(self.recall(handle).code, 0)
        self.pass_by(90, step=1)
        self.assertEqual(self.bodies(), [])
        self.assertEqual(self.timers.counts.topics["T"].waiting, 0)

    def test_off(self) -> None:
        """Without recallMessageEnable it is refused."""
        self.begin()
        handle = self.handle(5)
        self.assertRaises(NoPermission, self.recall, handle)

    def test_refused(self) -> None:
        """A handle of another topic, another broker or another time, and what is none,
        is refused."""
        self.rig.topic("U", 1)
        good = decode_handle(self.handle(5))
        for topic, handle, error in (
            ("V", good.encode(), TopicNotExist),
            ("U", good.encode(), IllegalOperation),
            ("T", good._replace(broker_name="x").encode(), IllegalOperation),
            ("T", good._replace(deliver_ms=WALL_MS).encode(), IllegalOperation),
            ("T", good._replace(deliver_ms=WALL_MS << 1).encode(), IllegalOperation),
            ("T", "", IllegalOperation),
            ("T", "?", IllegalOperation),
            ("T", base64.urlsafe_b64encode(b"v2 a b 1 c").decode(), IllegalOperation),
            ("T", base64.urlsafe_b64encode(b"v1 a b x c").decode(), IllegalOperation),
        ):
            assert issubclass(error, BrokerError)
            self.assertRaises(error, self.recall, handle, topic)
