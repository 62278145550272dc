"""Exports in stores that pyarrow knows; here the one that is a directory."""

from __future__ import annotations

import os

from pyarrow import fs
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError, StoreError
from rocketbroker.export.arrow_storage import ArrowLease, ArrowStorage, one_line
from rocketbroker.export.open_storage import open_storage
from rocketbroker.export.storage import DirectoryStorage, Storage
from rocketbroker.testing.contracts.storage import LEASE, PATH, StorageContract


class ArrowStorageTests(StorageContract, SynchronousTestCase):
    """L{ArrowStorage} over a file system that renames."""

    storage: Storage

    def setUp(self) -> None:
        """A directory that is not there yet."""
        self.root = os.path.abspath(self.mktemp())
        self.storage = ArrowStorage(f"file://{self.root}")

    def test_drafts(self) -> None:
        """What died attempts left is removed, and nothing else."""
        self.storage.put(PATH, b"x")
        folder = os.path.join(self.root, "T", "dt=1")
        for name in (".x.parquet.1.tmp", ".x.parquet.2.tmp", ".y.parquet.3.tmp"):
            with open(os.path.join(folder, name), "w"):
                pass
        self.assertEqual(self.storage.list("T/dt=1"), ["x.parquet"])
        self.assertEqual(self.storage.remove_drafts(PATH), 2)
        self.assertEqual(sorted(os.listdir(folder)), [".y.parquet.3.tmp", "x.parquet"])


class LeaseTests(SynchronousTestCase):
    """L{ArrowLease}: the time of this process is the test's."""

    def setUp(self) -> None:
        """A place, and a run that writes there."""
        self.root = os.path.abspath(self.mktemp())
        self.storage = ArrowStorage(f"file://{self.root}")
        self.now = 100.0
        self.lease = self.made()
        self.assertEqual(self.lease.take(), "")

    def made(self, seconds: float = 60.0) -> ArrowLease:
        """A lease that is not taken yet."""
        return ArrowLease(self.storage, LEASE, {"pid": 7}, seconds, lambda: self.now)

    def test_seen(self) -> None:
        """A run sees the other one, and who it is."""
        self.assertEqual(self.made().take(), '{"pid": 7}')

    def test_held(self) -> None:
        """A lease that is renewed is held."""
        for _ in range(3):
            self.now += 40
            self.lease.check()
            self.lease.renew()
        self.lease.check()

    def test_lapsed(self) -> None:
        """A run that died hinders no other; if it lives after all, it is told."""
        successor = self.made(seconds=0)
        self.assertEqual(successor.take(), "")
        self.lease.renew()
        error = self.assertRaises(StoreError, self.lease.check)
        self.assertEqual(
            str(error),
            f"the lease file://{self.root}/{LEASE} was lost: this run stood still for "
            "too long, and another may be writing",
        )

    def test_stoodStill(self) -> None:
        """A run that stood still for too long does not go on by itself."""
        self.now += 60
        self.assertRaises(StoreError, self.lease.check)
        self.lease.renew()
        self.assertRaises(StoreError, self.lease.check)

    def test_released(self) -> None:
        """Of a lease that was given back nothing is left; other files do not count."""
        self.storage.put("_rocketbroker/job.json", b"{}")
        self.lease.release()
        self.assertEqual(self.storage.list("_rocketbroker"), ["job.json"])
        self.assertEqual(self.made().take(), "")

    def test_unwritable(self) -> None:
        """Where nothing can be written, one sentence says so."""
        with open(self.root + "x", "w"):
            pass
        storage = ArrowStorage(f"file://{self.root}x/y")
        error = self.assertRaises(ConfigurationError, storage.take_lease, LEASE, {})
        self.assertIn(f"cannot write file://{self.root}x/y/{LEASE}: ", str(error))


class OpenTests(SynchronousTestCase):
    """L{open_storage}."""

    def test_directories(self) -> None:
        """A path is a directory of this machine, so is an address of a file."""
        for address in ("x/../y", "file://" + os.path.abspath("y")):
            storage = open_storage(address)
            self.assertIsInstance(storage, DirectoryStorage)
            self.assertEqual(storage.address, os.path.abspath("y"))

    def test_file(self) -> None:
        """A file is no place for an export."""
        path = os.path.abspath(self.mktemp())
        with open(path, "w"):
            pass
        error = self.assertRaises(ConfigurationError, open_storage, path)
        self.assertEqual(str(error), f"{path} is not a directory")

    def test_store(self) -> None:
        """What C{pyarrow.fs} knows is a store; passwords and options stay hidden."""
        storage = open_storage(
            "s3://key:secret@lake/a/?region=us-east-1&endpoint_override=h:1"
        )
        self.assertIsInstance(storage, ArrowStorage)
        self.assertEqual(storage.address, "s3://lake/a")
        self.assertEqual(storage.where("x"), "s3://lake/a/x")

    def test_unknown(self) -> None:
        """What it does not know is refused in one sentence."""
        for address, sentence in (
            ("ftp://h/x", "Unrecognized filesystem type in URI: ftp://h/x"),
            ("s3://lake/x?foo=1", "Unexpected query parameter in S3 URI: 'foo'"),
        ):
            error = self.assertRaises(ConfigurationError, open_storage, address)
            self.assertEqual(
                str(error),
                f"{address.partition('?')[0]} is no place for an export: {sentence}",
            )

    def test_empty(self) -> None:
        """A store without a name is no place either."""
        error = self.assertRaises(ConfigurationError, open_storage, "s3://")
        self.assertEqual(str(error), "s3: names no place for an export")

    def test_oneLine(self) -> None:
        """Errors without words have a name at least."""
        self.assertEqual(one_line(OSError("a\nb")), "a")
        self.assertEqual(one_line(OSError()), "OSError")

    def test_renaming(self) -> None:
        """File systems that rename are known by their types."""
        self.assertEqual(fs.LocalFileSystem().type_name, "local")
