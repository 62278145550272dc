"""When log and queues are flushed."""

from __future__ import annotations

from rocketbroker.broker.storage.store_scheduler import DISPATCH_SECONDS
from rocketbroker.store.flush_threshold import PAGE
from tests.broker.storage.schedulers import SchedulerCase


class TimingCase(SchedulerCase):
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
