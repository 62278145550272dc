"""Tests of L{rocketbroker.broker.storage.group_commit}."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.storage.group_commit import RETRY_SECONDS, GroupCommit
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.interfaces import Draft
from rocketbroker.wire.codes import ResponseCode
from tests.broker.rig import Rig

T = TypeVar("T")


class SlowThread:
    """Does the work at once and tells later, as a slow flush does."""

    def __init__(self) -> None:
        self.ended: list[Callable[[], None]] = []

    def __call__(self, function: Callable[[], T], /) -> Deferred[T]:
        """Do it now."""
        done: Deferred[T] = Deferred()
        try:
            result = function()
        except OSError as error:
            failure = error
            self.ended.append(lambda: done.errback(failure))
        else:
            self.ended.append(lambda: done.callback(result))
        return done

    def tell(self) -> None:
        """Tell what came of it."""
        ended, self.ended = self.ended, []
        for each in ended:
            each()


class DurabilityTests(SynchronousTestCase):
    """Group commit."""

    def setUp(self) -> None:
        """A store, and a thread that flushes slowly."""
        self.rig = Rig({"flushDiskType": "SYNC_FLUSH"})
        self.addCleanup(self.rig.close)
        self.thread = SlowThread()
        self.group_commit = GroupCommit(
            self.rig.clock,
            self.rig.store,
            StoreOptions(flush_disk_type="SYNC_FLUSH", sync_flush_timeout=5000),
            self.thread,
        )
        self.settled: list[tuple[bytes, int]] = []

    def settle(self, drafts: list[Draft], code: int) -> None:
        """Note who was answered with what."""
        self.settled.extend((draft.body, code) for draft in drafts)

    def admit(self, *bodies: bytes) -> None:
        """Append messages and let them wait together."""
        drafts = [self.rig.append(body) for body in bodies]
        self.group_commit.admit(drafts, self.settle)

    def test_mode(self) -> None:
        """Only with SYNC_FLUSH answers wait."""
        asynchronous = Rig({})
        self.addCleanup(asynchronous.close)
        self.assertFalse(asynchronous.group_commit.synchronous)
        self.assertTrue(self.group_commit.synchronous)

    def test_flushed(self) -> None:
        """A group is released when the flush that covers it is over."""
        self.admit(b"a", b"b")
        self.assertEqual(self.settled, [])
        self.assertEqual(self.group_commit.waiting, 2)
        self.assertGreater(self.group_commit.waiting_bytes, 0)
        self.thread.tell()
        self.assertEqual(self.settled, [(b"a", 0), (b"b", 0)])
        self.assertEqual(
            (self.group_commit.waiting, self.group_commit.waiting_bytes), (0, 0)
        )
        self.assertEqual(self.group_commit.flushes, 1)

    def test_next(self) -> None:
        """What arrives while a flush is in flight goes into the next, all together."""
        self.admit(b"a")
        self.admit(b"b")
        self.admit(b"c")
        self.assertEqual(len(self.thread.ended), 1)
        self.thread.tell()
        self.assertEqual(self.settled, [(b"a", 0)])
        self.assertEqual(len(self.thread.ended), 1)
        self.thread.tell()
        self.assertEqual(self.settled, [(b"a", 0), (b"b", 0), (b"c", 0)])
        self.assertEqual(len(self.thread.ended), 0)
        self.assertEqual(self.group_commit.flushes, 2)

    def test_timeout(self) -> None:
        """Who waits longer than syncFlushTimeout hears so, and nothing later."""
        self.admit(b"a")
        self.rig.clock.advance(3)
        self.admit(b"b")
        self.rig.clock.advance(2)
        self.assertEqual(self.settled, [(b"a", ResponseCode.FLUSH_DISK_TIMEOUT)])
        self.assertEqual(
            (self.group_commit.waiting, self.group_commit.timeouts), (1, 1)
        )
        self.rig.clock.advance(3)
        self.assertEqual(self.settled[1:], [(b"b", ResponseCode.FLUSH_DISK_TIMEOUT)])
        self.thread.tell()
        self.thread.tell()
        self.assertEqual(len(self.settled), 2)
        self.assertEqual(
            (self.group_commit.waiting, self.group_commit.waiting_bytes), (0, 0)
        )

    def test_timerOfAGroupThatWasReleased(self) -> None:
        """The timer that one group has set serves the groups after it."""
        self.admit(b"a")
        self.thread.tell()
        self.rig.clock.advance(4)
        self.admit(b"b")
        self.rig.clock.advance(4)
        self.assertEqual(self.settled, [(b"a", 0)])
        self.rig.clock.advance(1)
        self.assertEqual(self.settled[1:], [(b"b", ResponseCode.FLUSH_DISK_TIMEOUT)])

    def test_failure(self) -> None:
        """After a flush that failed nobody who waited is told that all is well."""
        self.rig.disk.fail("datasync", errno.EIO)
        self.admit(b"a")
        self.admit(b"b")
        self.thread.tell()
        timeout = ResponseCode.FLUSH_DISK_TIMEOUT
        self.assertEqual(self.settled, [(b"a", timeout), (b"b", timeout)])
        self.assertEqual(self.group_commit.failures, 1)
        self.admit(b"c")
        self.assertEqual(len(self.thread.ended), 0)
        self.rig.clock.advance(RETRY_SECONDS)
        self.thread.tell()
        self.assertEqual(self.settled[2:], [(b"c", 0)])

    def test_observers(self) -> None:
        """Who asked is told after each flush that succeeded."""
        answered: list[int] = []
        self.group_commit.on_flush(lambda: answered.append(self.group_commit.flushes))
        self.group_commit.flush()
        self.group_commit.flush()
        self.assertEqual(answered, [])
        self.thread.tell()
        self.thread.tell()
        self.assertEqual(answered, [1, 2])

    def test_settled(self) -> None:
        """Who asks hears when all who wait by then are answered, in a later turn."""
        self.assertIsNone(self.successResultOf(self.group_commit.settled()))
        self.admit(b"a")
        self.admit(b"b")
        done = self.group_commit.settled()
        self.thread.tell()
        self.admit(b"c")
        self.rig.clock.advance(0)
        self.assertNoResult(done)
        self.thread.tell()
        self.assertNoResult(done)
        self.rig.clock.advance(0)
        self.assertIsNone(self.successResultOf(done))
        self.assertEqual(self.group_commit.waiting, 1)

    def test_settledByTimeout(self) -> None:
        """Those whose time is over have their answers too."""
        self.admit(b"a")
        done = self.group_commit.settled()
        self.rig.clock.advance(5)
        self.rig.clock.advance(0)
        self.assertIsNone(self.successResultOf(done))

    def test_stop(self) -> None:
        """At the end the disk gets what waits; then no timer is left."""
        self.admit(b"a")
        self.admit(b"b")
        stopped: list[None] = []
        self.group_commit.stop().addCallback(stopped.append)
        self.thread.tell()
        self.assertEqual(stopped, [])
        self.thread.tell()
        self.assertEqual((stopped, len(self.settled)), ([None], 2))
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])

    def test_stopIdle(self) -> None:
        """With nothing to do the end comes at once."""
        self.assertIsNone(self.successResultOf(self.group_commit.stop()))

    def test_stopFailing(self) -> None:
        """A disk that refuses does not keep us from stopping."""
        self.rig.disk.fail("datasync", errno.EIO, times=9)
        self.admit(b"a")
        done = self.group_commit.stop()
        self.thread.tell()
        self.assertIsNone(self.successResultOf(done))
        self.assertEqual(self.settled, [(b"a", ResponseCode.FLUSH_DISK_TIMEOUT)])
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])

    def test_stopWhileRetrying(self) -> None:
        """A retry that waits is not waited for."""
        self.rig.disk.fail("datasync", errno.EIO)
        self.admit(b"a")
        self.thread.tell()
        self.assertIsNone(self.successResultOf(self.group_commit.stop()))
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
