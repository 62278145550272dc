"""How full a disk may be."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.store.disk_usage import (
    DiskRoom,
    DiskUsage,
    describe_refusal,
    readable_size,
)
from rocketbroker.store.running_flags import DISK_FULL, RunningFlags
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import options

BLOCKS = 1000


class DiskSpaceTests(SynchronousTestCase):
    """A disk of 1000 blocks, filled to one level after the other."""

    def setUp(self) -> None:
        """An empty disk, and a store that the ratios alone decide about."""
        self.disk = MemoryDisk(BLOCKS * BLOCK)
        self.disk.make_dirs("/log")
        self.flags = RunningFlags()
        self.own_bytes = 0
        self.ballast = self.disk.open("/ballast", create=True)
        self.space = self.make(0)

    def make(self, enough: int, **changes: object) -> DiskUsage:
        """A view of the disk."""
        return DiskUsage(
            self.disk,
            options(disk_space_enough_bytes=enough, **changes),
            ["/log"],
            "/queues",
            "/index",
            self.flags,
            lambda: self.own_bytes,
        )

    def fill(self, percent: float) -> None:
        """Let so much of the disk be used."""
        self.ballast.truncate(0)
        if percent:
            self.ballast.allocate(0, int(BLOCKS * percent / 100) * BLOCK)
        self.space.measure()

    def state(self) -> tuple[bool, bool, bool]:
        """Whether expired files go, whether any go, whether nothing is appended."""
        return self.space.expire, self.space.force, self.flags.has(DISK_FULL)

    def test_index(self) -> None:
        """The index may be on a disk of its own; how full that is decides nothing."""
        self.fill(50)
        self.assertEqual(self.space.index.ratio, self.space.queues.ratio)
        self.disk.fail("usage", errno.EIO, after=2)
        self.space.measure()
        self.assertEqual(self.space.index.ratio, -1)
        self.assertAlmostEqual(self.space.queues.ratio, 0.5, 2)
        self.assertEqual(self.state(), (False, False, False))

    def test_levels(self) -> None:
        """Each level is passed only above its percentage, rounded up; full is the store
        until the second level is reached again."""
        for percent, expected in (
            (0, (False, False, False)),
            (75, (False, False, False)),
            (75.1, (True, False, False)),
            (85, (True, False, False)),
            (85.1, (True, True, False)),
            (90, (True, True, False)),
            (90.1, (True, True, True)),
            (86, (True, True, True)),
            (85, (True, False, False)),
            (100, (True, True, True)),
            (0, (False, False, False)),
        ):
            self.fill(percent)
            self.assertEqual(self.state(), expected, percent)

    def test_reason(self) -> None:
        """What a refused sender is reported has the directory and the figures."""
        self.fill(95)
        self.assertEqual(
            self.flags.reasons(DISK_FULL),
            "the disk is full: /log: 95 % of 3.9 MiB are used, 200.0 KiB are free; "
            "the most is 90 %",
        )

    def test_clamps(self) -> None:
        """Levels are kept within RocketMQ's bounds."""
        self.space = self.make(
            0,
            disk_space_warning_level_ratio=100,
            disk_space_clean_forcibly_ratio=100,
            disk_max_used_space_ratio=100,
        )
        self.fill(91)
        self.assertEqual(self.state(), (False, True, True))
        self.space = self.make(
            0,
            disk_space_warning_level_ratio=0,
            disk_space_clean_forcibly_ratio=0,
            disk_max_used_space_ratio=0,
        )
        self.fill(36)
        self.assertEqual(self.state(), (True, True, True))
        self.fill(10)
        self.assertEqual(self.state(), (False, False, False))

    def test_enough(self) -> None:
        """A disk with enough free bytes is not full, whatever its percentage; expired
        files go all the same."""
        segments = 4 * options().mapped_file_size_commit_log // BLOCK
        self.space = self.make(30 * BLOCK)
        self.assertEqual(self.space.enough, segments * BLOCK)
        self.space = self.make((segments + 10) * BLOCK)
        self.disk.capacity = 10 * BLOCKS * BLOCK
        self.ballast.allocate(0, (10 * BLOCKS - segments - 10) * BLOCK)
        self.space.measure()
        self.assertEqual(self.space.log.percent, 100)
        self.assertEqual(self.state(), (True, False, False))
        self.ballast.allocate(0, (10 * BLOCKS - segments - 9) * BLOCK)
        self.space.measure()
        self.assertEqual(self.state(), (True, True, True))

    def test_share(self) -> None:
        """Of brokers that share a disk each counts its own files against its part."""
        self.space = self.make(0, replicas_per_disk_partition=4)
        for percent, expected in (
            (75, (False, False, False)),
            (76, (True, False, False)),
            (80, (True, False, False)),
            (81, (True, True, False)),
        ):
            self.own_bytes = BLOCKS * BLOCK // 4 * percent // 100
            self.fill(80)
            self.assertEqual(self.state(), expected, percent)
        self.fill(95)
        self.assertEqual(self.state(), (True, True, True))
        self.own_bytes = 0
        self.fill(80)
        self.assertEqual(self.state(), (False, False, False))

    def test_unknown(self) -> None:
        """A disk that does not answer is not full, but expired files go."""
        self.fill(95)
        self.disk.fail("usage", errno.EIO, times=2)
        self.space.measure()
        self.assertEqual(self.state(), (True, False, False))
        self.assertEqual((self.space.log.percent, self.space.log.ratio), (-1, -1.0))

    def test_emptiest(self) -> None:
        """Of several directories the emptiest one counts; those above the second level
        get no new segment."""
        space = DiskUsage(
            self.disk,
            options(disk_space_enough_bytes=0),
            ["/log", "/other"],
            "/queues",
            "/index",
            self.flags,
            lambda: self.own_bytes,
        )
        self.ballast.allocate(0, 950 * BLOCK)
        space.measure()
        self.assertEqual(space.full_folders(), frozenset({"/log", "/other"}))
        space.logs[1].usable = 500 * BLOCK
        self.assertEqual(space.log.path, "/other")
        self.assertEqual(space.full_folders(), frozenset({"/log"}))

    def test_oneUnknown(self) -> None:
        """A directory that does not answer is not the emptiest, and gets no segment."""
        folders = ["/log", "/other"]
        space = DiskUsage(
            self.disk,
            options(disk_space_enough_bytes=0),
            folders,
            "/queues",
            "/index",
            self.flags,
            lambda: 0,
        )
        self.ballast.allocate(0, 950 * BLOCK)
        self.disk.fail("usage", errno.EIO)
        space.measure()
        self.assertEqual(space.log.path, "/other")
        self.assertTrue(self.flags.has(DISK_FULL))
        self.assertEqual(space.logs[0].percent, -1)
        self.assertEqual(space.full_folders(), frozenset({"/log", "/other"}))
        space.logs[1].usable = 500 * BLOCK
        self.assertEqual(space.full_folders(), frozenset({"/log"}))


class MessageTests(SynchronousTestCase):
    """How it is reported."""

    def test_inWords(self) -> None:
        """Bytes have a unit that fits."""
        for count, text in (
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1536, "1.5 KiB"),
            (3 << 20, "3.0 MiB"),
            (10 << 30, "10.0 GiB"),
            (5000 << 40, "5000.0 TiB"),
        ):
            self.assertEqual(readable_size(count), text)

    def test_describe_refusal(self) -> None:
        """A refusal names the directory, the reason and the figures, if it can."""
        disk = MemoryDisk(3 * BLOCK)
        error = OSError(errno.ENOSPC, "No space left on device")
        self.assertEqual(
            describe_refusal(disk, "/log", "{} cannot be written", error),
            "/log cannot be written: No space left on device; 12.0 KiB of 12.0 KiB are "
            "free",
        )
        disk.fail("usage", errno.EIO)
        self.assertEqual(
            describe_refusal(disk, "/log", "{} cannot be written", error),
            "/log cannot be written: No space left on device",
        )

    def test_tooManyOpenFilesSayNothingOfDisk(self) -> None:
        """How much of it is free has nothing to do with that."""
        error = OSError(errno.EMFILE, "Too many open files")
        self.assertEqual(
            describe_refusal(MemoryDisk(BLOCK), "/log", "{} cannot be read", error),
            "/log cannot be read: Too many open files",
        )

    def test_never(self) -> None:
        """A disk that was not asked yet is reported as unknown."""
        room = DiskRoom("/log")
        self.assertEqual((room.percent, room.ratio), (-1, -1.0))
