"""Looking at the disks."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Any

from twisted.internet.task import Clock
from twisted.logger import LogLevel, capturedLogs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.storage.cleanup import (
    CLEANING,
    DISK_SECONDS,
    LOOK_AT_DISKS,
    Cleanup,
)
from rocketbroker.config.store import StoreOptions
from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.message_store import Store
from rocketbroker.store.retention.cleaner import local_hour
from rocketbroker.store.running_flags import DISK_FULL
from rocketbroker.testing.threads import Threads
from tests.broker.rig import Rig, answered, services_of


class Failing:
    """A store that may have a mistake in its cleaning, or in its look at the disks.

    @ivar broken: where it has it: C{clean}, C{look}, or nowhere.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.broken = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def clean(self) -> Iterator[int]:
        """Steps of cleaning, or the mistake."""
        assert self.broken != "clean" or 1 // 0
        return self._store.clean()

    def measure_disk(self) -> None:
        """A look, or the mistake."""
        assert self.broken != "look" or 1 // 0
        self._store.measure_disk()


class CleaningTests(SynchronousTestCase):
    """Rounds of cleaning."""

    def setUp(self) -> None:
        """A store of six segments that have expired."""
        self.begin(";".join(map(str, range(24))))

    def begin(self, hours: str) -> None:
        """Such a store, which is cleaned at these hours."""
        settings = {
            "deleteWhen": hours,
            "fileReservedTime": "0",
            "messageIndexEnable": "false",
            "cleanResourceInterval": "20000",
            "deleteFileBatchMax": "3",
            "deleteCommitLogFilesInterval": "500",
        }
        self.rig = Rig(settings, wrap=Failing)
        self.addCleanup(self.rig.close)
        for _ in range(6):
            self.rig.append(b"x" * 60_000)
        self.rig.scheduler.dispatch()
        self.rig.store.flush()
        self.threads = Threads()
        options = StoreOptions.from_properties(settings)
        self.services = services_of(self.rig.clock, options)
        self.cleanup = Cleanup(
            self.rig.clock,
            self.rig.seen,
            self.threads,
            self.services,
        )
        self.cleanup.start()

    def left(self, seconds: float) -> int:
        """How many segments are left a while later."""
        self.rig.clock.advance(seconds)
        for _ in range(3):
            self.threads.run()
        return len(self.rig.disk.list("/store/commitlog"))

    def test_rounds(self) -> None:
        """The first round begins after a minute, its steps have pauses, the next one
        begins an interval after its beginning; removed files are logged."""
        self.assertEqual(self.left(59.9), 6)
        with capturedLogs() as events:
            for seconds, left in ((0.1, 5), (0.4, 5), (0.1, 4), (0.5, 3)):
                self.assertEqual(self.left(seconds), left)
            self.left(0)
        (event,) = events
        self.assertEqual(
            event["log_format"].format(**event),
            "Removed 3 commit log files and 0 files of queues and index; the log "
            "begins at 196608.",
        )
        self.assertEqual(self.cleanup.rounds, 1)
        self.assertEqual(self.left(18.9), 3)
        self.assertEqual(self.left(0.1), 2)
        self.cleanup.stop()

    def test_asked(self) -> None:
        """At another hour nothing goes, until an operator asks for it."""
        self.begin(str((local_hour(self.rig.wall_ms()) + 12) % 24))
        self.assertEqual(self.left(60), 6)
        self.cleanup.register(self.rig.table)
        answer = self.rig.ask(329, {})
        self.assertEqual((answer.code, answer.body), (0, b""))
        self.assertEqual(self.left(20), 5)
        self.cleanup.stop()

    def test_queuesAsked(self) -> None:
        """What queues do not need any more goes at once when an operator asks for it;
        numbers go on."""
        for _ in range(300):
            self.rig.append()
        for _ in range(2):
            self.rig.append(b"x" * 60_000)
        self.rig.scheduler.dispatch()
        self.rig.store.flush()
        for _ in range(7):
            # A segment goes, and the round ends before the queues.
            next(self.rig.store.clean())
        queue = self.rig.store.queue("T", 0)
        files = "/store/consumequeue/T/0"
        self.assertEqual(len(self.rig.disk.list(files)), 4)
        self.cleanup.register(self.rig.table)
        asked = self.rig.begin(306, {})
        while self.threads.waiting:
            self.threads.run()
        self.assertEqual(answered(asked).code, 0)
        self.assertEqual(len(self.rig.disk.list(files)), 1)
        self.assertEqual((queue.min_offset, queue.max_offset), (306, 308))
        self.cleanup.stop()

    def test_hanging(self) -> None:
        """A file that cannot be removed is told of once."""
        self.rig.disk.fail("remove", errno.EPERM, times=100)
        with capturedLogs() as events:
            self.left(60)
            self.left(20)
        (event,) = events
        self.assertEqual(event["log_level"], LogLevel.error)
        self.assertIn("cannot be removed", event["log_format"].format(**event))
        self.cleanup.stop()

    def test_failure(self) -> None:
        """A round that fails is logged and counted, and the next one comes."""
        self.rig.seen.broken = "clean"
        self.assertEqual(self.left(60), 6)
        self.rig.seen.broken = ""
        self.left(19.9)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(self.services.calls[CLEANING].failures, 1)
        self.assertEqual(self.left(0.1), 5)
        self.cleanup.stop()

    def test_stop(self) -> None:
        """A stop between two steps waits for the one that runs, and no other comes."""
        self.rig.clock.advance(60)
        self.services.stop()
        done = self.cleanup.stop()
        self.assertNoResult(done)
        self.threads.run()
        self.successResultOf(done)
        self.assertEqual(self.left(1000), 5)

    def test_stopInAPause(self) -> None:
        """A stop between two steps ends the round."""
        self.left(60)
        self.successResultOf(self.cleanup.stop())
        self.assertEqual(self.left(1000), 5)


class LookTests(SynchronousTestCase):
    """A disk that fills, and is emptied."""

    def setUp(self) -> None:
        """A store on a disk of 100 blocks more than it needs, and a ballast."""
        self.rig = Rig({"diskSpaceEnoughBytes": "0"}, wrap=Failing)
        self.addCleanup(self.rig.close)
        disk = self.disk = self.rig.disk
        disk.capacity = disk.used() + 100 * BLOCK
        self.ballast = disk.open("/ballast", create=True)
        self.clock = Clock()
        self.threads = Threads()
        self.services = services_of(self.clock)
        self.cleanup = Cleanup(self.clock, self.rig.seen, self.threads, self.services)
        self.cleanup.start()
        self.addCleanup(self.cleanup.stop)

    def look(self) -> list[tuple[LogLevel, str]]:
        """Let a second pass; what was logged."""
        with capturedLogs() as events:
            self.clock.advance(DISK_SECONDS)
            self.threads.run()
        return [
            (event["log_level"], event["log_format"].format(**event))
            for event in events
        ]

    def test_fullAndNotFull(self) -> None:
        """A full disk is told once, with the figures, and once when it is over."""
        self.assertEqual(self.look(), [])
        self.ballast.allocate(0, 100 * BLOCK)
        ((level, warnings),) = self.look()
        self.assertEqual(level, LogLevel.error)
        self.assertIn(
            "Nothing is stored: the disk is full: /store/commitlog:", warnings
        )
        self.assertIn("100 %", warnings)
        self.assertEqual(self.look(), [])
        self.assertTrue(self.rig.store.flags.has(DISK_FULL))
        self.ballast.truncate(0)
        self.assertEqual(self.look(), [(LogLevel.info, "Messages are stored again.")])

    def test_oneAtATime(self) -> None:
        """A disk that hangs is asked once."""
        self.clock.advance(DISK_SECONDS)
        self.clock.advance(DISK_SECONDS)
        self.assertEqual(len(self.threads.waiting), 1)

    def test_stop(self) -> None:
        """A stop waits for the thread, and nothing comes after it."""
        self.clock.advance(DISK_SECONDS)
        self.services.stop()
        done = self.cleanup.stop()
        self.assertNoResult(done)
        self.threads.run()
        self.successResultOf(done)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        self.successResultOf(self.cleanup.stop())

    def test_failure(self) -> None:
        """A look that fails is logged and counted, and the next one comes."""
        self.rig.seen.broken = "look"
        self.look()
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        self.assertEqual(self.services.calls[LOOK_AT_DISKS].failures, 1)
        self.rig.seen.broken = ""
        self.ballast.allocate(0, 100 * BLOCK)
        self.assertEqual(len(self.look()), 1)

    def test_noAnswer(self) -> None:
        """A disk that does not answer is asked again."""
        self.disk.fail("usage", errno.EIO, times=2)
        self.assertEqual(self.look(), [])
        self.assertEqual(self.rig.store.disk_usage(), -1.0)
        self.look()
        self.assertGreater(self.rig.store.disk_usage(), 0)
