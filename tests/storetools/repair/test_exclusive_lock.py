"""The locks that a repair takes."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import StoreError
from rocketbroker.store.file_names import segment_name
from rocketbroker.storetools.repair.exclusive_lock import ExclusiveLock
from rocketbroker.testing.files import MemoryDisk
from rocketbroker.testing.users import GivenUsers
from tests.store.stores import ROOT, opened

ELSEWHERE = "/elsewhere/commitlog"


class ExclusiveLockTests(SynchronousTestCase):
    """A store in the root, and a log elsewhere."""

    def setUp(self) -> None:
        """Make both."""
        self.disk = MemoryDisk()
        self.users = GivenUsers()
        opened(self.disk).close()
        self.disk.make_dirs(ELSEWHERE)
        self.make(os.path.join(ELSEWHERE, segment_name(0)))

    def make(self, path: str) -> None:
        """An empty file."""
        self.disk.open(path, create=True).close()

    def is_free(self, folder: str) -> bool:
        """Whether a lock can be had."""
        file = self.disk.open(os.path.join(folder, "lock"))
        try:
            return file.lock()
        finally:
            file.close()

    def test_root(self) -> None:
        """The root's is taken, and released for who opens the store."""
        claim = ExclusiveLock(self.disk, self.users, ROOT, None)
        claim.take(False)
        self.assertFalse(self.is_free(ROOT))
        claim.release_root()
        self.assertTrue(self.is_free(ROOT))
        claim.release()

    def test_log(self) -> None:
        """The one beside a log elsewhere is taken as well, until the end."""
        self.make("/elsewhere/lock")
        claim = ExclusiveLock(self.disk, self.users, ROOT, ELSEWHERE)
        claim.take(False)
        claim.release_root()
        self.assertFalse(self.is_free("/elsewhere"))
        claim.release()
        self.assertTrue(self.is_free("/elsewhere"))

    def test_logInUse(self) -> None:
        """If a broker has that one, the root's is released."""
        self.make("/elsewhere/lock")
        file = self.disk.open("/elsewhere/lock")
        file.lock()
        for dry in (False, True):
            claim = ExclusiveLock(
                self.disk, self.users, ROOT, f"{ROOT}/commitlog/,{ELSEWHERE}/"
            )
            error = self.assertRaises(StoreError, claim.take, dry)
            self.assertIn("/elsewhere is used by a broker", str(error))
            self.assertTrue(self.is_free(ROOT))

    def test_made(self) -> None:
        """A lock is made in the root of a store only, and never by a dry run."""
        lock = os.path.join(ROOT, "lock")
        self.disk.remove(lock)
        claim = ExclusiveLock(self.disk, self.users, ROOT, ELSEWHERE)
        claim.take(True)
        claim.release()
        self.assertFalse(self.disk.exists(lock))
        claim.take(False)
        claim.release()
        self.assertTrue(self.disk.exists(lock))
        self.assertFalse(self.disk.exists("/elsewhere/lock"))
        self.disk.make_dirs("/none/config")
        error = self.assertRaises(
            StoreError, ExclusiveLock(self.disk, self.users, "/none", None).take, False
        )
        self.assertIn("There is no store in /none", str(error))
        self.assertEqual(self.disk.list("/none"), ["config"])

    def test_filesInUse(self) -> None:
        """Nothing is taken while a process uses a file of log, queues or index, though
        it has no lock; what it uses elsewhere does not count."""
        self.users.uses = [(6, f"{ROOT}/notes"), (6, "/elsewhere/commitlog2/a")]
        claim = ExclusiveLock(self.disk, self.users, ROOT, ELSEWHERE)
        claim.take(False)
        for path in (
            os.path.join(ELSEWHERE, segment_name(0)),
            f"{ROOT}/consumequeue/T/0/0",
            f"{ROOT}/index/1",
        ):
            self.users.uses = [(7, path)]
            error = self.assertRaises(StoreError, claim.look)
            self.assertIn(f"Process 7 uses {path}", str(error))
        claim.release()
        for dry in (False, True):
            self.assertRaises(StoreError, claim.take, dry)
            self.assertTrue(self.is_free(ROOT))
