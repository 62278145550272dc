"""Tests of L{rocketbroker.broker.delaying}, from the send to the pull."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.delaying import LOOK_SECONDS
from rocketbroker.config.levels import DELAY_LEVELS, parse_levels
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY, Command
from tests.broker.rig import UNIQUE, WALL_MS, Rig, answered, pull_ext, send_ext

SEND = RequestCode.SEND_MESSAGE_V2
DELAYS = parse_levels(DELAY_LEVELS)


class DelayingCase(SynchronousTestCase):
    """A data path that delivers what has waited."""

    def setUp(self) -> None:
        """A topic T of four queues."""
        self.rig = self.begin()

    def begin(self, threads: bool = False, **settings: str) -> Rig:
        """A data path with those settings, at work."""
        rig = Rig(settings, threads=threads)
        self.addCleanup(rig.close)
        rig.topic("T", 4)
        rig.delaying.load()
        rig.delaying.start()
        return rig

    def send(
        self, level: int | str, body: bytes = b"body", queue_id: int = 0, more: str = ""
    ) -> Command:
        """Send a message with a delay level."""
        properties = f"UNIQ_KEY\x01{UNIQUE}\x02DELAY\x01{level}\x02{more}"
        ext = send_ext(queue_id=queue_id, properties=properties)
        answer = self.rig.ask(SEND, ext, body)
        self.rig.upkeep.dispatch()
        return answer

    def pass_by(self, seconds: float, step: float = LOOK_SECONDS) -> None:
        """Let time pass as it does."""
        end = self.rig.clock.seconds() + seconds
        while (left := end - self.rig.clock.seconds()) > 1e-6:
            self.rig.clock.advance(min(left, step))

    def bodies(self, queue_id: int = 0, topic: str = "T") -> list[bytes]:
        """What a queue holds."""
        return [stored.body for stored in self.rig.records(queue_id, topic)]


class DeliveryTests(DelayingCase):
    """When and what."""

    def test_levels(self) -> None:
        """Every level of the reference: not before its time, and soon after."""
        for level, delay_ms in enumerate(DELAYS, 1):
            self.rig = self.begin()
            self.send(level, b"%d" % level, queue_id=1)
            self.rig.clock.advance((delay_ms - 1) / 1000)
            self.assertEqual(self.bodies(1), [])
            self.pass_by(0.001 + LOOK_SECONDS)
            (stored,) = self.rig.records(1)
            self.assertEqual(stored.body, b"%d" % level)
            late_ms = stored.store_ms - WALL_MS - delay_ms
            self.assertTrue(0 <= late_ms <= 101, late_ms)

    def test_answer(self) -> None:
        """Its sender hears the queue that it asked for, and the place where the
        message waits."""
        self.send(2)
        answer = self.send(2, queue_id=3)
        assert answer.ext is not None
        self.assertEqual((answer.code, answer.ext["queueId"]), (0, "3"))
        self.assertEqual(answer.ext["queueOffset"], "1")
        waiting = self.rig.records(1, SCHEDULE_TOPIC)[1]
        self.assertEqual(answer.ext["msgId"], waiting.offset_id)

    def test_properties(self) -> None:
        """What is delivered has all that was sent, and where it waited."""
        self.send(1, b"hello", 2, "KEYS\x01k\x02TAGS\x01TagA\x02REAL_TOPIC\x01X\x02")
        self.pass_by(1.2)
        (waited,) = self.rig.records(0, SCHEDULE_TOPIC)
        (stored,) = self.rig.records(2)
        self.assertEqual(stored.property_bytes, waited.property_bytes)
        for name, value in (
            ("DELAY", "1"),
            ("REAL_TOPIC", "T"),
            ("REAL_QID", "2"),
            ("KEYS", "k"),
            ("UNIQ_KEY", UNIQUE),
            ("CLUSTER", "cluster-a"),
        ):
            self.assertEqual(stored.properties[name], value)
        self.assertEqual(stored.born_ms, waited.born_ms)

    def test_tooHigh(self) -> None:
        """A level that does not exist is the highest."""
        self.rig = self.begin(messageDelayLevel="1s 2s")
        self.send(99)
        self.rig.clock.advance(1.9)
        self.assertEqual(self.bodies(), [])
        self.pass_by(0.2)
        self.assertEqual(self.bodies(), [b"body"])

    def test_order(self) -> None:
        """Messages of one level arrive in the order in which they were sent."""
        for number in range(300):
            self.send(1, b"%d" % number)
        self.pass_by(1.2)
        self.assertEqual(self.bodies(), [b"%d" % number for number in range(300)])
        self.assertEqual(self.rig.delaying.delivered, 300)

    def test_compressed(self) -> None:
        """A body that was compressed stays so, with the flag that says it."""
        ext = send_ext(properties="DELAY\x011\x02", f="769")
        self.rig.ask(SEND, ext, b"x\x9c")
        self.pass_by(1.2)
        (stored,) = self.rig.records()
        self.assertEqual((stored.body, stored.sys_flag), (b"x\x9c", 769))

    def test_oneway(self) -> None:
        """A sender that does not wait is served too."""
        ext = send_ext(properties="DELAY\x011\x02")
        self.assertFalse(self.rig.hot(SEND, ext, b"x", flag=ONEWAY))
        self.rig.ask(SEND, ext, b"x")
        self.pass_by(1.2)
        self.assertEqual(self.bodies(), [b"x"])

    def test_newTopic(self) -> None:
        """A topic is made by the send, not by the delivery."""
        ext = send_ext("New", properties="DELAY\x011\x02")
        self.assertEqual(self.rig.ask(SEND, ext, b"x").code, 0)
        self.assertIsNotNone(self.rig.topics.config("New"))
        self.pass_by(1.2)
        self.assertEqual(self.bodies(0, "New"), [b"x"])

    def test_deletedTopic(self) -> None:
        """What waits for a topic that is deleted is stored all the same: it is there
        when the topic is made again."""
        self.send(1)
        self.rig.topics.delete("T")
        self.rig.store.delete_topic("T")
        self.pass_by(1.2)
        self.rig.topic("T", 4)
        self.assertEqual(self.bodies(), [b"body"])

    def test_longPoll(self) -> None:
        """A consumer that waits gets it at once."""
        self.rig.append()
        self.rig.upkeep.dispatch()
        self.send(1, b"late")
        held = self.rig.begin(RequestCode.PULL_MESSAGE, pull_ext(1, sysFlag="6"))
        assert isinstance(held, Deferred)
        self.rig.clock.advance(0.99)
        self.assertNoResult(held)
        self.pass_by(0.2, 0.01)
        self.assertEqual(answered(held).code, 0)
