"""The time of a broker whose time is moved."""

from __future__ import annotations

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.internet.task import Clock, LoopingCall
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from rocketbroker.app.testing.moved_time import NOW_FIELDS, MovedTime, moved_files
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.wire.command import Command

DAY = 86_400


class TimeCase(SynchronousTestCase):
    """A clock that stands for the reactor, and time on it."""

    def setUp(self) -> None:
        """It is as late as the machine says."""
        self.reactor = Clock()
        self.time = MovedTime(
            self.reactor, lambda: 1000 + int(self.reactor.seconds() * 1000)
        )


class MovedTimeTests(TimeCase):
    """Clocks, and calls that wait."""

    def test_interfaces(self) -> None:
        """It is a clock, and its calls are calls."""
        verifyObject(IReactorTime, self.time)
        verifyObject(IDelayedCall, self.time.callLater(1, lambda: None))

    def test_bothClocksAreAhead(self) -> None:
        """Of the machine's, which goes on as before."""
        self.time.move(DAY * 1000)
        self.time.move(500)
        self.assertEqual(self.time.ahead_ms, DAY * 1000 + 500)
        self.assertEqual(self.time.seconds(), DAY + 0.5)
        self.assertEqual(self.time.wall_ms(), 1000 + DAY * 1000 + 500)
        self.assertEqual(self.reactor.seconds(), 0)

    def test_whatIsDueIsCalledInTheOrderOfItsTimes(self) -> None:
        """By the next round of the reactor, not within the move; the rest waits for
        what is left."""
        called: list[str] = []
        self.time.callLater(3 * DAY, called.append, "timer")
        self.time.callLater(10, called.append, "scan")
        self.time.callLater(4 * DAY, called.append, "later")
        self.time.move(3 * DAY * 1000)
        self.assertEqual(called, [])
        self.reactor.advance(0)
        self.assertEqual(called, ["scan", "timer"])
        self.reactor.advance(DAY - 1)
        self.assertEqual(called, ["scan", "timer"])
        self.reactor.advance(1)
        self.assertEqual(called, ["scan", "timer", "later"])
        self.assertEqual(self.time.getDelayedCalls(), [])

    def test_callsHaveTheirTimeByThisClock(self) -> None:
        """Before a move and after it; they can be put off and cancelled."""
        called: list[int] = []
        call = self.time.callLater(10, called.append, 1)
        self.assertEqual(call.getTime(), 10)
        self.time.move(4000)
        self.assertEqual(call.getTime(), 10)
        self.reactor.advance(5)
        call.reset(3)
        self.assertEqual(call.getTime(), self.time.seconds() + 3)
        call.delay(2)
        self.reactor.advance(4.5)
        self.assertTrue(call.active())
        self.reactor.advance(0.5)
        self.assertEqual(called, [1])
        self.assertFalse(call.active())
        other = self.time.callLater(1, called.append, 2)
        other.cancel()
        self.time.move(5000)
        self.reactor.advance(5)
        self.assertEqual((called, self.time.waiting), ([1], {}))

    def test_whatIsDoneAgainAndAgainIsDoneOnceForAMove(self) -> None:
        """And at its own pace afterwards."""
        called: list[float] = []
        loop = LoopingCall(lambda: called.append(self.time.seconds()))
        loop.clock = self.time
        loop.start(10, now=False)
        self.time.move(DAY * 1000)
        self.reactor.advance(0)
        self.assertEqual(called, [DAY])
        self.reactor.advance(10)
        self.assertEqual(called, [DAY, DAY + 10])
        loop.stop()


class FileTimeTests(TimeCase):
    """The age of files."""

    def test_filesAgeByMoves(self) -> None:
        """One that was written before a move is older by it, one that was written
        behind it is not."""
        disk = MemoryDisk()
        files = moved_files(disk, self.time)
        for name, moved in (("a", 0), ("b", DAY), ("c", 2 * DAY)):
            self.time.move(moved * 1000)
            self.reactor.advance(1)
            disk.now_ms = 1000 + int(self.reactor.seconds() * 1000)
            files.open(f"/{name}", create=True)
            self.assertTrue(files.exists(f"/{name}"))
            self.reactor.advance(1)
        ages = [self.time.wall_ms() - files.modified_ms(f"/{name}") for name in "abc"]
        self.assertEqual(
            [round(age / 1000) for age in ages], [3 * DAY + 5, 2 * DAY + 3, 1]
        )


class RestampTests(TimeCase):
    """What clients say about now."""

    def test_nowOfClientsIsMoved(self) -> None:
        """In each request that has it, and only if time was moved."""
        for code, field in NOW_FIELDS.items():
            request = Command(code, {field: "700", "topic": "7"})
            self.time.restamp(request)
            self.assertEqual(request.ext, {field: "700", "topic": "7"})
        self.time.move(50)
        for code, field in NOW_FIELDS.items():
            request = Command(code, {field: "700", "topic": "7"})
            self.time.restamp(request)
            self.assertEqual(request.ext, {field: "750", "topic": "7"})

    def test_otherFieldsStay(self) -> None:
        """Those of other requests, what is no number, and none at all."""
        self.time.move(50)
        for code, ext in ((11, {"g": "700"}), (310, {"g": "x"}), (310, {"g": "0"})):
            request = Command(code, {**ext})
            self.time.restamp(request)
            self.assertEqual(request.ext, ext)
        self.time.restamp(Command(310))
