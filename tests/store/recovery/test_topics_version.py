"""The version of the table of topics."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.recovery.clean_shutdown import topics_version
from rocketbroker.testing.files import MemoryDisk

PATH = "/s/config/topics.json"


class TopicsVersionTests(SynchronousTestCase):
    """What is reported of a table."""

    def setUp(self) -> None:
        """A directory for it."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s/config")

    def put(self, content: bytes, path: str = PATH) -> None:
        """Write one."""
        self.disk.open(path, create=True).pwrite(content, 0)

    def test_version(self) -> None:
        """The version is when the table changed, and how often; None where the file is
        missing or makes no sense."""
        self.assertIsNone(topics_version(self.disk, "/s"))
        for content, expected in (
            (b'{"dataVersion": {"timestamp": 7, "counter": 3}}', [7, 3]),
            (b'{"dataVersion": {"timestamp": 7, "counter": {"value": 3}}}', None),
            (b'{"dataVersion": {"timestamp": 7}}', None),
            (b'{"dataVersion": {"timestamp": Infinity, "counter": 3}}', None),
            (b'{"dataVersion": 7}', None),
            (b"{}", None),
            (b"[]", None),
            (b"[" * 9999, None),
            (b"", None),
        ):
            self.disk.open(PATH, create=True).truncate(0)
            self.put(content)
            self.assertEqual(topics_version(self.disk, "/s"), expected)

    def test_copy(self) -> None:
        """The version before counts where the file makes no sense, and nothing where
        the disk refuses."""
        self.put(b"{")
        version = b'{"dataVersion": {"timestamp": 7, "counter": 3}}'
        self.put(version, PATH + ".bak")
        self.assertEqual(topics_version(self.disk, "/s"), [7, 3])
        self.disk.fail("read", errno.EIO, times=2)
        self.assertIsNone(topics_version(self.disk, "/s"))
