"""When the room of POP is made."""

from __future__ import annotations

from rocketbroker.broker.pop.need import CODES, ORDER_FILE, PULL_CODES, is_needed
from rocketbroker.broker.room import LateRoom, Room
from rocketbroker.remoting.table import ResponderTable
from rocketbroker.wire.codes import RequestCode
from tests.broker.pop.pops import ACK, REVIVE_TOPIC, PopCase, handles
from tests.broker.rig import Rig


class NeedTests(PopCase):
    """A broker from which nobody has popped yet."""

    def late(self) -> LateRoom[Room]:
        """The room of POP, as the broker holds it."""
        late = (room for room in self.rig.broker.rooms if isinstance(room, LateRoom))
        return next(room for room in late if RequestCode.ACK_MESSAGE in room.codes)

    def needs(self) -> bool:
        """Whether another start would make the room."""
        broker = self.rig.broker
        return is_needed(broker.context, broker.metadata.topics)

    def test_brokerWithoutPopsMakesNoRoom(self) -> None:
        """Sends, saves and another start do not need it."""
        self.send("a")
        self.rig.clock.pump([1.0] * 20)
        self.assertFalse(self.late().is_made)
        self.restart()
        self.assertFalse(self.late().is_made)

    def test_firstPopMakesTheRoom(self) -> None:
        """It is at work then: what is not acknowledged comes again."""
        self.send("a")
        self.assertEqual(self.popped(), [b"a"])
        self.assertTrue(self.late().is_made)
        self.rig.clock.pump([1.0] * 40)
        self.assertEqual(self.popped(), [b"a"])

    def test_acknowledgementsAreHotFromThenOn(self) -> None:
        """Both ports find the hot responder."""
        self.send("a")
        handles(self.pop())
        for table in (self.rig.broker.main, self.rig.broker.vip):
            self.assertIn(ACK, [entry.code for entry in table.hot.values()])

    def test_messageForTheReviveLogMakesTheRoom(self) -> None:
        """An acting master of another group may send one."""
        self.send("x", topic=REVIVE_TOPIC)
        self.assertTrue(self.late().is_made)

    def test_startAfterPopsMakesTheRoom(self) -> None:
        """The revive log has messages."""
        self.send("a")
        self.pop()
        self.rig.clock.pump([1.0] * 40)
        self.restart()
        self.assertTrue(self.late().is_made)

    def test_checkPointThatTimersHaveHeldMakesTheRoom(self) -> None:
        """They put it into the revive log when it is due: the message comes again."""
        self.send("a")
        self.pop()
        self.restart()
        self.assertFalse(self.late().is_made)
        self.rig.clock.pump([1.0] * 40)
        self.assertTrue(self.late().is_made)
        self.assertIn(b"a", self.popped())

    def test_fileOfConsumptionInOrderNeedsTheRoom(self) -> None:
        """What groups hold in order is in it alone."""
        self.assertFalse(self.needs())
        self.rig.disk.open(f"/store/config/{ORDER_FILE}.bak", create=True).close()
        self.assertTrue(self.needs())

    def test_slaveMakesTheRoom(self) -> None:
        """It gets the revive log from its master, and may act for it."""
        self.rig = Rig({"brokerRole": "SLAVE", "brokerId": "1"})
        self.addCleanup(self.rig.close)
        self.assertTrue(self.late().is_made)

    def test_codesAreComplete(self) -> None:
        """The room answers the codes by which it is made, and no others."""
        both, pulls = ResponderTable(), ResponderTable()
        self.rig.broker.pop.register(both)
        self.rig.broker.pop.register_pulls(pulls)
        self.assertEqual(sorted(both.responders), sorted(CODES))
        self.assertEqual(sorted(pulls.responders), sorted(PULL_CODES))
