"""Which slave does the absent master's work."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.acting.acting_master import PAUSE_SECONDS, ActingMaster
from rocketbroker.broker.acting.ha_exchange import HAInfo
from rocketbroker.broker.registration.member_group import Least
from rocketbroker.errors import ConnectionLost

MASTER = Least(0, "m:1")
OWN = Least(1, "s:1")


class ActingMasterTests(SynchronousTestCase):
    """L{ActingMaster}, of slave 1."""

    def setUp(self) -> None:
        """It is online, and the master is there."""
        self.clock = Clock()
        self.works = False
        self.followed: list[tuple[str | None, str | None]] = []
        self.asked: list[tuple[str, Deferred[HAInfo]]] = []
        self.returns = 0
        self.ended: Deferred[None] = succeed(None)
        self.acting = ActingMaster(self.clock, 1, self, self, self.ask, self.returned)
        self.acting.online(0)

    def begin(self) -> None:
        """The work begins."""
        self.assertFalse(self.works)
        self.works = True

    def end(self) -> Deferred[None]:
        """The work ends."""
        self.works = False
        return self.ended

    def follow(self, master: str | None, ha_address: str | None) -> None:
        """Another master."""
        self.followed.append((master, ha_address))

    def ask(self, address: str) -> Deferred[HAInfo]:
        """A question to a master."""
        answer: Deferred[HAInfo] = Deferred()
        self.asked.append((address, answer))
        return answer

    def returned(self) -> None:
        """A master is there again."""
        self.returns += 1

    def test_least(self) -> None:
        """Only the slave with the least id acts, and only while there is no master;
        meanwhile it follows nobody."""
        for least, works in ((MASTER, False), (OWN, True), (OWN, True)):
            self.acting.heard(least)
            self.assertEqual((self.works, self.acting.is_acting), (works, works))
        self.assertEqual(self.followed, [(None, None)])
        self.acting.heard(Least(0, "m:1", None, "m:2"))
        self.assertFalse(self.works)
        self.assertEqual(self.followed[1:], [("m:1", "m:2")])
        self.assertEqual((self.asked, self.returns), ([], 1))

    def test_other(self) -> None:
        """A slave with a lesser id acts, not this one."""
        acting = ActingMaster(self.clock, 2, self, self, self.ask, self.returned)
        acting.online(1)
        acting.heard(Least(1, "s:1"))
        self.assertFalse(self.works)
        acting.heard(Least(2, "t:1", "s:1"))
        self.assertTrue(self.works)

    def test_isolated(self) -> None:
        """One that is not online does nothing, whatever it hears; when it gets online
        without a master it acts at once."""
        acting = ActingMaster(self.clock, 1, self, self, self.ask, self.returned)
        acting.heard(OWN)
        self.assertFalse(self.works)
        acting.online(1)
        self.assertTrue(self.works)

    def test_asks(self) -> None:
        """Where a name server does not say at which HA address a master is, the
        master is asked; without an answer nothing is followed."""
        for answer in (HAInfo("m:1", "m:2", 0), HAInfo(), ConnectionLost("gone")):
            self.acting.heard(OWN)
            self.followed.clear()
            self.acting.heard(MASTER)
            ((address, asked),) = self.asked
            self.asked.clear()
            self.assertEqual(address, "m:1")
            if isinstance(answer, HAInfo):
                asked.callback(answer)
            else:
                asked.errback(answer)
            has = isinstance(answer, HAInfo) and answer.ha_address
            self.assertEqual(self.followed, [("m:1", "m:2")] if has else [])

    def test_late(self) -> None:
        """A master that has gone again while it was asked is not followed."""
        self.acting.heard(OWN)
        self.acting.heard(MASTER)
        self.acting.heard(OWN)
        self.followed.clear()
        self.asked[0][1].callback(HAInfo("m:1", "m:2", 0))
        self.assertEqual(self.followed, [])

    def test_pause(self) -> None:
        """A slave leaves its work when a master says that it comes back, and says so
        when all of it has ended. It takes it up again if no master comes."""
        self.acting.heard(OWN)
        self.ended = Deferred()
        done = self.acting.pause()
        self.assertFalse(self.works)
        self.assertNoResult(done)
        self.ended.callback(None)
        self.successResultOf(done)
        self.clock.advance(PAUSE_SECONDS - 1)
        self.acting.heard(OWN)
        self.assertFalse(self.works)
        self.ended = succeed(None)
        self.successResultOf(self.acting.pause())
        self.clock.advance(PAUSE_SECONDS - 1)
        self.acting.heard(OWN)
        self.assertFalse(self.works)
        self.clock.advance(1)
        self.acting.heard(OWN)
        self.assertTrue(self.works)

    def test_stop(self) -> None:
        """A broker that stops ends its work, and begins none."""
        self.acting.heard(OWN)
        self.successResultOf(self.acting.stop())
        self.acting.heard(OWN)
        self.assertFalse(self.works)
