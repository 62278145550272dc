"""Tests of L{rocketbroker.broker.timer.timer_service}, from the send to the pull."""

from __future__ import annotations

import errno
import struct
from typing import Any

import attrs
from twisted.logger import capturedLogs

from rocketbroker.errors import SystemFailure
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.store.interfaces import MESSAGE_ILLEGAL, SERVICE_NOT_AVAILABLE
from rocketbroker.wire.fastjson import loads
from tests.broker.delays import refusing
from tests.broker.rig import WALL_MS, Rig, send_ext
from tests.broker.timer.case import TimerCase


class DeliveryTests(TimerCase):
    """When and what."""

    def test_times(self) -> None:
        """By each of the three properties: never early, and less than a second late; at
        a full second at once."""
        for seconds in (1, 2.001, 2.5, 3, 7.999):
            self.send(seconds, b"%d" % (seconds * 1000))
        self.send(4, b"4000", "TIMER_DELAY_SEC")
        self.send(5.2, b"5200", "TIMER_DELAY_MS")
        self.pass_by(10)
        found = self.rig.records()
        self.assertEqual(len(found), 7)
        for stored in found:
            late_ms = stored.store_ms - WALL_MS - int(stored.body)
            limit = 101 if int(stored.body) % 1000 == 0 else 1000
            self.assertTrue(0 <= late_ms < limit, f"{stored.body!r} {late_ms}")

    def test_past(self) -> None:
        """A message whose time has come is stored at once, as it is."""
        answer = self.send(0)
        assert answer.ext is not None
        self.assertNotIn("recallHandle", answer.ext)
        (stored,) = self.rig.records()
        self.assertNotIn("TIMER_OUT_MS", stored.properties)

    def test_order(self) -> None:
        """Messages of one time arrive in the order in which they were sent."""
        for number in range(2500):
            self.send(5, b"%d" % number)
        self.pass_by(6)
        self.assertEqual(self.bodies(), [b"%d" % number for number in range(2500)])

    def test_properties(self) -> None:
        """What is delivered has all that was sent, and how it waited."""
        self.send(2, KEYS="k", TAGS="TagA")
        self.pass_by(3)
        (waited,) = self.rig.records(0, TIMER_TOPIC)
        (stored,) = self.rig.records()
        expected = {
            **waited.properties,
            "TIMER_ENQUEUE_MS": str(WALL_MS),
            "TIMER_DEQUEUE_MS": str(WALL_MS + 2000),
        }
        self.assertEqual(stored.properties, expected)
        self.assertEqual(expected["TIMER_OUT_MS"], str(WALL_MS + 1000))
        self.assertEqual((stored.tags, stored.born_ms), ("TagA", waited.born_ms))

    def test_backlog(self) -> None:
        """What comes to the topic when its time has passed is delivered all the same,
        with a mark that it was never in the wheel."""
        self.begin(timerStopEnqueue="true")
        self.send(1, b"late")
        self.pass_by(3)
        entering = self.timers.entering
        entering.options = attrs.evolve(entering.options, timer_stop_enqueue=False)
        self.pass_by(0.2)
        (stored,) = self.rig.records()
        self.assertEqual(stored.properties["TIMER_ENQUEUE_MS"], str((1 << 63) - 1))
        self.assertEqual(self.timers.counts.topics["T"].waiting, 0)

    def test_unreadable(self) -> None:
        """What does not say when it is due is passed over, and said."""
        with capturedLogs() as events:
            self.rig.ask(310, send_ext(TIMER_TOPIC, properties="KEYS\x01x\x02"), b"x")
            self.send(1)
            self.pass_by(2)
        self.assertEqual(self.timers.entering.unreadable, 1)
        self.assertEqual(len([e for e in events if e["log_level"].name == "error"]), 1)
        self.assertEqual(self.bodies(), [b"body"])

    def test_refused(self) -> None:
        """What the store does not take is brought again, and nothing of a later time
        overtakes it; what it will never take is passed over."""
        store = refusing(self.rig)
        for number in range(300):
            self.send(2, b"%d" % number)
        self.send(3, b"next")
        store.bodies = {b"5": SERVICE_NOT_AVAILABLE, b"7": MESSAGE_ILLEGAL}
        self.pass_by(4)
        self.assertNotIn(b"next", self.bodies())
        self.assertGreater(self.timers.delivering.failures, 1)
        store.bodies = {}
        self.pass_by(2)
        found = self.bodies()
        self.assertEqual(found[-1], b"next")
        rest = {b"%d" % number for number in range(300)} - {b"7"}
        self.assertEqual((len(found), {*found[:-1]}), (300, rest))
        self.assertEqual(self.timers.outlet.refused, 1)

    def test_fullDisk(self) -> None:
        """While the disk has no room for the timer log all waits in its topic."""
        self.send(30)
        self.rig.disk.fail("pwrite", errno.ENOSPC, times=3)
        self.pass_by(1)
        self.assertEqual(self.timers.entering.failures > 0, True)
        self.rig.disk.heal()
        self.pass_by(30)
        self.assertEqual(self.bodies(), [b"body"])

    def test_stops(self) -> None:
        """A stop in the middle of a slot ends it; the next start goes on."""
        for number in range(1000):
            self.send(3, b"%d" % number)
        self.pass_by(2.95)
        self.rig.clock.advance(0.1)
        self.rig.clock.advance(0)
        self.stop()
        self.begin(self.rig.disk, self.rig.wall_ms())
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"%d" % number for number in range(1000)])


class AheadTests(TimerCase):
    """A slot that is read before it is over.

    Few messages are enough for it; they are read two at a time.
    """

    def begin(self, *args: Any, **settings: Any) -> Rig:
        """See L{TimerCase.begin}."""
        rig = super().begin(*args, **settings)
        self.timers.delivering.least_ahead = 2
        self.timers.delivering.step_messages = 2
        return rig

    def is_read(self, seconds: float) -> int:
        """Let time pass until a slot is read; how many bytes are."""
        self.pass_by(seconds)
        ahead = self.timers.delivering._ahead
        assert ahead is not None
        return ahead.ready_bytes

    def test_changes(self) -> None:
        """What comes to it later is delivered, too, and what is taken back then is not,
        whether it was read or not; nothing is early."""
        for number in range(5):
            self.send(5, b"%d" % number, key=f"{number}")
        self.assertGreater(self.is_read(4), 0)
        for number in range(5, 8):
            self.send(1, b"%d" % number, key=f"{number}")
        for number in (1, 6):
            self.send(1, key=f"{number}", TIMER_DEL_UNIQKEY=f"T+{number}")
        self.pass_by(0.9)
        self.assertEqual(self.bodies(), [])
        self.pass_by(1)
        self.assertEqual(self.bodies(), [b"0", b"2", b"3", b"4", b"5", b"7"])
        self.assertGreaterEqual(min(self.late_ms()), 0)
        self.assertEqual(self.timers.counts.topics["T"].waiting, 0)
        self.assertEqual(self.timers.timers.wheel.pending, 0)

    def test_takenBackBefore(self) -> None:
        """What was taken back before it was read is not delivered."""
        self.send(5, b"taken", key="1")
        self.send(5, key="1", TIMER_DEL_UNIQKEY="T+1")
        for number in range(3):
            self.send(5, b"%d" % number)
        self.assertGreater(self.is_read(4), 0)
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2"])

    def test_limit(self) -> None:
        """No more is read than fits; the rest follows in order."""
        self.timers.delivering.ahead_bytes = 1000
        bodies = [b"%d" % number * 400 for number in range(8)]
        for body in bodies:
            self.send(5, body)
        self.assertIn(self.is_read(4), range(1000, 2500))
        self.pass_by(2)
        self.assertEqual(self.bodies(), bodies)

    def test_emptied(self) -> None:
        """A slot that is not what was read any more is read anew."""
        for number in range(3):
            self.send(5, b"%d" % number)
        self.assertGreater(self.is_read(4), 0)
        wheel = self.timers.timers.wheel
        wheel.clear(self.rig.wall_ms(), self.rig.wall_ms() + 2000, passed=False)
        self.send(1, b"new")
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"new"])

    def test_forgotten(self) -> None:
        """In another role nothing of it counts."""
        for number in range(3):
            self.send(5, b"%d" % number)
        self.assertGreater(self.is_read(4), 0)
        self.timers.delivering.forget()
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2"])

    def test_killed(self) -> None:
        """What was read ahead is delivered after a kill, once."""
        for number in range(3):
            self.send(5, b"%d" % number)
        self.assertGreater(self.is_read(4), 0)
        self.restart()
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2"])
        self.restart()
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"0", b"1", b"2"])


class RestartTests(TimerCase):
    """After a stop, a kill and a power failure."""

    def test_stopped(self) -> None:
        """What waits is delivered by the next one, when it is due, or at once."""
        self.send(30, b"later")
        self.send(5, b"soon")
        self.pass_by(2)
        self.stop()
        self.begin(self.rig.disk, self.rig.wall_ms() + 10_000)
        self.assertEqual(self.timers.timers.units, 0)
        self.pass_by(0.3)
        self.assertEqual(self.bodies(), [b"soon"])
        self.pass_by(20)
        self.assertEqual(self.bodies(), [b"soon", b"later"])

    def test_killed(self) -> None:
        """Whenever it is killed, each message comes, once, and never early."""
        for ticks in range(0, 80, 3):
            self.begin()
            sent = 0
            for tick in range(ticks):
                if tick % 7 == 0:
                    self.send(1 + tick % 4, b"%d" % sent)
                    sent += 1
                self.rig.clock.advance(0.1)
                if tick % 5 == 0:
                    self.rig.store.flush()
            self.restart()
            self.pass_by(6)
            found = sorted(self.bodies(), key=int)
            self.assertEqual(found, [b"%d" % n for n in range(sent)], ticks)
            self.assertTrue(all(0 <= late < 1101 for late in self.late_ms()))

    def test_killedFirst(self) -> None:
        """A kill before the first checkpoint was written."""
        self.send(0.2, b"first")
        self.send(2, b"second")
        self.pass_by(1.5)
        self.assertEqual(self.bodies(), [b"first"])
        left = self.rig.disk.image(keep_all=True)
        left.remove("/store/config/timercheck")
        self.begin(left, self.rig.wall_ms())
        self.pass_by(2)
        self.assertEqual(self.bodies(), [b"first", b"second"])

    def test_killedAgain(self) -> None:
        """A kill before the next run has caught up, though it wrote a checkpoint."""
        for seconds in (0.0, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0):
            self.begin()
            self.send(2, b"second")
            self.send(1, b"first")
            self.pass_by(seconds)
            for _ in range(3):
                self.restart()
                self.timers.clock.note()
                self.rig.store.flush()
                self.timers._look()
                self.pass_by(0.1)
            self.restart()
            self.pass_by(4)
            self.assertEqual(self.bodies(), [b"first", b"second"], seconds)

    def test_setBack(self) -> None:
        """A clock or a master that sets a start back before it has caught up: the
        checkpoint goes back, too."""
        self.send(2, b"once")
        self.pass_by(1.5)
        self.restart()
        clock = self.timers.clock
        read_ms = clock.read_ms = clock.kept.read_ms - 5000
        clock.queue_offset = 0
        wanted = clock.kept._replace(read_ms=read_ms, queue_offset=0)
        clock.note()
        self.assertEqual(clock.keep(clock.end), wanted)

    def test_stoppedEarly(self) -> None:
        """A stop before the next run has caught up after a kill."""
        self.send(2, b"once")
        self.pass_by(3)
        self.restart()
        self.stop()
        self.restart()
        self.pass_by(1)
        self.assertEqual(self.bodies(), [b"once"])
        self.send(1, b"later")
        self.pass_by(2.5)
        self.restart()
        self.assertEqual(self.timers.clock.kept.queue_offset, 2)
        self.assertGreater(self.timers.clock.kept.read_ms, WALL_MS + 4000)

    def test_powerFailure(self) -> None:
        """Whenever the machine stops, each message comes whose sender was safe."""
        for ticks in range(0, 80, 3):
            self.begin()
            sent = 0
            for tick in range(ticks):
                if tick % 7 == 0:
                    self.send(1 + tick % 4, b"%d" % sent)
                    sent += 1
                if tick % 5 == 0:
                    self.rig.store.flush()
                    safe = sent
                self.rig.clock.advance(0.1)
            safe = safe if ticks else 0
            self.restart(kept=False)
            self.pass_by(6)
            found = self.bodies()
            self.assertEqual({b"%d" % n for n in range(safe)} - {*found}, set(), ticks)

    def test_killedInSlot(self) -> None:
        """What a slot has delivered when the process dies is not delivered again."""
        for count in (1, 128, 300):
            self.begin()
            store = refusing(self.rig)
            bodies = [b"%d" % number for number in range(1000)]
            for body in bodies:
                self.send(2, body)
            store.bodies = dict.fromkeys(bodies[count:], SERVICE_NOT_AVAILABLE)
            self.pass_by(2.2)
            self.assertEqual(self.bodies(), bodies[:count])
            self.restart()
            self.pass_by(1)
            self.assertEqual(self.bodies(), bodies)

    def test_notEntered(self) -> None:
        """What was not entered before a kill does not overtake what is due before it,
        even if the time of both has passed when the broker is up again."""
        self.send(2.9, b"first")
        self.pass_by(0.5)
        self.send(3.6, b"third")
        self.send(2.2, b"second")
        self.restart(seconds=6)
        self.pass_by(0.5)
        self.assertEqual(self.bodies(), [b"first", b"second", b"third"])

    def test_longAgo(self) -> None:
        """After ten days without a broker what has waited is delivered, and the places
        of the wheel are free for others."""
        self.send(259_000, b"old")
        self.pass_by(2)
        self.stop()
        self.begin(self.rig.disk, self.rig.wall_ms() + 864_000_000)
        self.send(5, b"new")
        self.pass_by(8)
        self.assertEqual(self.bodies(), [b"old", b"new"])


class ClockTests(TimerCase):
    """A clock that is set."""

    def test_back(self) -> None:
        """Set back by an hour, nothing is early, nothing comes twice, and what is sent
        then waits for its time."""
        self.send(10, b"before")
        self.pass_by(12)
        self.assertEqual(self.bodies(), [b"before"])
        self.send(5, b"waits")
        self.pass_by(1)
        self.rig.start_ms -= 3_600_000
        self.send(3, b"after")
        self.pass_by(10)
        self.assertEqual(self.bodies(), [b"before", b"after"])
        self.pass_by(3600, step=5)
        self.assertEqual(self.bodies(), [b"before", b"after", b"waits"])

    def test_ahead(self) -> None:
        """Set ahead by an hour, what is due by it is delivered."""
        self.send(1800)
        self.pass_by(1)
        self.rig.start_ms += 3_600_000
        self.pass_by(1)
        self.assertEqual(self.bodies(), [b"body"])


class RollTests(TimerCase):
    """Times further ahead than the window of the wheel."""

    def test_rolls(self) -> None:
        """Such a message is entered anew on the way, and is on time."""
        self.begin(timerRollWindowSlot="60")
        self.send(200, b"far")
        self.send(59, b"near")
        self.pass_by(205, step=1)
        near, far = self.rig.records()
        self.assertEqual((near.body, far.body), (b"near", b"far"))
        self.assertEqual(far.store_ms, WALL_MS + 200_000)
        self.assertEqual(far.properties["TIMER_ROLL_TIMES"], "3")
        self.assertEqual(self.timers.counts.topics["T"].waiting, 0)
        self.assertEqual(self.timers.timers.wheel.pending, 0)

    def test_precision(self) -> None:
        """With a finer precision it is less late."""
        self.begin(timerPrecisionMs="100")
        for ms in (1000, 1150, 1999):
            self.send(ms / 1000)
        self.pass_by(3)
        self.assertEqual(len(self.late_ms()), 3)
        self.assertTrue(all(0 <= late <= 200 for late in self.late_ms()))


class FigureTests(TimerCase):
    """What others are told."""

    def test_figures(self) -> None:
        """Request 28 says how far the timers are."""
        for seconds in (5, 6, 6):
            self.send(seconds)
        figures = self.rig.broker.runtime_info.table()
        self.assertEqual(figures["timerOffsetBehind"], "3")
        self.pass_by(2)
        figures = self.rig.broker.runtime_info.table()
        self.assertEqual(figures["timerCongestNum"], "3")
        self.assertEqual(figures["timerOffsetBehind"], "0")
        self.assertEqual(figures["timerReadBehind"], "0")
        self.assertEqual(self.timers.snapshot()[5], 3)
        self.pass_by(4.5)
        figures = self.rig.broker.runtime_info.table()
        self.assertEqual(figures["timerCongestNum"], "0")
        self.assertGreater(float(figures["timerDequeueTps"]), 0)

    def test_checkpoint(self) -> None:
        """Requests 60 and 61 say where a slave has to be."""
        self.send(5)
        self.send(1)
        self.pass_by(3)
        numbers = struct.unpack(">7q", self.rig.ask(60, {}).body)
        self.assertEqual(numbers[1:4], (104, 2, 2))
        self.assertTrue(WALL_MS + 1000 <= numbers[0] <= WALL_MS + 3000, numbers)
        self.assertGreater(numbers[6], 0)
        body = loads(self.rig.ask(61, {}).body)
        assert isinstance(body, dict)
        self.assertEqual(body["timingCount"]["T"]["count"], 1)

    def test_lastSlot(self) -> None:
        """What was delivered last is in the checkpoint a second after its copies are on
        the disk, though nothing happens any more."""
        self.send(5)
        self.rig.clock.advance(0.1)
        self.rig.store.flush()
        for _ in range(60):
            self.rig.clock.advance(0.1)
            self.rig.scheduler.dispatch()
        self.assertEqual(len(self.bodies()), 1)
        self.rig.store.flush()
        self.rig.clock.advance(1.1)
        (read_ms,) = struct.unpack_from(">q", self.rig.ask(60, {}).body)
        self.assertGreaterEqual(read_ms, WALL_MS + 5000)

    def test_idle(self) -> None:
        """A broker without timers writes no files for them."""
        self.pass_by(200, step=1)
        self.stop()
        found = [path for path in self.rig.disk.paths() if "timer" in path]
        self.assertEqual(found, [])

    def test_levels(self) -> None:
        """With timerInterceptDelayLevel delay levels go through the wheel."""
        self.begin(timerInterceptDelayLevel="true")
        self.send(60, b"x", DELAY="2")
        self.assertEqual(self.rig.records(0, "SCHEDULE_TOPIC_XXXX"), [])
        self.pass_by(4.8)
        self.assertEqual(self.bodies(), [])
        self.pass_by(0.4)
        (stored,) = self.rig.records()
        self.assertEqual(stored.properties["TIMER_DELAY_LEVEL"], "2")
        self.assertTrue(0 <= stored.store_ms - WALL_MS - 5000 <= 100)

    def test_off(self) -> None:
        """With timerWheelEnable=false nothing runs, and messages are refused."""
        self.begin(timerWheelEnable="false")
        self.assertRaises(SystemFailure, self.send, 5)
        self.pass_by(2)
        self.stop()
