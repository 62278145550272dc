"""Tests of L{rocketbroker.broker.appends.group_commit}."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TypeVar

import attrs
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.group_commit import RETRY_SECONDS, GroupCommit
from rocketbroker.config.store import StoreOptions
from rocketbroker.store.interfaces import Draft
from rocketbroker.testing.replicas import ScriptedReplicas
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


class StrictClock(Clock):
    """Refuses what a reactor refuses."""

    def callLater(
        self,
        delay: float,
        callable: Callable[..., object],
        *args: object,
        **kw: object,
    ) -> IDelayedCall:
        """Not before now."""
        assert delay >= 0, delay
        return super().callLater(delay, callable, *args, **kw)


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
            ScriptedReplicas().acked,
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
        self.group_commit.watch_flush(
            lambda: answered.append(self.group_commit.flushes)
        )
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


class CopiesTests(SynchronousTestCase):
    """Groups that wait for replicas, and perhaps for the disk as well."""

    def setUp(self) -> None:
        """A store, and replicas that have nothing yet."""
        self.settled: list[tuple[bytes, int]] = []
        self.begin("ASYNC_FLUSH")

    def begin(self, flush: str) -> None:
        """Work with that flush mode."""
        self.rig = Rig({"flushDiskType": flush})
        self.addCleanup(self.rig.close)
        self.thread = SlowThread()
        self.replicas = ScriptedReplicas()
        self.group_commit = GroupCommit(
            self.rig.clock,
            self.rig.store,
            StoreOptions(
                flush_disk_type=flush, sync_flush_timeout=5000, slave_timeout=3000
            ),
            self.thread,
            self.replicas.acked,
        )
        self.replicas.watch(self.group_commit.copied)

    def settle(self, drafts: list[Draft], code: int) -> None:
        """Note who was answered with what."""
        self.settled.extend((draft.body, code) for draft in drafts)

    def admit(self, body: bytes, copies: int = 2) -> int:
        """Append a message and let it wait; the position behind it."""
        draft = self.rig.append(body)
        self.group_commit.admit([draft], self.settle, copies)
        return draft.end

    def test_reported(self) -> None:
        """A group is released by the report that passes it, with all before it."""
        self.replicas.report(0)
        self.admit(b"a")
        end = self.admit(b"b")
        last = self.admit(b"c")
        self.replicas.report(end - 1)
        self.assertEqual(self.settled, [(b"a", 0)])
        self.replicas.report(end)
        self.assertEqual(self.settled, [(b"a", 0), (b"b", 0)])
        self.assertEqual(
            (self.group_commit.waiting, self.group_commit.waiting_for_copies), (1, 1)
        )
        self.assertEqual(self.group_commit.waiting_bytes, last - end)

    def test_oneSweep(self) -> None:
        """A report releases all the groups that it passes."""
        ends = [self.admit(b"%d" % number) for number in range(5)]
        self.replicas.report(ends[-1])
        self.assertEqual(len(self.settled), 5)
        self.assertEqual(self.group_commit.waiting_bytes, 0)

    def test_noFlush(self) -> None:
        """With ASYNC_FLUSH nothing is flushed for it."""
        self.replicas.report(self.admit(b"a"))
        self.assertEqual((self.group_commit.flushes, self.thread.ended), (0, []))

    def test_severalCopies(self) -> None:
        """Who needs more copies than there are keeps nobody else waiting."""
        self.admit(b"three", 3)
        self.admit(b"two", 2)
        end = self.admit(b"three more", 3)
        self.replicas.report(end)
        self.assertEqual(self.settled, [(b"two", 0)])
        self.replicas.report(end, end)
        self.assertEqual(self.settled[1:], [(b"three", 0), (b"three more", 0)])

    def test_timeout(self) -> None:
        """Who has too few copies after slaveTimeout hears so, each in his own time, and
        nothing later."""
        self.admit(b"a")
        self.rig.clock.advance(2)
        end = self.admit(b"b")
        self.rig.clock.advance(0.9)
        self.assertEqual(self.settled, [])
        self.assertEqual(self.group_commit.waiting_ms(), 2900)
        self.rig.clock.advance(0.1)
        timeout = ResponseCode.FLUSH_SLAVE_TIMEOUT
        self.assertEqual(self.settled, [(b"a", timeout)])
        self.replicas.report(end)
        self.assertEqual(self.settled[1:], [(b"b", 0)])
        self.assertEqual(self.group_commit.slave_timeouts, 1)
        self.assertEqual(self.group_commit.timeouts, 0)
        self.rig.clock.advance(9)
        self.assertEqual(len(self.settled), 2)
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])

    def test_timeoutWhileAnswering(self) -> None:
        """A deadline that passes while others are answered is due at once: a reactor
        refuses to wait for less than nothing."""
        clock = StrictClock()
        group_commit = GroupCommit(
            clock,
            self.rig.store,
            StoreOptions(slave_timeout=3000),
            self.thread,
            self.replicas.acked,
        )

        def settle_slowly(drafts: list[Draft], code: int) -> None:
            self.settle(drafts, code)
            clock.rightNow += 0.01

        group_commit.admit([self.rig.append(b"a")], settle_slowly, 2)
        clock.advance(0.001)
        group_commit.admit([self.rig.append(b"b")], settle_slowly, 2)
        clock.advance(2.999)
        timeout = ResponseCode.FLUSH_SLAVE_TIMEOUT
        self.assertEqual(self.settled, [(b"a", timeout), (b"b", timeout)])

    def test_gone(self) -> None:
        """A slave that has gone counts no more; who comes in its place does."""
        end = self.admit(b"a", 3)
        self.replicas.report(end, 0)
        self.replicas.report(end)
        self.assertEqual(self.settled, [])
        self.replicas.report(end, end)
        self.assertEqual(self.settled, [(b"a", 0)])

    def test_both(self) -> None:
        """With SYNC_FLUSH a group waits for disk and copies, in whatever order they
        come."""
        self.begin("SYNC_FLUSH")
        end = self.admit(b"a")
        self.replicas.report(end)
        self.assertEqual(self.settled, [])
        self.thread.tell()
        self.assertEqual(self.settled, [(b"a", 0)])
        end = self.admit(b"b")
        self.admit(b"not copied", 1)
        self.thread.tell()
        self.thread.tell()
        self.assertEqual(self.settled[1:], [(b"not copied", 0)])
        self.replicas.report(end)
        self.assertEqual(self.settled[2:], [(b"b", 0)])
        self.assertEqual(self.group_commit.waiting_bytes, 0)

    def test_bothLate(self) -> None:
        """Of two outcomes that are bad the replicas' is told, when both are known."""
        self.begin("SYNC_FLUSH")
        self.admit(b"a")
        self.rig.clock.advance(4)
        self.assertEqual(self.settled, [])
        end = self.admit(b"b")
        self.replicas.report(end)
        self.rig.clock.advance(1)
        self.assertEqual(self.settled, [(b"a", ResponseCode.FLUSH_SLAVE_TIMEOUT)])
        self.rig.clock.advance(4)
        self.assertEqual(self.settled[1:], [(b"b", ResponseCode.FLUSH_DISK_TIMEOUT)])
        self.assertEqual(
            (self.group_commit.timeouts, self.group_commit.slave_timeouts), (1, 1)
        )

    def test_flushFails(self) -> None:
        """After a flush that failed the answer waits for the copies, as always."""
        self.begin("SYNC_FLUSH")
        self.rig.disk.fail("datasync", errno.EIO)
        end = self.admit(b"a")
        self.thread.tell()
        self.assertEqual(self.settled, [])
        self.replicas.report(end)
        self.assertEqual(self.settled, [(b"a", ResponseCode.FLUSH_DISK_TIMEOUT)])

    def test_shorterTimeout(self) -> None:
        """The shorter of two times is kept, whichever began first, also after it was
        changed."""
        self.begin("SYNC_FLUSH")
        self.admit(b"disk", 1)
        self.rig.clock.advance(1)
        self.admit(b"slow")
        self.thread.tell()
        self.thread.tell()
        settings = self.rig.settings
        store = attrs.evolve(settings.store, slave_timeout=500)
        self.group_commit.configure(attrs.evolve(settings, store=store))
        self.admit(b"fast", 3)
        self.thread.tell()
        timeout = ResponseCode.FLUSH_SLAVE_TIMEOUT
        self.rig.clock.advance(0.5)
        self.assertEqual(self.settled, [(b"disk", 0), (b"fast", timeout)])
        self.rig.clock.advance(2.5)
        self.assertEqual(self.settled[2:], [(b"slow", timeout)])

    def test_settled(self) -> None:
        """Who asks hears when all are answered, whatever they wait for."""
        self.begin("SYNC_FLUSH")
        end = self.admit(b"a")
        self.admit(b"b", 1)
        done = self.group_commit.settled()
        self.thread.tell()
        self.thread.tell()
        self.rig.clock.advance(0)
        self.assertNoResult(done)
        self.replicas.report(end)
        self.rig.clock.advance(0)
        self.assertIsNone(self.successResultOf(done))

    def test_stop(self) -> None:
        """At the end nobody waits for reports that cannot come."""
        self.admit(b"a")
        self.assertIsNone(self.successResultOf(self.group_commit.stop()))
        self.assertEqual(self.settled, [(b"a", ResponseCode.FLUSH_SLAVE_TIMEOUT)])
        self.assertEqual(self.rig.clock.getDelayedCalls(), [])
