"""Pulls at a slave."""

from __future__ import annotations

from rocketbroker.broker.pull.pull import ASTRAY_SECONDS
from rocketbroker.broker.pull.pull_checks import NO_SLAVE_READ
from rocketbroker.errors import SystemBusy
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from tests.broker.pull.pulls import AGAIN, MOVED, NOT_FOUND, PULL, PullCase
from tests.broker.rig import Rig, pull_ext

HELD = "6"


class SlavePullTests(PullCase):
    """A slave whose clients may read, with two messages."""

    settings: dict[str, str] = {
        "brokerRole": "SLAVE",
        "brokerId": "1",
        "slaveReadEnable": "true",
    }

    def setUp(self) -> None:
        """Two messages have come from the master."""
        self.begin()

    def begin(self, **more: str) -> None:
        """A slave with those settings besides."""
        self.master = Rig({})
        self.addCleanup(self.master.close)
        self.rig = Rig({**self.settings, **more})
        self.addCleanup(self.rig.close)
        self.rig.topic("T", 1)
        self.receive(2)

    def receive(self, count: int) -> None:
        """Messages come from the master."""
        position = self.master.store.published_position
        for _ in range(count):
            self.master.append()
        data = self.master.store.raw_log.read(position, 1 << 16)
        self.assertEqual(self.rig.store.raw_log.append(position, data), len(data))
        self.rig.scheduler.dispatch()

    def hot(self, offset: int, **more: str) -> tuple[int, int, int]:
        """Code, next offset and suggested broker of the answer to a pull."""
        self.assertTrue(self.rig.hot(PULL, pull_ext(offset, **more)))
        return self.answer()

    def answer(self) -> tuple[int, int, int]:
        """The same of the one answer that was sent by now."""
        (answer,) = self.rig.answers()
        assert answer.ext is not None
        next_offset = int(answer.ext["nextBeginOffset"])
        return answer.code, next_offset, int(answer.ext["suggestWhichBrokerId"])

    def test_refused(self) -> None:
        """Without slaveReadEnable every pull is refused, in RocketMQ's words, until an
        operator allows it; and no group is made for it."""
        self.begin(slaveReadEnable="false")
        self.assertFalse(self.rig.hot(PULL, pull_ext(0)))
        error = self.assertRaises(SystemBusy, self.rig.begin, PULL, pull_ext(0))
        self.assertEqual((error.code, error.remark), (2, NO_SLAVE_READ))
        self.assertIsNone(self.rig.groups.config("G"))
        self.rig.change(slaveReadEnable=True)
        self.assertEqual(self.hot(0), (0, 2, 0))

    def test_found(self) -> None:
        """Messages come with the advice to go back to the master; a group may say
        otherwise."""
        self.assertEqual(self.hot(0), (0, 2, 0))
        self.rig.groups.put([SubscriptionGroupConfig(group_name="G", broker_id=1)])
        self.assertEqual(self.hot(0), (0, 2, 1))

    def test_commit(self) -> None:
        """A pull that commits does so at a slave, too."""
        self.assertEqual(self.hot(1, sysFlag="5", commitOffset="1")[:2], (0, 2))
        self.assertEqual(self.rig.offsets.queues("G", "T"), {0: 1})

    def test_end(self) -> None:
        """At the end a pull is held, until the master has sent more."""
        self.assertEqual(self.hot(2)[:2], (NOT_FOUND, 2))
        self.rig.hot(PULL, pull_ext(2, sysFlag=HELD))
        self.assertEqual(self.rig.answers(), [])
        self.receive(1)
        self.assertEqual(self.answer(), (0, 3, 0))

    def test_behind(self) -> None:
        """A consumer that is ahead of what the slave has keeps its offset, and is sent
        back to the master."""
        self.assertEqual(self.hot(7), (AGAIN, 7, 0))

    def test_behindHeld(self) -> None:
        """If it may wait, it does for a second: its client asks again at once."""
        self.rig.hot(PULL, pull_ext(7, sysFlag=HELD))
        self.assertEqual(self.rig.answers(), [])
        self.rig.clock.advance(ASTRAY_SECONDS)
        self.assertEqual(self.answer(), (AGAIN, 7, 0))

    def test_unknownQueue(self) -> None:
        """So does one of a queue of which the slave has nothing."""
        self.rig.topic("U", 1)
        self.assertEqual(self.hot(3, topic="U"), (AGAIN, 3, 0))
        self.assertEqual(self.hot(0, topic="U"), (NOT_FOUND, 0, 0))

    def test_reset(self) -> None:
        """A group whose offset an operator has reset goes on there."""
        self.rig.offsets.reset("G", "T", 0, 1)
        self.assertEqual(self.hot(2), (AGAIN, 1, 0))

    def test_offsetCheck(self) -> None:
        """With offsetCheckInSlave a slave corrects offsets as a master does."""
        self.begin(offsetCheckInSlave="true")
        self.assertEqual(self.hot(7), (MOVED, 2, 0))
