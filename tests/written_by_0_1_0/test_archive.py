"""What holds for all files of the archive."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.written_by_0_1_0.archive import unpack


class ArchiveTests(SynchronousTestCase):
    """Its files, as they are on the disk."""

    def test_noFileNamesOneOfOurModules(self) -> None:
        """Modules have moved since, and may move again."""
        folder = unpack(self.mktemp())
        files = [path for path in folder.rglob("*") if path.is_file()]
        self.assertGreater(len(files), 30)
        for path in files:
            self.assertNotIn(b"rocketbroker.", path.read_bytes(), path)
