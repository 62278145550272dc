"""The checkpoint file."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.commitlog.checkpoint import Checkpoint
from rocketbroker.testing.files import MemoryDisk


class CheckpointTests(SynchronousTestCase):
    """Five numbers in a file of 4096 bytes."""

    def setUp(self) -> None:
        """An empty directory."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.disk.sync_dir("/")

    def test_layout(self) -> None:
        """The fields stand where RocketMQ has them, and survive a crash."""
        checkpoint = Checkpoint(self.disk, "/s")
        checkpoint.physic_ms = 1
        checkpoint.logics_ms = 2
        checkpoint.save()
        checkpoint.index_ms = 3
        checkpoint.master_flushed = 4
        checkpoint.confirm = -1
        checkpoint.save()
        checkpoint.close()
        self.disk.crash()
        content = self.disk.read("/s/checkpoint")
        self.assertEqual(len(content), 4096)
        self.assertEqual(
            content[:40].hex(),
            "0000000000000001000000000000000200000000000000030000000000000004"
            "ffffffffffffffff",
        )
        again = Checkpoint(self.disk, "/s")
        again.load()
        self.assertEqual(
            (again.physic_ms, again.logics_ms, again.index_ms, again.master_flushed),
            (1, 2, 3, 4),
        )
        self.assertEqual(again.confirm, -1)

    def test_masterFlushed(self) -> None:
        """The master's position is written when it has changed, though nothing else
        has."""
        checkpoint = Checkpoint(self.disk, "/s")
        checkpoint.update((1, 2, 3), (4, 5))
        checkpoint.master_flushed = 77
        checkpoint.update((1, 2, 3), (4, 5))
        checkpoint.close()
        again = Checkpoint(self.disk, "/s")
        again.load()
        self.assertEqual(again.master_flushed, 77)

    def test_nothing(self) -> None:
        """A missing or short file says nothing."""
        checkpoint = Checkpoint(self.disk, "/s")
        checkpoint.load()
        self.assertEqual(checkpoint.safe_ms, 0)
        self.disk.open("/s/checkpoint", create=True).pwrite(b"\1" * 30, 0)
        checkpoint.load()
        self.assertEqual(checkpoint.safe_ms, 0)

    def test_unreadable(self) -> None:
        """One that cannot be read can be written."""
        self.test_nothing()
        Checkpoint(self.disk, "/s").save()
        self.disk.spoil("/s/checkpoint", 0, 4096)
        checkpoint = Checkpoint(self.disk, "/s")
        self.assertRaises(OSError, checkpoint.load)
        checkpoint.index_ms = 7
        checkpoint.save()
        again = Checkpoint(self.disk, "/s")
        again.load()
        self.assertEqual(again.index_ms, 7)

    def test_safe(self) -> None:
        """What is safe is the earlier of log and queues, less a margin."""
        checkpoint = Checkpoint(self.disk, "/s")
        checkpoint.physic_ms = 10_000
        checkpoint.logics_ms = 9_000
        self.assertEqual(checkpoint.safe_ms, 6_000)
