"""Which topics the broker of a store knows."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records.names import HALF_TOPIC, OP_HALF_TOPIC
from rocketbroker.store.recovery.known_topics import KEPT, listed_topics, topics_version
from rocketbroker.testing.files import MemoryDisk

PATH = "/s/config/topics.json"


class ListedTopicsTests(SynchronousTestCase):
    """What is told of a table."""

    def setUp(self) -> None:
        """A directory for it."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s/config")

    def put(self, content: bytes, path: str = PATH) -> None:
        """Write one."""
        self.disk.open(path, create=True).pwrite(content, 0)

    def test_names(self) -> None:
        """The topics are the keys of the table, and those that are never removed: 4.9
        does not write all of them down. That of half messages it removes."""
        self.put(b'{"dataVersion": {}, "topicConfigTable": {"T": {}, "\xc3\xa4": {}}}')
        listed = listed_topics(self.disk, "/s")
        self.assertEqual(listed, KEPT | {"T", "\xe4"})
        self.assertIn(OP_HALF_TOPIC, KEPT)
        self.assertNotIn(HALF_TOPIC, KEPT)

    def test_unknown(self) -> None:
        """Nothing is known without the file, of one that makes no sense, and where the
        disk refuses."""
        self.assertIsNone(listed_topics(self.disk, "/s"))
        for content in (
            b"",
            b"{",
            b"[]",
            b"{}",
            b'{"topicConfigTable": 7}',
            b"[" * 9999,
        ):
            self.setUp()
            self.put(content)
            self.assertIsNone(listed_topics(self.disk, "/s"))
        self.disk.fail("read", errno.EIO, times=2)
        self.assertIsNone(listed_topics(self.disk, "/s"))

    def test_copy(self) -> None:
        """The version before counts where the file makes no sense."""
        self.put(b"{")
        self.put(b'{"topicConfigTable": {"T": {}}}', PATH + ".bak")
        self.assertEqual(listed_topics(self.disk, "/s"), KEPT | {"T"})

    def test_version(self) -> None:
        """The version is when the table changed, and how often."""
        self.assertIsNone(topics_version(self.disk, "/s"))
        for version, expected in (
            (b'{"timestamp": 7, "counter": 3, "stateVersion": 0}', [7, 3]),
            (b'{"timestamp": 7, "counter": {"value": 3}}', None),
            (b'{"timestamp": 7}', None),
            (b'{"timestamp": Infinity, "counter": 3}', None),
            (b"7", None),
            (b'"x"', None),
        ):
            self.setUp()
            self.put(b'{"dataVersion": ' + version + b', "topicConfigTable": {}}')
            self.assertEqual(topics_version(self.disk, "/s"), expected)
        self.setUp()
        self.put(b'{"topicConfigTable": {}}')
        self.assertIsNone(topics_version(self.disk, "/s"))
