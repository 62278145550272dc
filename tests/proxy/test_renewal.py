"""Renewal of invisible times."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConnectionLost
from rocketbroker.proxy.received import Handle
from rocketbroker.proxy.renewal import MAX_KEPT, Place, Renewals, place_of
from rocketbroker.proxy.settings import ProxySettings
from rocketbroker.testing.runtime import MemoryRuntime


def handle(popped: int, invisible: int = 60_000) -> Handle:
    """A handle of queue 3, offset 7."""
    return Handle.parse(f"7 {popped} {invisible} 0 0 b1 3 7 4096")


class RenewalTests(SynchronousTestCase):
    """L{Renewals}."""

    def setUp(self) -> None:
        """A message of client C that was popped at 1,000 ms."""
        self.runtime = MemoryRuntime()
        self.asked: list[tuple[str, str, int]] = []
        self.problems = 0
        self.now = 1000
        self.here = {"C", "D"}
        self.renewals = Renewals(ProxySettings(), self.change, self.here.__contains__)
        self.place = place_of("C", "G", "ID", handle(1000))
        self.renewals.keep(self.place, "T", handle(1000))

    async def change(
        self, topic: str, group: str, given: Handle, invisible: int
    ) -> Handle:
        """What a broker does, unless it fails."""
        if self.problems:
            self.problems -= 1
            raise ConnectionLost("gone")
        self.asked.append((topic, group, invisible))
        return handle(self.now, invisible)

    def renew(self, now: int) -> None:
        """Renew what is due."""
        self.now = now
        for place in self.renewals.due(now):
            self.runtime.finish(self.renewals.renew(place, now))

    def test_timeIsMadeLongerBeforeItEnds(self) -> None:
        """By 1, 3, 5, ... minutes; the newest handle counts."""
        self.renew(50_999)
        self.assertEqual(self.asked, [])
        self.renew(51_000)
        self.renew(101_000)
        self.assertEqual(self.asked, [("T", "G", 60_000), ("T", "G", 180_000)])
        found = self.renewals.current(self.place, handle(1000))
        self.assertEqual(found.visible_at, 281_000)
        self.assertEqual(self.renewals.renewed, 2)

    def test_settledMessageIsRenewedNoMore(self) -> None:
        """And its first handle counts again."""
        self.renewals.drop(self.place)
        self.renewals.drop(self.place)
        self.renew(51_000)
        self.assertEqual((self.asked, len(self.renewals)), ([], 0))
        first = handle(1000)
        self.assertIs(self.renewals.current(self.place, first), first)

    def test_brokerThatIsAwayIsAskedThreeTimes(self) -> None:
        """Then the message is given out again in time."""
        self.problems = 2
        for now in (51_000, 56_000, 57_000):
            self.renew(now)
        self.assertEqual(len(self.asked), 1)
        self.problems = 3
        with self.assertLogs("rocketbroker.proxy"):
            for now in (108_000, 113_000, 114_000, 115_000):
                self.renew(now)
        self.assertEqual((len(self.asked), len(self.renewals)), (1, 0))

    def test_clientThatCallsElsewhereKeepsNothing(self) -> None:
        """It may have acknowledged its message there; one that comes back has it on."""
        self.here.clear()
        self.renew(51_000)
        self.assertEqual((self.asked, len(self.renewals)), ([], 1))
        self.here.add("C")
        self.renew(52_000)
        self.assertEqual(self.asked, [("T", "G", 60_000)])
        self.here.clear()
        self.renew(112_000)
        self.assertEqual((len(self.asked), len(self.renewals)), (1, 0))

    def test_clientThatAcknowledgesNothingHasItsLimit(self) -> None:
        """Others have theirs, and what is settled makes room."""
        places = [
            self.place._replace(message_id=str(number)) for number in range(MAX_KEPT)
        ]
        for place in places:
            self.renewals.keep(place, "T", handle(1000))
        self.assertEqual(len(self.renewals), MAX_KEPT)
        self.renewals.keep(self.place._replace(client_id="D"), "T", handle(1000))
        self.assertEqual(len(self.renewals), MAX_KEPT + 1)
        self.renewals.drop(self.place)
        self.renewals.keep(places[-1], "T", handle(1000))
        self.renewals.keep(places[-1], "T", handle(2000))
        self.assertEqual(len(self.renewals), MAX_KEPT + 1)
        self.runtime.finish(self.renewals.clear("C"))
        self.renewals.keep(self.place, "T", handle(1000))
        self.assertEqual(len(self.renewals), 2)

    def test_threeHoursAreTheEnd(self) -> None:
        """A client may hang for ever."""
        with self.assertLogs("rocketbroker.proxy"):
            self.renew(1000 + 10_800_000)
        self.assertEqual((self.asked, len(self.renewals)), ([], 0))

    def test_clientThatLeavesGivesItsMessagesBack(self) -> None:
        """Within a second; those of others stay, and a broker may fail."""
        other = Place("D", "G", "ID", "b1", 3, 8)
        self.renewals.keep(other, "T", handle(1000))
        second = Place("C", "G", "ID2", "b1", 3, 9)
        self.renewals.keep(second, "T", handle(1000))
        self.problems = 1
        self.runtime.finish(self.renewals.clear("C"))
        self.assertEqual(self.asked, [("T", "G", 1000)])
        self.assertEqual(len(self.renewals), 1)
