"""A broker whose time is moved: what follows."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.testing.mode import MAX_MOVE_MS
from rocketbroker.errors import InvalidParameter
from rocketbroker.records.names import HALF_TOPIC
from rocketbroker.wire.command import Command
from tests.broker.rig import (
    UNIQUE,
    WALL_MS,
    Rig,
    answered,
    heartbeat,
    pull_ext,
    send_ext,
)

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR

#: Rounds of the reactor that follow a move.
ROUNDS = 20


class ModeCase(SynchronousTestCase):
    """A broker that works, with topic T."""

    settings: dict[str, str] = {}

    def setUp(self) -> None:
        """Its services have begun."""
        self.rig = Rig(self.settings, testing=True)
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.rig.broker.start()
        self.step()

    def step(self, seconds: float = 0.02) -> None:
        """Let the reactor go on."""
        for _ in range(ROUNDS):
            self.rig.clock.advance(seconds)
            self.rig.disk.now_ms = self.rig.wall_ms()
            self.rig.batcher.flush()
            self.rig.scheduler.dispatch()

    def move(self, milliseconds: int, **ext: str) -> Command:
        """Request 31011; the answer."""
        fields = {"advanceMillis": str(milliseconds), **ext}
        answer = self.rig.begin(31011, fields)
        self.step()
        return answered(answer)

    def send(self, properties: str = "", **more: str) -> Command:
        """Send a message by a client that knows the machine's time only."""
        born = str(self.rig.wall_ms())
        text = f"UNIQ_KEY\x01{UNIQUE}\x02WAIT\x01true\x02{properties}"
        ext = send_ext(properties=text, g=born, **more)
        return self.rig.ask(310, ext, b"body")

    def count(self, topic: str = "T") -> int:
        """How many messages the first queue of a topic has."""
        self.rig.scheduler.dispatch()
        return self.rig.store.queue(topic, 0).max_offset


class TimeRequestTests(ModeCase):
    """Request 31011 itself."""

    def test_itSaysWhatTimeItIs(self) -> None:
        """Without a move, and after each."""
        for moved, ahead in ((0, 0), (DAY, DAY), (1, DAY + 1)):
            answer = self.move(moved)
            assert answer.ext is not None
            self.assertEqual(answer.ext["aheadMillis"], str(ahead))
            late = int(answer.ext["timeMillis"]) - WALL_MS - ahead
            self.assertTrue(0 <= late < MINUTE)
        answer = answered(self.rig.begin(31011, None))
        assert answer.ext is not None
        self.assertEqual(answer.ext["aheadMillis"], str(DAY + 1))

    def test_timeGoesForwardOnly(self) -> None:
        """By a number of milliseconds that makes sense."""
        for text in ("-1", "1d", "", "1.5", str(MAX_MOVE_MS + 1)):
            self.assertRaises(
                InvalidParameter, self.rig.begin, 31011, {"advanceMillis": text}
            )

    def test_healthTellsOfIt(self) -> None:
        """How far it is ahead, and how much fails."""
        self.move(DAY + 5000)
        self.rig.ask(31010, {}, b'{"add":{"action":"drop","topic":"X"}}')
        (sentence,) = self.rig.testing.standing()
        self.assertIn("it is 1 d 5 s ahead, with 1 rules", sentence)


class DueTests(ModeCase):
    """What becomes due."""

    def test_delayLevelsAndTimers(self) -> None:
        """Both are delivered, and not before."""
        self.send("DELAY\x0118\x02")
        self.send(f"TIMER_DELAY_SEC\x01{3 * 86_400}\x02")
        self.step()
        self.assertEqual(self.count(), 0)
        self.move(2 * HOUR - MINUTE)
        self.assertEqual(self.count(), 0)
        self.move(MINUTE)
        self.assertEqual(self.count(), 1)
        self.move(3 * DAY - 3 * HOUR)
        self.assertEqual(self.count(), 1)
        self.move(HOUR)
        self.assertEqual(self.count(), 2)

    def test_transactionsAreChecked(self) -> None:
        """When their time is over; one that begins after a move is as young as any."""
        for _ in range(2):
            self.rig.ask(34, {}, heartbeat(["T"]))
            self.send("TRAN_MSG\x01true\x02PGROUP\x01P\x02", f="4")
            self.rig.connection.oneways.clear()
            self.move(5000)
            self.assertEqual(self.rig.connection.oneways, [])
            self.move(1500)
            codes = [command.code for command in self.rig.connection.oneways]
            self.assertIn(39, codes)
            self.move(3 * DAY, keepClients="true")
        self.assertGreater(self.count(HALF_TOPIC), 1)

    def test_heldPullsAreOver(self) -> None:
        """They are answered that there is nothing."""
        held = self.rig.begin(11, pull_ext(0, sysFlag="6"))
        assert isinstance(held, Deferred)
        self.assertNoResult(held)
        self.move(15_000)
        self.assertEqual(answered(held).code, 19)

    def test_popsGoOn(self) -> None:
        """What was not acknowledged is given out again, to pops of clients that have
        the machine's time."""
        ext = {
            "consumerGroup": "G",
            "topic": "T",
            "queueId": "0",
            "maxMsgNums": "8",
            "invisibleTime": "60000",
            "pollTime": "0",
            "initMode": "0",
        }
        self.send()
        self.step()

        def pop() -> int:
            born = str(self.rig.wall_ms())
            answer = self.rig.begin(200050, {**ext, "bornTime": born})
            self.step()
            return answered(answer).code

        self.assertEqual(pop(), 0)
        self.assertNotEqual(pop(), 0)
        self.move(2 * MINUTE)
        self.step(0.2)
        self.assertEqual(pop(), 0)


class SilenceTests(ModeCase):
    """Clients that are silent."""

    def test_silentClientsAreForgotten(self) -> None:
        """After two minutes; their connections are closed."""
        self.rig.ask(34, {}, heartbeat(["T"]))
        self.move(MINUTE)
        self.assertIsNotNone(self.rig.consumers.group("G"))
        self.move(MINUTE + 1000)
        self.assertIsNone(self.rig.consumers.group("G"))
        self.assertEqual(self.rig.producers.members("P"), [])
        self.assertTrue(self.rig.connection.closed)

    def test_clientsCanBeKept(self) -> None:
        """They have not been silent meanwhile."""
        self.rig.ask(34, {}, heartbeat(["T"]))
        self.move(3 * DAY, keepClients="true")
        self.assertIsNotNone(self.rig.consumers.group("G"))
        self.assertEqual(len(self.rig.producers.members("P")), 1)
        self.assertFalse(self.rig.connection.closed)


class RetentionTests(ModeCase):
    """What is too old."""

    settings = {"mappedFileSizeCommitLog": "4096", "deleteCommitLogFilesInterval": "1"}

    def test_expiredSegmentsAreRemoved(self) -> None:
        """At whatever hour; the last stays, and so does what came after the move."""
        for _ in range(60):
            self.send()
        self.step()
        first = self.rig.store.min_position
        self.move(71 * HOUR)
        self.assertEqual(self.rig.store.min_position, first)
        self.move(HOUR)
        kept = self.rig.store.min_position
        self.assertGreater(kept, 2 * 4096)
        self.assertGreater(kept, self.rig.store.published_position - 2 * 4096)
        for _ in range(60):
            self.send()
        self.step()
        self.move(HOUR)
        self.assertGreater(self.rig.store.published_position - kept, 2 * 4096)
        self.assertLess(self.rig.store.min_position - kept, 2 * 4096)
