"""A whole store checked."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.store.index.file import HEADER, SLOT
from rocketbroker.store.reader.directory import StoreReader
from rocketbroker.storetools.verify.check import Check
from rocketbroker.storetools.verify.report import Fault
from rocketbroker.testing.files import MemoryDisk
from tests.store.index.keyed import message
from tests.store.stores import ROOT, Wall, make

SIZES = 50, 30


class CheckTests(SynchronousTestCase):
    """A store with an index of two files."""

    def setUp(self) -> None:
        """Forty messages with a key each."""
        self.disk = MemoryDisk()
        sizes = {"max_hash_slot_num": SIZES[0], "max_index_num": SIZES[1]}
        store = make(self.disk, Wall(), **sizes)
        store.open()
        store.append([message(store, f"key{number}") for number in range(40)])
        while store.dispatch(100):
            pass
        while store.build_index(100):
            pass
        self.end = store.published_position
        store.close()
        self.faults: list[Fault] = []
        self.progress: list[int] = []

    def check(self) -> Check:
        """Check it."""
        reader = StoreReader(self.disk, ROOT)
        check = Check(reader, SIZES, self.faults.append, self.progress.append)
        self.expected = check.expected_bytes()
        check.run()
        reader.close()
        return check

    def test_good(self) -> None:
        """All is read, and reported on the way: the log first, then the index."""
        check = self.check()
        self.assertEqual(check.faults, 0)
        self.assertEqual((check.log.records, check.index.entries), (40, 40))
        self.assertEqual(self.progress, sorted(self.progress))
        self.assertIn(self.end, self.progress)
        slots = 2 * (HEADER.size + SIZES[0] * SLOT.size)
        self.assertEqual(self.progress[-1], self.end + slots + 40 * 20)
        self.assertEqual(self.expected, self.progress[-1])

    def test_unreadable(self) -> None:
        """Each file that cannot be read is one fault, and the check goes on."""
        folder = os.path.join(ROOT, "index")
        bad = {
            os.path.join(folder, sorted(self.disk.list(folder))[0]),
            os.path.join(ROOT, "consumequeue", "T", "0", "0" * 20),
            os.path.join(ROOT, "checkpoint"),
            os.path.join(ROOT, "rocketbroker.ends"),
        }
        for path in bad:
            self.disk.spoil(path, 0, 1)
        check = self.check()
        self.assertEqual({fault.kind for fault in self.faults}, {"unreadable"})
        self.assertEqual({fault.where for fault in self.faults}, bad)
        text = "it cannot be read: Input/output error"
        self.assertEqual({fault.text for fault in self.faults}, {text})
        self.assertEqual((check.faults, len(self.faults)), (4, 4))
        self.assertEqual(check.log.records, 40)
        self.assertEqual(check.index.entries, 11)

    def test_faults(self) -> None:
        """Those of log and index are counted together."""
        folder = os.path.join(ROOT, "index")
        index = os.path.join(folder, sorted(self.disk.list(folder))[0])
        for path, at in (
            (os.path.join(ROOT, "commitlog", "0" * 20), 88),
            (index, HEADER.size),
        ):
            file = self.disk.open(path)
            file.pwrite(b"\x01", at)
            file.close()
        check = self.check()
        self.assertEqual({fault.kind for fault in self.faults}, {"body", "index"})
        self.assertEqual(check.faults, len(self.faults))
