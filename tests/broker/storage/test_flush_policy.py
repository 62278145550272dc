"""When the log is committed, and when log and queues are flushed."""

from __future__ import annotations

from rocketbroker.broker.storage.store_scheduler import DISPATCH_SECONDS
from rocketbroker.store.flush_threshold import PAGE
from tests.broker.storage.test_store_scheduler import UpkeepCase


class TimingCase(UpkeepCase):
    """Work that has begun."""

    def work(self, **settings: object) -> None:
        """Begin with those settings of the store."""
        self.begin(**settings)
        self.scheduler.start()
        self.rig.threads.run()
        self.addCleanup(self.stop)

    def advance(self, seconds: float) -> None:
        """Let time pass, and threads and what they lead to work."""
        self.rig.clock.advance(seconds)
        self.rig.threads.run()
        self.rig.clock.advance(0)

    def is_flushed(self) -> bool:
        """Whether all that was published is on the disk."""
        return self.rig.store.flushed_position == self.rig.store.published_position

    def is_committed(self) -> bool:
        """Whether all that was published may be read."""
        return self.rig.store.committed_position == self.rig.store.published_position

    def pages(self, count: int) -> None:
        """Append so many pages, and say so."""
        self.rig.append(b"x" * PAGE * count)
        self.scheduler.appended()


class FlushTests(TimingCase):
    """ASYNC_FLUSH."""

    def test_defaults(self) -> None:
        """Four pages within half a second; less after ten seconds."""
        self.work()
        self.pages(4)
        self.advance(0.4)
        self.assertFalse(self.is_flushed())
        self.advance(0.1)
        self.assertTrue(self.is_flushed())
        self.pages(1)
        self.advance(9)
        self.assertFalse(self.is_flushed())
        self.advance(0.5)
        self.assertTrue(self.is_flushed())

    def test_notWoken(self) -> None:
        """With flushCommitLogTimed, the default, an append wakes nobody."""
        self.work(wake_flush_when_put_message=True)
        self.pages(4)
        self.advance(DISPATCH_SECONDS)
        self.assertFalse(self.is_flushed())

    def test_woken(self) -> None:
        """Without it an append wakes the flush, which is done if it is worth it."""
        self.work(wake_flush_when_put_message=True, flush_commit_log_timed=False)
        self.pages(1)
        self.advance(DISPATCH_SECONDS)
        self.assertFalse(self.is_flushed())
        self.pages(4)
        self.advance(DISPATCH_SECONDS)
        self.assertTrue(self.is_flushed())

    def test_notByAppends(self) -> None:
        """Without wakeFlushWhenPutMessage no append wakes it."""
        self.work(flush_commit_log_timed=False)
        self.pages(4)
        self.advance(DISPATCH_SECONDS)
        self.assertFalse(self.is_flushed())


class SynchronousFlushTests(TimingCase):
    """SYNC_FLUSH."""

    def test_nobodyWaits(self) -> None:
        """What is appended without anybody waiting is flushed a moment later, and then
        seen."""
        self.work(flush_disk_type="SYNC_FLUSH")
        self.append()
        self.advance(DISPATCH_SECONDS)
        self.assertTrue(self.is_flushed())
        self.advance(DISPATCH_SECONDS)
        self.assertEqual(self.arrived, [(1, 1)])

    def test_inFlight(self) -> None:
        """A flush that is in flight is not asked for another; its end looks again."""
        self.work(flush_disk_type="SYNC_FLUSH")
        self.group_commit.flush()
        self.append()
        self.rig.clock.advance(DISPATCH_SECONDS)
        self.assertEqual(len(self.rig.threads.waiting), 1)
        self.advance(0)
        self.assertEqual(self.group_commit.flushes, 1)
        self.append()
        self.advance(DISPATCH_SECONDS)
        self.assertEqual(self.group_commit.flushes, 2)
        self.assertTrue(self.is_flushed())


class CommitTests(TimingCase):
    """The transient store pool."""

    def begin_pool(self, **settings: object) -> None:
        """Begin with a pool."""
        self.work(transient_store_pool_enable=True, **settings)

    def test_defaults(self) -> None:
        """A few messages are seen within 200 ms, four pages at once."""
        self.begin_pool()
        self.append()
        self.advance(DISPATCH_SECONDS)
        self.advance(0.199)
        self.assertEqual((self.is_committed(), self.arrived), (False, []))
        self.advance(0.001)
        self.assertTrue(self.is_committed())
        self.advance(DISPATCH_SECONDS)
        self.assertEqual(self.arrived, [(1, 1)])
        self.pages(4)
        self.advance(DISPATCH_SECONDS)
        self.assertEqual(self.arrived[1:], [(2, 1)])

    def test_eachTime(self) -> None:
        """Each interval commits, also when clocks do not count to a hair."""
        self.begin_pool()
        for count in range(1, 20):
            self.append()
            self.advance(0.2)
            self.advance(DISPATCH_SECONDS)
            self.assertEqual(len(self.arrived), count)

    def test_soonAfterACommit(self) -> None:
        """A message that comes just behind a commit waits no longer than others, also
        when that commit was not one of the regular ones."""
        self.begin_pool()
        self.advance(0.1)
        self.pages(4)
        self.advance(DISPATCH_SECONDS)
        self.append()
        self.advance(DISPATCH_SECONDS)
        self.assertFalse(self.is_committed())
        self.advance(0.2)
        self.assertTrue(self.is_committed())

    def test_notWoken(self) -> None:
        """Without wakeCommitWhenPutMessage four pages wait for the interval too."""
        self.begin_pool(wake_commit_when_put_message=False)
        self.pages(4)
        self.advance(0.199)
        self.assertFalse(self.is_committed())
        self.advance(0.001)
        self.assertTrue(self.is_committed())

    def test_thorough(self) -> None:
        """Less than the least pages waits for the thorough interval, if that is longer
        than the other."""
        self.begin_pool(commit_commit_log_thorough_interval=1000)
        self.append()
        self.advance(DISPATCH_SECONDS)
        for _ in range(9):
            self.advance(0.1)
        self.assertFalse(self.is_committed())
        self.advance(0.1)
        self.assertTrue(self.is_committed())

    def test_wakesFlush(self) -> None:
        """A commit wakes the flush, unless that is timed; and it flushes no more than
        is committed."""
        for timed in (True, False):
            self.begin_pool(flush_commit_log_timed=timed)
            self.pages(4)
            self.advance(DISPATCH_SECONDS)
            self.rig.append()
            self.advance(DISPATCH_SECONDS)
            store = self.rig.store
            flushed = 0 if timed else store.committed_position
            self.assertEqual(store.flushed_position, flushed)
            self.assertFalse(self.is_committed())


class QueueTests(TimingCase):
    """Queues and checkpoint."""

    def syncs(self) -> int:
        """How many times anything was synced."""
        return self.rig.disk.calls["datasync"]

    def test_leastPages(self) -> None:
        """The first time all queues are flushed; then those with two pages of new
        entries; and all of them after a minute."""
        self.work(flush_commit_log_thorough_interval=10_000_000)
        self.append()
        self.advance(0.5)
        before = self.syncs()
        self.advance(0.5)
        # The queue, and the checkpoint.
        self.assertEqual(self.syncs(), before + 2)
        for _ in range(50):
            self.append()
            self.advance(1)
        self.assertEqual(self.syncs(), before + 2)
        self.advance(10)
        self.assertEqual(self.syncs(), before + 4)

    def test_checkpoint(self) -> None:
        """A flush of the log reaches the checkpoint within a second, whatever the
        queues wait for."""
        self.work()
        self.advance(1)
        self.pages(4)
        self.advance(0.5)
        before = self.syncs()
        self.advance(0.5)
        self.assertEqual(self.syncs(), before + 1)
