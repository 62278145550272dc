"""Timers of slaves, acting masters, and masters that come back."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.messages.forwarded_message import ForwardedMessage
from rocketbroker.broker.registration.masters import Master
from rocketbroker.broker.roles import Role
from rocketbroker.broker.timer.due_sink import Due, EscapeOutlet
from rocketbroker.records.names import TIMER_TOPIC
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.wire.fastjson import dumps
from tests.broker.callers import Caller
from tests.broker.rig import WALL_MS, Rig
from tests.broker.timer.case import TimerCase

MASTER = Checkpoint(WALL_MS + 5000, 104, 2, 2, 0, WALL_MS, 7)


class SlaveTests(SynchronousTestCase):
    """A slave asks its master."""

    def setUp(self) -> None:
        """A slave that knows its master."""
        self.caller = Caller()
        settings = {"brokerRole": "SLAVE", "brokerId": "1"}
        self.rig = Rig(settings, client=self.caller)
        self.addCleanup(self.rig.close)
        self.sync = self.rig.broker.timer.sync
        self.timers = self.rig.broker.timer.service
        self.rig.broker.registration.registration.masters.say(Master("m:2", "m:1"))
        self.caller.take()

    def test_asks(self) -> None:
        """It takes over how far the master is, and what waits there."""
        done = self.sync.look()
        assert done is not None
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), ("m:1", 60))
        call.answer(body=MASTER.encode())
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), ("m:1", 61))
        counts = {"timingCount": {"T": {"count": 3, "timeStamp": 5}}}
        call.answer(body=dumps(counts))
        self.successResultOf(done)
        self.assertEqual(self.timers.clock.read_ms, WALL_MS + 5000)
        self.assertEqual(self.timers.counts.topics["T"].waiting, 3)
        self.assertEqual(self.timers.checkpoint().counter, 7)
        self.assertEqual(self.sync.problem, "")

    def test_silent(self) -> None:
        """A master that does not answer is a problem until it does."""
        done = self.sync.look()
        assert done is not None
        (call,) = self.caller.take()
        call.fail()
        self.successResultOf(done)
        self.assertIn("m:1", self.sync.problem)


class RoleTests(TimerCase):
    """Other roles than that of a master."""

    def escape(self, taken: bool, waits: bool = False) -> list[ForwardedMessage]:
        """What an acting master brings to the bridge of the message that waits."""
        found: list[ForwardedMessage] = []

        async def put(escaped: ForwardedMessage) -> bool:
            found.append(escaped)
            return taken

        (message,) = self.rig.records(0, TIMER_TOPIC)
        outlet = EscapeOutlet(put, 1000)
        due = Due(message, WALL_MS, waits, ("T", 0))
        over = Deferred.fromCoroutine(outlet.put([due], WALL_MS))
        self.assertEqual(self.successResultOf(over), [taken])
        return found

    def test_escapes(self) -> None:
        """What is due goes to another group as it was sent, without a time; what is
        only to be entered anew goes there to wait."""
        self.send(5, KEYS="k")
        for taken in (True, False):
            (escaped,) = self.escape(taken)
            self.assertEqual((escaped.topic, escaped.properties["KEYS"]), ("T", "k"))
            self.assertNotIn("TIMER_DELIVER_MS", escaped.properties)
        (escaped,) = self.escape(True, waits=True)
        self.assertNotIn("TIMER_OUT_MS", escaped.properties)
        self.assertEqual(escaped.properties["TIMER_DELIVER_MS"], str(WALL_MS + 5000))

    def test_slaveDelivers(self) -> None:
        """In the role of a slave nothing is delivered, and no more is entered than the
        master has; what a master has not delivered is delivered afterwards."""
        self.send(3)
        self.rig.broker.services.act_as(Role.SLAVE)
        self.pass_by(2)
        self.assertEqual(self.timers.clock.queue_offset, 0)
        self.timers.become(MASTER._replace(read_ms=WALL_MS + 1000))
        self.pass_by(6)
        self.assertEqual(self.timers.clock.queue_offset, 1)
        self.assertEqual(self.bodies(), [])
        self.rig.broker.services.act_as(Role.MASTER)
        self.pass_by(1)
        self.assertEqual(self.bodies(), [b"body"])

    def test_comesBack(self) -> None:
        """A master that comes back does not deliver what was delivered without it."""
        self.send(3)
        self.pass_by(1)
        self.timers.take_back(Checkpoint(WALL_MS + 4000, 52, 1, 1, 0, WALL_MS * 2, 9))
        self.assertLess(self.timers.clock.read_ms, WALL_MS + 4001)
        self.timers.take_back(Checkpoint(0, 0, 0, 0))
        self.assertEqual(self.timers.checkpoint().counter, 9)
