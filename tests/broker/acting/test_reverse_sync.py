"""What a master takes over from a slave."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.acting.reverse_sync import ReverseSync
from rocketbroker.broker.schedule.delay_offsets import DelayOffsets
from rocketbroker.errors import SystemFailure
from rocketbroker.store.timerwheel.checkpoint import Checkpoint
from rocketbroker.wire.fastjson import dumps
from tests.broker.callers import Caller
from tests.broker.rig import WALL_MS, Rig


class ReverseSyncTests(SynchronousTestCase):
    """L{ReverseSync}, of a master with offsets of its own."""

    def setUp(self) -> None:
        """Group G is at 10 of queue 0 and at 5 of queue 1."""
        self.rig = Rig({"consumerOffsetUpdateVersionStep": "2"})
        self.addCleanup(self.rig.close)
        self.offsets = self.rig.offsets
        self.offsets.commit("G", "T", 0, 10)
        self.offsets.commit("G", "T", 1, 5)
        self.assertEqual(self.offsets.version.counter, 1)
        self.delays: list[Mapping[str, object]] = []
        self.timers: list[Checkpoint] = []
        self.caller = Caller()
        self.reverse = ReverseSync(
            self.caller, self.offsets, self.delays.append, self.timers.append
        )

    def take(self, counter: int, offsets: dict[str, dict[int, int]]) -> None:
        """Take over a table of consumers of this version."""
        done = Deferred.fromCoroutine(self.reverse.take("s:1"))
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), ("s:1", 45))
        call.answer(body=b'{"offsetTable":{1:7}}')
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), ("s:1", 43))
        version = {"counter": counter, "stateVersion": 0, "timestamp": WALL_MS}
        call.answer(body=dumps({"dataVersion": version, "offsetTable": offsets}))
        (call,) = self.caller.take()
        self.assertEqual((call.address, call.command.code), ("s:1", 60))
        call.answer(body=Checkpoint(counter, 2, 3, 4).encode())
        self.successResultOf(done)
        self.assertEqual(self.timers.pop(), Checkpoint(counter, 2, 3, 4))

    def test_newer(self) -> None:
        """A newer table is taken as it is, group by group: somebody may have set an
        offset back."""
        self.take(9, {"T@G": {0: 3}, "U@H": {0: 1}})
        self.assertEqual(self.offsets.queues("G", "T"), {0: 3})
        self.assertEqual(self.offsets.queues("H", "U"), {0: 1})
        self.assertEqual(self.offsets.version.counter, 9)
        self.assertEqual(self.delays, [{"offsetTable": {1: 7}}])

    def test_notNewer(self) -> None:
        """Of one that is not newer, though a slave has done without the master, no
        offset goes back, and all go ahead."""
        for counter in (1, 0):
            self.take(counter, {"T@G": {0: 12 - counter, 1: 4, 2: 6}, "U@H": {0: 1}})
            self.assertEqual(
                self.offsets.queues("G", "T"), {0: 12 - counter, 1: 5, 2: 6}
            )
            self.assertEqual(self.offsets.queues("H", "U"), {0: 1})
            self.assertEqual(self.offsets.version.counter, 1)

    def test_saved(self) -> None:
        """What was taken over is written with the next write of the table."""
        self.rig.broker.metadata.offsets.save_now()
        self.take(1, {"U@H": {0: 1}})
        self.rig.broker.metadata.offsets.save_now()
        self.rig.disk.crash()
        again = Rig({}, disk=self.rig.disk)
        self.addCleanup(again.close)
        self.assertEqual(again.offsets.query("H", "U", 0), 1)

    def test_refused(self) -> None:
        """A slave that refuses is a failure, and nothing is taken."""
        done = Deferred.fromCoroutine(self.reverse.take("s:1"))
        self.caller.take()[0].answer(1)
        self.failureResultOf(done, SystemFailure)
        self.assertEqual(self.delays, [])

    def test_delays(self) -> None:
        """No delay level goes back, and the newer version counts."""
        table = DelayOffsets(self.rig.file("delays"), 100, lambda: WALL_MS)
        table.put(1, 5)
        table.put(2, 9)
        version = {"counter": 3, "stateVersion": 0, "timestamp": 8}
        for found in ({"offsetTable": {1: 7, 2: 8, 3: 1, "x": 4}}, {}, {"a": 1}):
            table.take_back({"dataVersion": version, **found})
            self.assertEqual([table.get(level) for level in (1, 2, 3)], [7, 9, 1])
        self.assertEqual(table.version.counter, 3)
