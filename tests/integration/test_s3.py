"""An export in an object store."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.export.arrow_storage import ArrowStorage
from rocketbroker.testing.contracts.storage import LEASE, PATH, StorageContract
from tests.integration.s3server import running_s3


class S3Tests(StorageContract, SynchronousTestCase):
    """L{ArrowStorage} over S3."""

    def setUp(self) -> None:
        """A server, and a path in its bucket."""
        running = running_s3()
        self.server = running.__enter__()
        self.addCleanup(running.__exit__, None, None, None)
        # All servers of a process have the same content.
        self.path = self.id().rpartition(".")[2]
        self.storage = ArrowStorage(self.server.uri(self.path))

    def test_refused(self) -> None:
        """An upload that is refused at any of its steps leaves what was there."""
        large = bytes(30_000_000)
        for step, content in (
            ("POST uploads", b"new"),
            ("PUT partNumber=1&", b"new"),
            ("PUT partNumber=1&", large),
            ("POST uploadId=", b"new"),
        ):
            self.storage.put(PATH, b"old")
            self.server.refused_step = step
            error = self.assertRaises(OSError, self.storage.put, PATH, content)
            self.server.refused_step = None
            self.assertIn("AWS Error ACCESS_DENIED", str(error))
            self.assertNotIn("\n", str(error))
            self.assertEqual(self.storage.read(PATH), b"old", step)

    def test_denied(self) -> None:
        """Where nothing may be written no lease is taken, and one sentence says why."""
        self.server.refused_step = "P"
        error = self.assertRaises(
            ConfigurationError, self.storage.take_lease, LEASE, {}
        )
        self.assertIn(f"cannot write s3://lake/{self.path}/{LEASE}: ", str(error))
        self.assertIn("ACCESS_DENIED", str(error))
