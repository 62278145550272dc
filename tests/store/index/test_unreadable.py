"""An index of which the disk cannot read some blocks."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.blocks import BLOCK
from rocketbroker.files.os_errors import ReadError
from rocketbroker.store.file_names import segment_name
from rocketbroker.store.message_store import Store
from rocketbroker.testing.files import MemoryDisk
from tests.store.stores import (
    ROOT,
    Wall,
    draft,
    opened,
    put,
)


class UnreadableIndexTests(SynchronousTestCase):
    """Messages with keys."""

    def setUp(self) -> None:
        """Fill it, and stop it."""
        self.disk = MemoryDisk()
        self.wall = Wall()
        store = opened(self.disk, self.wall)
        for number in range(400):
            keys = b"KEYS\x01k%d\x02" % number
            store.append([draft(store.queue("T", 0), b"%d" % number, properties=keys)])
        while store.dispatch(1000):
            pass
        self.build(store)
        store.close()
        (name,) = self.disk.list(f"{ROOT}/index")
        self.path = f"{ROOT}/index/{name}"

    def build(self, store: Store) -> None:
        """Build the index."""
        while store.build_index(1000):
            pass

    def find(self, store: Store, number: int) -> int:
        """How many messages a key leads to."""
        key = f"k{number}"
        return len(store.find_by_key("T", key, 9, 0, 1 << 62).records)

    def test_header(self) -> None:
        """A file whose header cannot be read is reported, and built again."""
        self.disk.spoil(self.path, 0, 1)
        store = opened(self.disk, self.wall)
        (message,) = store.report
        self.assertIn(f"cannot be read: Input/output error ({self.path}, pos", message)
        self.build(store)
        self.assertEqual([self.find(store, n) for n in (0, 399)], [1, 1])
        store.close()

    def test_query(self) -> None:
        """Who comes upon another block is refused, once: then the file is built
        again."""
        store = opened(self.disk, self.wall)
        self.disk.spoil(self.path, BLOCK, 3 * BLOCK)
        error = self.assertRaises(ReadError, self.find, store, 300)
        self.assertEqual(error.filename, self.path)
        self.assertEqual(store.corrupt_records, 1)
        self.assertIn(self.path, store.findings()[0])
        self.build(store)
        self.assertEqual([self.find(store, n) for n in range(400)], [1] * 400)
        store.close()

    def test_slots(self) -> None:
        """So it is where a key is to be entered into slots that cannot be read."""
        store = opened(self.disk, self.wall)
        self.disk.spoil(self.path, 100, 101)
        put(store, store.queue("T", 0), b"more")
        self.build(store)
        self.assertEqual(store.index_failures, 0)
        self.assertEqual([self.find(store, n) for n in range(400)], [1] * 400)
        store.close()

    def test_record(self) -> None:
        """A message that cannot be read hides no other with its key."""
        store = opened(self.disk, self.wall)
        queue = store.queue("T", 0)
        for body in (b"1" * 5000, b"2" * 5000):
            store.append([draft(queue, body, properties=b"KEYS\x01k7\x02")])
        while store.dispatch(1000):
            pass
        self.build(store)
        self.assertEqual(self.find(store, 7), 3)
        log = f"{ROOT}/commitlog/{segment_name(0)}"
        end = store.published_position // BLOCK * BLOCK
        self.disk.spoil(log, end, end + 1)
        self.assertEqual(self.find(store, 7), 2)
        self.disk.spoil(log, 0, end)
        self.assertRaises(OSError, self.find, store, 7)
        store.close()
