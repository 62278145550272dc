"""Tests of L{rocketbroker.broker.pop.peek}."""

from __future__ import annotations

from rocketbroker.broker.pop.peek import STEP_QUEUES
from rocketbroker.errors import InvalidParameter
from rocketbroker.remoting.cooperative_tasks import FEW_STEPS
from rocketbroker.wire.codes import RequestCode, ResponseCode
from rocketbroker.wire.command import Command
from tests.broker.pop.pops import PopCase, bodies, header_of, messages
from tests.broker.rig import answered


class PeekTests(PopCase):
    """Request 200052."""

    def peek(self, **more: object) -> Command:
        """Look at the next messages."""
        fields: dict[str, object] = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": -1,
            "maxMsgNums": 2,
            **more,
        }
        ext = {name: str(value) for name, value in fields.items()}
        return self.rig.ask(RequestCode.PEEK_MESSAGE, ext)

    def test_stays(self) -> None:
        """What is peeked at is not taken."""
        self.send("a", "b", "c")
        for _ in range(2):
            answer = self.peek()
            self.assertEqual(bodies(answer), [b"a", b"b"])
            self.assertEqual(header_of(answer).rest_num, 1)
        self.assertEqual(self.popped(), [b"a", b"b", b"c"])

    def test_nothing(self) -> None:
        """Without messages the answer says so."""
        self.assertEqual(self.peek().code, ResponseCode.PULL_NOT_FOUND)

    def test_retried(self) -> None:
        """What came again is seen under the name of the retry topic."""
        self.send("a")
        self.pop()
        self.pass_by(34)
        (message,) = messages(self.peek())
        self.assertEqual(message.topic, "%RETRY%G_T")

    def test_tooMany(self) -> None:
        """No more may be asked for than by a pop."""
        with self.assertRaises(InvalidParameter):
            self.peek(maxMsgNums=33)

    def test_wide(self) -> None:
        """Of a wide topic the queues are looked at in slices."""
        queues = (FEW_STEPS + 1) * STEP_QUEUES
        self.rig.topic("T", queues)
        for queue_id in (0, queues // 2, queues - 1):
            self.send("a", queue_id=queue_id)
        ext = {"consumerGroup": "G", "topic": "T", "queueId": "-1", "maxMsgNums": "2"}
        asked = self.rig.begin(RequestCode.PEEK_MESSAGE, ext)
        self.rig.clock.advance(0)
        self.assertGreaterEqual(self.rig.broker.slices.steps, 2)
        answer = answered(asked)
        self.assertEqual(bodies(answer), [b"a", b"a"])
        self.assertEqual(header_of(answer).rest_num, 1)
