"""The parent of a server's process."""

from __future__ import annotations

from twisted.internet.error import ReactorNotRunning
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.parent import LOOK_SECONDS, ParentWatch


class ParentTests(SynchronousTestCase):
    """L{ParentWatch}."""

    def test_goneParentStopsTheServerOnce(self) -> None:
        """While the parent is there nothing happens; then the server stops."""
        clock, parents, stops = Clock(), [7], []
        watch = ParentWatch(clock, lambda: parents[-1], lambda: stops.append(1))
        watch.look()
        clock.pump([LOOK_SECONDS] * 3)
        self.assertEqual(stops, [])
        parents.append(1)
        clock.pump([LOOK_SECONDS] * 3)
        self.assertEqual(stops, [1])
        self.assertEqual(clock.getDelayedCalls(), [])

    def test_parentGoneDuringTheStartIsSeen(self) -> None:
        """It may go while the store is recovered, before the reactor runs."""
        parents, stops = [7], []
        watch = ParentWatch(Clock(), lambda: parents[-1], lambda: stops.append(1))
        parents.append(1)
        watch.look()
        self.assertEqual(stops, [1])

    def test_serverThatStopsAlreadyIsLeftAlone(self) -> None:
        """A parent ends its server and then itself: the reactor stops already."""

        def stop() -> None:
            raise ReactorNotRunning("Can't stop reactor that isn't running.")

        clock, parents = Clock(), [7]
        watch = ParentWatch(clock, lambda: parents[-1], stop)
        watch.look()
        parents.append(1)
        clock.pump([LOOK_SECONDS] * 3)
        self.assertEqual(clock.getDelayedCalls(), [])
