"""Tests of L{rocketbroker.broker.appends.own_appends}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.appends.own_appends import OwnAppends
from rocketbroker.store.interfaces import PUT_OK, Draft
from tests.broker.rig import HOST, Rig


class OwnAppendsTests(SynchronousTestCase):
    """Appends that no client waits for, and some that one does."""

    def begin(self, flush: str) -> None:
        """A store that is flushed in one way or the other."""
        self.rig = Rig({"flushDiskType": flush}, threads=True)
        self.addCleanup(self.rig.close)
        self.announced = 0
        self.own = OwnAppends(self.rig.store, self.rig.group_commit)
        self.own.watch(self.announce, lambda: None)

    def announce(self) -> None:
        """Count it."""
        self.announced += 1

    def draft(self, wait: bool = True) -> Draft:
        """A message."""
        queue = self.rig.store.queue("T", 0)
        return Draft(queue, b"b", b"", 0, 0, 0, HOST, 0, 0, None, wait=wait)

    def flushed(self) -> bool:
        """Whether all is on the disk, after threads have run."""
        self.rig.threads.run()
        return self.rig.store.flushed_position == self.rig.store.published_position

    def test_putWithoutWatcherStores(self) -> None:
        """Before anyone watches, drafts are stored all the same."""
        rig = Rig({})
        self.addCleanup(rig.close)
        self.rig = rig
        draft = self.draft()
        OwnAppends(rig.store, rig.group_commit).put([draft])
        self.assertEqual(draft.status, PUT_OK)

    def test_putAnnouncesOnceForAllDrafts(self) -> None:
        """Drafts are stored together, and announced; the system flushes them later."""
        self.begin("ASYNC_FLUSH")
        drafts = [self.draft(), self.draft()]
        self.own.put(drafts)
        self.assertEqual([draft.status for draft in drafts], [PUT_OK] * 2)
        self.assertEqual(self.announced, 1)
        self.assertFalse(self.flushed())

    def test_putFlushesWithSyncFlush(self) -> None:
        """Where senders wait for the disk, what the broker stores is flushed, too."""
        self.begin("SYNC_FLUSH")
        self.own.put([self.draft()])
        self.assertTrue(self.flushed())

    def test_stepsOneByOne(self) -> None:
        """First all appends of a turn, then one announcement, then one flush."""
        self.begin("SYNC_FLUSH")
        self.own.append([self.draft()])
        self.own.append([self.draft()])
        self.assertFalse(self.flushed())
        self.assertEqual(self.announced, 0)
        self.own.announce()
        self.assertEqual(self.announced, 1)
        self.assertFalse(self.flushed())
        self.own.flush()
        self.assertTrue(self.flushed())

    def test_clientWaitsForTheDisk(self) -> None:
        """With SYNC_FLUSH a client is answered when its drafts are flushed."""
        self.begin("SYNC_FLUSH")
        draft = self.draft()
        self.own.append([draft])
        kept = self.own.announce_for([draft], 1)
        assert kept is not None
        self.assertNoResult(kept)
        self.rig.threads.run()
        self.successResultOf(kept)

    def test_clientThatWillNotWaitIsAnsweredAtOnce(self) -> None:
        """A flush begins for it, but nobody waits."""
        self.begin("SYNC_FLUSH")
        draft = self.draft(wait=False)
        self.own.append([draft])
        self.assertIsNone(self.own.announce_for([draft], 1))
        self.assertTrue(self.flushed())

    def test_nothingToWaitForWithAsyncFlush(self) -> None:
        """One copy in memory is enough; of no draft nothing is awaited."""
        self.begin("ASYNC_FLUSH")
        draft = self.draft()
        self.own.append([draft])
        self.assertIsNone(self.own.announce_for([draft], 1))
        self.assertIsNone(self.own.announce_for([], 2))
        self.assertEqual(self.announced, 2)
