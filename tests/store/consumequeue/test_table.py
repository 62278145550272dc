"""All queues of a store."""

from __future__ import annotations

import errno

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.store import StoreOptions
from rocketbroker.files.open_files import OpenFiles
from rocketbroker.records.entries import ENTRY
from rocketbroker.store.consumequeue.table import QueueTable
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.shared_positions import SharedPositions
from rocketbroker.testing.files import MemoryDisk

FOLDER = "/s/consumequeue"


class QueueTableTests(SynchronousTestCase):
    """Handles and directories."""

    def setUp(self) -> None:
        """A table over an empty directory."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/s")
        self.table = self.make(2000)

    def make(self, size: int) -> QueueTable:
        """A table over what is on the disk."""
        positions = SharedPositions(self.disk, "/s")
        options = StoreOptions(
            store_path_root_dir="/s",
            mapped_file_size_consume_queue=size,
            mapper_file_size_batch_consume_queue=460,
            mapped_file_size_consume_queue_ext=200,
            max_lmq_consume_queue_num=3,
        )
        return QueueTable(OpenFiles(self.disk), options, positions, False)

    def test_size(self) -> None:
        """The size of files is rounded up to whole entries."""
        self.assertEqual(self.make(1981).get("T", 0).files.size, 2000)
        self.assertEqual(self.make(2000).get("T", 0).files.size, 2000)

    def test_byBytes(self) -> None:
        """A record's topic finds the same handle; what is no topic finds none."""
        self.assertIs(self.table.get_by_bytes("é".encode(), 2), self.table.get("é", 2))
        for topic in (b"\xff", b"", b"a/b", b"..", b"a\nb", b"x" * 256):
            self.assertIsNone(self.table.get_by_bytes(topic, 0))
        self.assertIsNone(self.table.get_by_bytes(b"T", -1))
        self.assertEqual(len(self.table.all()), 1)

    def test_flush(self) -> None:
        """Where many queues wait for a flush, the file system is flushed as a whole
        before each of them, with the names of their files; where the system cannot do
        that, or does not, each is flushed all the same."""
        self.disk.make_dirs(FOLDER)
        for can in (True, False):
            self.disk.syncs = can
            table = self.make(2000)
            for number in range(3):
                table.get(f"T{number}{can}", 0).files.write(0, ENTRY.pack(5, 100, 0))
            self.disk.calls.clear()
            table.flush(many=4)
            self.assertNotIn("sync", self.disk.calls)
            # For each file its directory and two above it.
            self.assertEqual(self.disk.calls["sync_dir"], 9)
            for queue in table.all():
                queue.files.write(2000, ENTRY.pack(6, 100, 0))
            table.flush(least_pages=1, many=3)
            self.assertNotIn("sync", self.disk.calls)
            if can:
                self.disk.fail("sync", errno.EIO)
                self.assertRaises(OSError, table.flush, many=3)
                self.disk.heal()
            table.flush(many=3)
            self.assertEqual(self.disk.calls["sync"], 2 if can else 1)
            self.assertEqual(self.disk.calls["datasync"], 6)
            self.assertEqual(self.disk.calls["sync_dir"], 9 if can else 18)
            path = f"{FOLDER}/T2{can}/0/{segment_name(2000)}"
            found = self.disk.image().read(path)
            self.assertEqual(found[: ENTRY.size], ENTRY.pack(6, 100, 0))

    def test_unusable(self) -> None:
        """The handle of a topic that cannot be stored leads nowhere outside."""
        queue = self.table.get("../../etc", 0)
        self.assertFalse(queue.usable)
        self.assertNotIn("..", queue.files.folder)

    def test_load(self) -> None:
        """Queues are found by their directories; what is none is reported."""
        for path in ("T/0", "T/12", "T/01", "T/x", "T/99999999999", "T/-1"):
            self.disk.make_dirs(f"{FOLDER}/{path}")
        self.disk.open(f"{FOLDER}/stray", create=True)
        file = self.disk.open(f"{FOLDER}/T/12/{segment_name(0)}", create=True)
        file.truncate(2000)
        file.pwrite(ENTRY.pack(5, 100, 0), 0)
        messages = self.table.load(True, self.fail, lambda queue: None)
        self.assertEqual(
            sorted(queue.queue_id for queue in self.table.of_topic("T")), [0, 12]
        )
        self.assertEqual(self.table.get("T", 12).read(0, 1), ENTRY.pack(5, 100, 0))
        self.assertEqual(len(messages), 5)
        self.assertIn(
            f"'{FOLDER}/T/x' is not a queue's directory; it is ignored.", messages
        )
        self.table.close()

    def test_discard(self) -> None:
        """The files of a topic's queues are moved away and then removed; what else is
        there is kept."""
        self.disk.make_dirs(f"{FOLDER}/T/0")
        self.disk.make_dirs(f"{FOLDER}/T/1")
        self.disk.open(f"{FOLDER}/T/0/{segment_name(0)}", create=True)
        self.disk.open(f"{FOLDER}/T/1/notes", create=True)
        self.table.discard("T")
        self.assertEqual(self.disk.list(FOLDER), [])
        self.disk.make_dirs(f"{FOLDER}/T/0")
        self.table.discard("T")
        self.table.remove_discarded()
        self.assertEqual(self.disk.list(f"{FOLDER}.deleted"), ["0"])
        self.assertEqual(self.disk.list(f"{FOLDER}.deleted/0"), ["1"])
        self.assertEqual(self.disk.list(f"{FOLDER}.deleted/0/1"), ["notes"])
