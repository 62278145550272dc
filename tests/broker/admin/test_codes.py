"""The rooms of administration, which are made by the first of their requests."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.codes import BROKER, CONSUMERS, TABLES
from rocketbroker.broker.room import LateRoom, Room
from rocketbroker.remoting.table import ResponderTable
from tests.broker.rig import Rig


class LateRoomTests(SynchronousTestCase):
    """A broker that nobody has administered yet."""

    def setUp(self) -> None:
        """It has started."""
        self.rig = Rig({})
        self.addCleanup(self.rig.close)

    def late(self) -> list[LateRoom[Room]]:
        """The rooms of administration."""
        rooms = self.rig.broker.rooms[-4:]
        return [room for room in rooms if isinstance(room, LateRoom)]

    def test_codesOfEachRoomAreComplete(self) -> None:
        """A room answers the codes by which it is made, and no others."""
        for room, codes in zip(self.late(), (TABLES, CONSUMERS, BROKER), strict=True):
            table = ResponderTable()
            room.made().register(table)
            self.assertEqual(sorted(table.responders), sorted(codes))

    def test_roomIsMadeOnce(self) -> None:
        """Both ports and all requests have the same one."""
        for room in self.late():
            self.assertIs(room.made(), room.made())

    def test_settingsThatHaveChangedBeforeAreObeyed(self) -> None:
        """The first request finds the settings in force, not those of the start."""
        self.rig.broker.running.change({"autoCreateTopicEnable": "false"})
        self.assertIn(b"autoCreateTopicEnable=false", self.rig.ask(26, {}).body or b"")

    def test_runtimeBeginsWithTheBroker(self) -> None:
        """The broker began when it was made, not when somebody asked."""
        began = self.rig.wall_ms()
        self.rig.clock.advance(90)
        table = self.rig.broker.runtime_info.table()
        self.assertEqual(table["bootTimestamp"], str(began))
