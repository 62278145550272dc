"""Looking at the disks."""

from __future__ import annotations

import errno

from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.retention import LOOK_SECONDS, Retention
from rocketbroker.store.flags import DISK_FULL
from rocketbroker.testing.files import BLOCK
from rocketbroker.testing.threads import Threads
from tests.broker.rig import Rig


class LookTests(SynchronousTestCase):
    """A disk that fills, and is emptied."""

    def setUp(self) -> None:
        """A store on a disk of 100 blocks more than it needs, and a ballast."""
        self.rig = Rig({"diskSpaceEnoughBytes": "0"})
        self.addCleanup(self.rig.close)
        disk = self.disk = self.rig.disk
        disk.capacity = disk.used() + 100 * BLOCK
        self.ballast = disk.open("/ballast", create=True)
        self.clock = Clock()
        self.threads = Threads()
        self.retention = Retention(self.clock, self.rig.store, self.threads)
        self.retention.start()
        self.addCleanup(self.retention.stop)

    def look(self) -> list[tuple[LogLevel, str]]:
        """Let a second pass; what was logged."""
        with capturedLogs() as events:
            self.clock.advance(LOOK_SECONDS)
            self.threads.run()
        return [
            (event["log_level"], event["log_format"].format(**event))
            for event in events
        ]

    def test_fullAndNotFull(self) -> None:
        """A full disk is told once, with the figures, and once when it is over."""
        self.assertEqual(self.look(), [])
        self.ballast.allocate(0, 100 * BLOCK)
        ((level, said),) = self.look()
        self.assertEqual(level, LogLevel.error)
        self.assertIn("Nothing is stored: the disk is full: /store/commitlog:", said)
        self.assertIn("100 %", said)
        self.assertEqual(self.look(), [])
        self.assertTrue(self.rig.store.flags.has(DISK_FULL))
        self.ballast.truncate(0)
        self.assertEqual(self.look(), [(LogLevel.info, "Messages are stored again.")])

    def test_oneAtATime(self) -> None:
        """A disk that hangs is asked once."""
        self.clock.advance(LOOK_SECONDS)
        self.clock.advance(LOOK_SECONDS)
        self.assertEqual(len(self.threads.waiting), 1)

    def test_stop(self) -> None:
        """A stop waits for the thread, and nothing comes after it."""
        self.clock.advance(LOOK_SECONDS)
        done = self.retention.stop()
        self.assertNoResult(done)
        self.threads.run()
        self.successResultOf(done)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.successResultOf(self.retention.stop())

    def test_noAnswer(self) -> None:
        """A disk that does not answer is asked again."""
        self.disk.fail("usage", errno.EIO, times=2)
        self.assertEqual(self.look(), [])
        self.assertEqual(self.rig.store.disk_usage(), -1.0)
        self.look()
        self.assertGreater(self.rig.store.disk_usage(), 0)
