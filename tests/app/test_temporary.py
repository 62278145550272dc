"""The directory of a store that is thrown away."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.logger import Logger, capturedLogs, formatEvent
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.temporary import (
    MARK,
    SEGMENT,
    TemporaryDirectory,
    remove_left,
    small_sizes,
)
from rocketbroker.files.disk import Disk
from rocketbroker.store.commitlog.writer import BESIDE_BODY
from rocketbroker.store.store_lock import LOCK


class TemporaryTests(SynchronousTestCase):
    """What stays of killed processes, and what goes."""

    def setUp(self) -> None:
        """A directory for temporary ones."""
        self.parent = Path(self.mktemp())
        self.parent.mkdir()

    def left(self, name: str, *files: str) -> Path:
        """A directory with empty files."""
        path = self.parent / name
        for file in files:
            (path / file).parent.mkdir(parents=True, exist_ok=True)
            (path / file).touch()
        if MARK in files:
            (path / MARK).write_text(f"{path.stat().st_ino}\n")
        return path

    def removed(self) -> list[str]:
        """The log of a removal."""
        with capturedLogs() as events:
            remove_left(str(self.parent), Logger())
        return [formatEvent(event) for event in events]

    def test_leftDirectoryGoesWhoeverLooks(self) -> None:
        """One that nobody has locked is removed, with a line in the log."""
        path = self.left("rocketbroker-a", MARK, LOCK, "commitlog/0", "replica-1/lock")
        self.assertEqual(
            self.removed(),
            [f"Removed {path}, which a standalone --temporary left that was killed."],
        )
        self.assertFalse(path.exists())
        self.assertEqual(self.removed(), [])

    def test_directoryInUseStays(self) -> None:
        """From its first moment on, and until its owner is gone."""
        own = TemporaryDirectory(str(self.parent))
        self.assertEqual(self.removed(), [])
        self.assertTrue(os.path.isdir(own.path))
        mark = Path(own.path, MARK).read_text()
        self.assertEqual(mark, f"{os.stat(own.path).st_ino}\n")
        own.remove()
        self.assertEqual(list(self.parent.iterdir()), [])

    def test_storeInUseStays(self) -> None:
        """A slave outlives a killed parent for a moment: its store's lock counts."""
        for held in (LOCK, f"replica-2/{LOCK}"):
            path = self.left("rocketbroker-a", MARK, LOCK, f"replica-2/{LOCK}")
            lock = Disk().open(str(path / held))
            self.assertTrue(lock.lock())
            self.assertEqual(self.removed(), [])
            self.assertTrue(path.exists())
            lock.close()
            self.assertEqual(len(self.removed()), 1)

    def test_whatIsNotOursStays(self) -> None:
        """A directory without the mark, one of another name, a copy, a file, a link."""
        copy = self.left("rocketbroker-copy", LOCK)
        (copy / MARK).write_text("1\n")
        kept = [
            copy,
            self.left("rocketbroker-a", LOCK, "commitlog/0"),
            self.left("other", MARK),
        ]
        (self.parent / "rocketbroker-file").touch()
        (self.parent / "rocketbroker-link").symlink_to("other")
        self.assertEqual(self.removed(), [])
        self.assertTrue(all(path.exists() for path in kept))
        remove_left(str(self.parent / "nowhere"), Logger())

    def test_largestMessageFits(self) -> None:
        """Segments are small, unless larger messages are wanted."""
        key = "mappedFileSizeCommitLog"
        self.assertEqual(small_sizes({})[key], str(SEGMENT))
        for most in (4 << 20, 64 << 20):
            size = int(small_sizes({"maxMessageSize": str(most)})[key])
            self.assertGreater(size, most + BESIDE_BODY)
            self.assertLess(size, max(most + (2 << 20), SEGMENT + 1))
        self.assertEqual(small_sizes({"maxMessageSize": "x"})[key], str(SEGMENT))
