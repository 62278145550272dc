"""Tests of L{rocketbroker.broker.pop.notification}."""

from __future__ import annotations

from collections.abc import Iterator

from twisted.internet.defer import Deferred

from rocketbroker.broker.pop.notification import STEP_QUEUES
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command
from rocketbroker.wire.headers.pull import (
    NotificationResponseHeader,
    PollingInfoResponseHeader,
)
from tests.broker.pop.pops import PopCase, handles
from tests.broker.rig import answered


class NotificationCase(PopCase):
    """Requests 200054 and 200055."""

    def begin(self, **more: object) -> Deferred[Command | None] | Command | None:
        """Ask whether there is something."""
        fields: dict[str, object] = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": -1,
            "pollTime": 15_000,
            "bornTime": self.rig.wall_ms(),
            **more,
        }
        ext = {name: str(value) for name, value in fields.items()}
        return self.rig.begin(RequestCode.NOTIFICATION, ext)

    def told(self, answer: object) -> tuple[bool, bool]:
        """What the answer says: whether there is a message, and no room to wait."""
        command = answered(answer)
        self.assertEqual(command.code, 0)
        header = NotificationResponseHeader.from_ext(command.ext)
        return header.has_msg, header.polling_full


class NotificationTests(NotificationCase):
    """Of a topic of one queue."""

    def test_there(self) -> None:
        """Messages that nobody has popped are told of at once, and stay."""
        self.send("a")
        self.assertEqual(self.told(self.begin()), (True, False))
        self.assertEqual(self.popped(), [b"a"])
        self.assertEqual(self.told(self.begin(pollTime=0)), (False, False))

    def test_waits(self) -> None:
        """One that waits is told when a message comes, or when its time is over."""
        waiting = self.begin()
        self.send("a")
        self.assertEqual(self.told(waiting), (True, False))
        self.popped()
        waiting = self.begin()
        self.pass_by(16)
        self.assertEqual(self.told(waiting), (False, False))

    def test_full(self) -> None:
        """One that has no room to wait is told so."""
        self.rig.change(maxPopPollingSize="0")
        self.assertEqual(self.told(self.begin()), (False, True))

    def test_order(self) -> None:
        """A queue that is blocked has nothing, unless the attempt is repeated."""
        self.send("a", "b")
        (handle,) = handles(self.pop(order="true", maxMsgNums=1, attemptId="1"))
        none = self.begin(order="true", pollTime=0)
        self.assertEqual(self.told(none), (False, False))
        same = self.begin(order="true", attemptId="1", pollTime=0)
        self.assertEqual(self.told(same), (True, False))
        self.ack(handle)
        self.assertEqual(self.told(self.begin(order="true")), (True, False))

    def test_retries(self) -> None:
        """What comes again is told of, too."""
        self.send("a")
        self.pop()
        self.pass_by(28)
        waiting = self.begin()
        self.pass_by(6)
        self.assertEqual(self.told(waiting), (True, False))

    def test_info(self) -> None:
        """How many pops wait for a queue, or for all, is told."""
        self.wait()
        self.wait()
        self.wait(queueId=0)
        counts = []
        for queue_id in ("-1", "0"):
            ext = {"consumerGroup": "G", "topic": "T", "queueId": queue_id}
            answer = self.rig.ask(RequestCode.POLLING_INFO, ext)
            header = PollingInfoResponseHeader.from_ext(answer.ext)
            counts.append(header.polling_num)
        self.assertEqual(counts, [2, 1])


class WideTests(NotificationCase):
    """Notifications of more queues than are looked at in one step."""

    def setUp(self) -> None:
        """A wide topic."""
        self.rig = self.make(2 * STEP_QUEUES)
        self.rig.topic("U", 2 * STEP_QUEUES)

    def test_there(self) -> None:
        """A message in the last queue is told of, some steps later."""
        self.send("a", queue_id=2 * STEP_QUEUES - 1)
        asked = self.begin()
        self.rig.clock.advance(0)
        self.assertEqual(self.told(asked), (True, False))
        self.assertGreaterEqual(self.rig.broker.slices.steps, 2)

    def test_waits(self) -> None:
        """One that waits is told when a message comes, or when its time is over."""
        waiting = self.begin(), self.begin()
        self.rig.clock.advance(0)
        self.send("a")
        self.rig.clock.advance(0)
        self.assertEqual(self.told(waiting[1]), (True, False))
        self.pass_by(16)
        self.assertEqual(self.told(waiting[0]), (True, False))
        none = self.begin(consumerGroup="H", topic="U")
        self.pass_by(16)
        self.assertEqual(self.told(none), (False, False))

    def test_arrivalBehindIt(self) -> None:
        """A message that comes to a queue that it has passed is not missed."""

        def send() -> Iterator[None]:
            self.send("a")
            yield

        waiting = self.begin()
        self.rig.broker.slices.run(self, send())
        self.rig.clock.advance(0)
        self.assertEqual(self.told(waiting), (True, False))
