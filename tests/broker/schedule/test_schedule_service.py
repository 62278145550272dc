"""Tests of L{rocketbroker.broker.schedule.schedule_service}, from the send to the
pull."""

from __future__ import annotations

import random

from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs

from rocketbroker.broker.services import DELIVERY_SECONDS
from rocketbroker.config.levels import DELAY_LEVELS, parse_levels
from rocketbroker.records.names import SCHEDULE_TOPIC
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import ONEWAY
from tests.broker.delays import DelayingCase
from tests.broker.rig import UNIQUE, WALL_MS, Rig, answered, pull_ext, send_ext

DELAYS = parse_levels(DELAY_LEVELS)
SEND = RequestCode.SEND_MESSAGE_V2


class DeliveryTests(DelayingCase):
    """When and what."""

    def test_levels(self) -> None:
        """Every level of RocketMQ: not before its time, and soon after."""
        for level, delay_ms in enumerate(DELAYS, 1):
            self.rig = self.begin()
            self.send(level, b"%d" % level, queue_id=1)
            self.rig.clock.advance((delay_ms - 1) / 1000)
            self.assertEqual(self.bodies(1), [])
            self.pass_by(0.001 + DELIVERY_SECONDS)
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
        self.assertEqual(self.rig.schedule.delivered, 300)

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
        self.rig.scheduler.dispatch()
        self.send(1, b"late")
        held = self.rig.begin(RequestCode.PULL_MESSAGE, pull_ext(1, sysFlag="6"))
        assert isinstance(held, Deferred)
        self.rig.clock.advance(0.99)
        self.assertNoResult(held)
        self.pass_by(0.2, 0.01)
        self.assertEqual(answered(held).code, 0)


class ClockTests(DelayingCase):
    """Somebody sets the clock: the time of day counts, as in RocketMQ."""

    def test_ahead(self) -> None:
        """An hour ahead, as after a sleep: what is due by then is delivered at once."""
        self.send(2)
        self.pass_by(1)
        self.rig.start_ms += 3_600_000
        self.pass_by(DELIVERY_SECONDS)
        self.assertEqual(self.bodies(), [b"body"])

    def test_backALittle(self) -> None:
        """Back, but not to before the message was stored: it waits so much longer."""
        self.pass_by(1)
        self.send(2)
        self.pass_by(3)
        self.rig.start_ms -= 2000
        self.pass_by(3.9)
        self.assertEqual(self.bodies(), [])
        self.pass_by(0.2)
        self.assertEqual(self.bodies(), [b"body"])

    def test_back(self) -> None:
        """Back to before it was stored: nobody knows when it is due, so it is now."""
        self.send(2)
        self.pass_by(1)
        self.rig.start_ms -= 3_600_000
        self.pass_by(DELIVERY_SECONDS)
        self.assertEqual(self.bodies(), [b"body"])


class ProgressTests(DelayingCase):
    """What is written down, and what a stop of any kind leaves."""

    def file(self) -> bytes:
        """What C{delayOffset.json} says."""
        path = "/store/config/delayOffset.json"
        return self.rig.disk.read(path) if self.rig.disk.exists(path) else b""

    def again(self) -> None:
        """The next broker on what is left, five seconds later."""
        now_ms = self.rig.wall_ms() + 5000
        self.at_work(Rig({}, disk=self.rig.disk, start_ms=now_ms))

    def test_flushedFirst(self) -> None:
        """The file does not pass a message whose copy is not on the disk."""
        self.send(1)
        self.pass_by(1.2)
        self.assertEqual(self.bodies(), [b"body"])
        self.rig.schedule.save()
        self.assertEqual(self.file(), b"")
        self.rig.store.flush()
        self.rig.schedule.save()
        self.assertIn(b'"offsetTable":{1:1}', self.file())

    def test_synchronous(self) -> None:
        """With SYNC_FLUSH what is delivered is flushed at once, though nobody waits;
        consumers get it after that."""
        self.rig = self.begin(flushDiskType="SYNC_FLUSH")
        self.send(1)
        self.pass_by(1.2)
        store = self.rig.store
        self.assertEqual(store.flushed_position, store.published_position)
        self.assertEqual(self.bodies(), [b"body"])

    def test_cleanStop(self) -> None:
        """After a clean stop nothing is delivered twice, and nothing is forgotten."""
        self.send(1, b"1")
        self.send(3, b"3")
        self.pass_by(1.2)
        self.successResultOf(self.rig.schedule.stop())
        self.rig.store.flush()
        self.rig.schedule.save()
        self.rig.close()
        self.again()
        self.pass_by(10)
        self.assertEqual(self.bodies(), [b"1", b"3"])

    def test_killed(self) -> None:
        """After a kill what was delivered since the file was written is found in the
        log, and not delivered again."""
        for number in range(3):
            self.send(1, b"%d" % number)
            self.pass_by(1.2)
            if number == 1:
                self.rig.store.flush()
                self.rig.schedule.save()
        self.send(1, b"waits")
        self.rig.disk.crash(keep_all=True)
        self.again()
        self.pass_by(1.2)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2", b"waits"])

    def test_levelsGone(self) -> None:
        """Levels that messageDelayLevel does not have any more deliver nothing, which
        is said; when they are back, so is what waits in them."""
        self.send(3, b"3")
        self.rig.close()
        with capturedLogs() as events:
            self.at_work(Rig({"messageDelayLevel": "1s 5s"}, disk=self.rig.disk))
        (event,) = events
        self.assertEqual((event["count"], event["delay_level"]), (1, 3))
        self.pass_by(11)
        self.assertEqual(self.bodies(), [])
        self.rig.close()
        self.again()
        self.pass_by(0.1)
        self.assertEqual(self.bodies(), [b"3"])

    def test_power(self) -> None:
        """After a power failure, whatever blocks it has left, each message that was on
        the disk when its sender heard so is delivered, with its copy or once more."""
        for seed in range(30):
            self.at_work(Rig({}))
            luck = random.Random(seed)
            sent = []
            for number in range(8):
                sent.append(b"%d" % number * luck.randrange(1, 3000))
                self.send(1, sent[-1])
                self.rig.store.flush()
                self.pass_by(luck.random() * 2)
                if luck.random() < 0.3:
                    self.rig.store.flush()
                    self.rig.store.flush_queues()
                if luck.random() < 0.5:
                    self.rig.schedule.save()
            self.rig.disk.crash(luck)
            self.again()
            self.pass_by(1.2)
            self.assertEqual(set(self.bodies()), set(sent), seed)

    def test_figures(self) -> None:
        """Each level that is in use says how far it is and how far its queue goes."""
        self.send(1)
        self.send(1)
        self.send(3)
        self.rig.clock.advance(0)
        self.assertEqual(
            self.rig.schedule.figures(),
            {"scheduleMessageOffset_1": "0,2", "scheduleMessageOffset_3": "0,1"},
        )
        self.pass_by(1.2)
        self.assertEqual(self.rig.schedule.figures()["scheduleMessageOffset_1"], "2,2")

    def test_counted(self) -> None:
        """A message counts where it waits, and again where it is delivered."""
        self.send(1)
        self.pass_by(1.2)
        counts = {
            (sends.topic, sends.message_type): sends.messages
            for sends in self.rig.sending.counters()
            if sends.messages
        }
        self.assertEqual(counts, {(SCHEDULE_TOPIC, "delay"): 1, ("T", "delay"): 1})
