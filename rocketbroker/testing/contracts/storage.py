# -*- test-case-name: tests.export.test_storage -*-
"""The contract of storages: what every place for the files of an export promises."""

from __future__ import annotations

import pickle

from rocketbroker.errors import ConfigurationError
from rocketbroker.export.storage import Storage
from rocketbroker.testing.contracts.case import Contract

PATH = "T/dt=1/x.parquet"
LEASE = "_rocketbroker/lease.json"


class StorageContract(Contract):
    """The suite of L{Storage}.

    @ivar storage: an empty one, which C{setUp} of the test class makes.
    """

    storage: Storage

    def test_nothing(self) -> None:
        """In a place where nothing is, nothing is found."""
        self.assertFalse(self.storage.exists(PATH))
        self.assertEqual(self.storage.list("T/dt=1"), [])
        self.assertEqual(self.storage.remove_drafts(PATH), 0)
        for ask in (self.storage.read, self.storage.open, self.storage.size):
            self.assertRaises(FileNotFoundError, ask, PATH)

    def test_put(self) -> None:
        """Small files are there at once, and replaced whole."""
        for content in (b"first", b"2", b""):
            self.storage.put(PATH, content)
            self.assertEqual(self.storage.read(PATH), content)
            self.assertEqual(self.storage.size(PATH), len(content))
        self.assertTrue(self.storage.exists(PATH))
        self.assertEqual(self.storage.list("T/dt=1"), ["x.parquet"])

    def test_putNew(self) -> None:
        """What must be new replaces nothing."""
        self.storage.put_new(PATH, b"first")
        error = self.assertRaises(
            FileExistsError, self.storage.put_new, PATH, b"second"
        )
        self.assertEqual(str(error), f"{self.storage.where(PATH)} exists already")
        self.assertEqual(self.storage.read(PATH), b"first")

    def test_list(self) -> None:
        """Names in a folder, sorted, without those of folders in it."""
        for name in ("b", "a", "c/d"):
            self.storage.put(f"T/{name}", b"x")
        self.assertEqual(self.storage.list("T"), ["a", "b"])

    def test_output(self) -> None:
        """A file is seen once it is finished, and counts its bytes."""
        output = self.storage.create(PATH)
        output.write(b"abc")
        output.write(memoryview(b"de"))
        self.assertEqual(output.size, 5)
        self.assertEqual(self.storage.list("T/dt=1"), [])
        self.assertFalse(self.storage.exists(PATH))
        output.finish()
        output.abandon()
        self.assertEqual(self.storage.list("T/dt=1"), ["x.parquet"])
        self.assertEqual(self.storage.read(PATH), b"abcde")

    def test_replaced(self) -> None:
        """The file that was there stays until the other one is finished."""
        self.storage.put(PATH, b"old")
        output = self.storage.create(PATH)
        output.write(b"new one")
        self.assertEqual(self.storage.read(PATH), b"old")
        output.finish()
        self.assertEqual(self.storage.read(PATH), b"new one")

    def test_abandoned(self) -> None:
        """Of a file that is given up nothing is left, and what was there stays."""
        self.storage.put(PATH, b"old")
        for path in (PATH, PATH + "2"):
            output = self.storage.create(path)
            output.write(b"abc")
            output.abandon()
            output.abandon()
        self.assertEqual(self.storage.list("T/dt=1"), ["x.parquet"])
        self.assertEqual(self.storage.read(PATH), b"old")
        self.assertEqual(self.storage.remove_drafts(PATH), 0)

    def test_open(self) -> None:
        """Files can be read from anywhere."""
        self.storage.put(PATH, bytes(range(100)))
        with self.storage.open(PATH) as file:
            self.assertEqual(file.seek(-10, 2), 90)
            self.assertEqual(file.read(4), bytes(range(90, 94)))
            self.assertEqual(file.tell(), 94)
            file.seek(5)
            self.assertEqual(file.read(3), b"\5\6\7")
            file.seek(90)
            self.assertEqual(file.read(), bytes(range(90, 100)))
            self.assertEqual(file.read(1), b"")

    def test_lease(self) -> None:
        """There is one writer; another one follows it."""
        self.assertEqual(self.storage.lease_holder(LEASE), "")
        first = self.storage.take_lease(LEASE, {"pid": 1})
        self.addCleanup(first.release)
        self.assertEqual(self.storage.lease_holder(LEASE), '{"pid": 1}')
        error = self.assertRaises(
            ConfigurationError, self.storage.take_lease, LEASE, {"pid": 2}
        )
        self.assertIn("another export is writing here: ", str(error))
        self.assertIn(self.storage.where(LEASE), str(error))
        first.release()
        first.release()
        self.assertEqual(self.storage.lease_holder(LEASE), "")
        self.storage.take_lease(LEASE, {"pid": 3}).release()

    def test_pickled(self) -> None:
        """A storage goes to the tasks and is the same place there."""
        self.storage.put(PATH, b"x")
        there: Storage = pickle.loads(pickle.dumps(self.storage))
        self.assertEqual(there.address, self.storage.address)
        self.assertEqual(there.read(PATH), b"x")
