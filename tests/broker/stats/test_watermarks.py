"""What waits, in the log."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.figures import DISPATCH_BEHIND, WATERMARKS
from rocketbroker.broker.stats.watermarks import SLOW_MS
from tests.broker.rig import Rig, logged, pull_ext, send_ext


class WatermarksTests(SynchronousTestCase):
    """The lines of a broker with SYNC_FLUSH, whose threads run when they are told."""

    def setUp(self) -> None:
        """A broker with a topic."""
        # All messages are old.
        settings = {"accessMessageInMemoryMaxRatio": "0"}
        self.rig = Rig({"flushDiskType": "SYNC_FLUSH", **settings}, threads=True)
        self.addCleanup(self.rig.close)
        self.rig.topic("T")
        self.marks = self.rig.broker.figures.watermarks

    def send(self) -> None:
        """Begin a send, which waits for the disk."""
        self.rig.begin(310, send_ext(), b"body")
        self.rig.batcher.flush()

    def test_sends(self) -> None:
        """Sends that have waited long are a line; those that have not are none."""
        self.send()
        self.send()
        self.rig.clock.advance((SLOW_MS - 1) / 1000)
        self.assertEqual(logged(self.marks.look), [])
        self.rig.clock.advance(0.001)
        line = "[WATERMARK] Send Queue Size: 2 SlowTimeMills: 100"
        self.assertEqual(logged(self.marks.look), [line])
        self.rig.threads.run()
        self.assertEqual(logged(self.marks.look), [])

    def test_pulls(self) -> None:
        """So are pulls that wait for old messages."""
        self.send()
        self.rig.threads.run()
        self.rig.scheduler.dispatch()
        self.rig.begin(11, pull_ext())
        self.rig.clock.advance(0.5)
        line = "[WATERMARK] Pull Queue Size: 1 SlowTimeMills: 500"
        self.assertEqual(logged(self.marks.look), [line])
        self.rig.threads.run()

    def test_threads(self) -> None:
        """So are requests that wait for a thread; one that has begun does not."""
        self.rig.begin(28, {})
        self.rig.clock.advance(0.2)
        line = "[WATERMARK] Admin Queue Size: 1 SlowTimeMills: 200"
        self.assertEqual(logged(self.marks.look), [line])
        self.rig.threads.run()
        self.assertEqual(logged(self.marks.look), [])

    def test_behind(self) -> None:
        """Messages that are not dispatched are a line, in bytes."""
        self.assertEqual(logged(self.marks.look_behind), [])
        self.send()
        size = self.rig.store.published_position
        line = f"Dispatch task fall behind commit log {size}bytes"
        self.assertEqual(logged(self.marks.look_behind), [line])
        self.rig.threads.run()
        self.rig.scheduler.dispatch()
        self.assertEqual(logged(self.marks.look_behind), [])

    def test_services(self) -> None:
        """A broker looks for requests each second and at the dispatch each minute, from
        the tenth second on."""
        self.rig.broker.start()
        calls = self.rig.broker.services.calls
        self.rig.clock.pump([1.0] * 9)
        self.assertEqual([calls[WATERMARKS].runs, calls[DISPATCH_BEHIND].runs], [0, 0])
        self.rig.clock.pump([1.0] * 61)
        self.assertEqual([calls[WATERMARKS].runs, calls[DISPATCH_BEHIND].runs], [61, 2])
