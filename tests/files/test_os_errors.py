"""What a system refused, and where."""

from __future__ import annotations

import errno
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.files.os_errors import ReadError, located, reason


class ReasonTests(SynchronousTestCase):
    """Words for errors."""

    def test_words(self) -> None:
        """They name file and position where these are known."""
        error = OSError(errno.EIO, os.strerror(errno.EIO))
        self.assertEqual(reason(error), "Input/output error")
        self.assertEqual(
            reason(located(error, "/s/a", 4096)),
            "Input/output error (/s/a, position 4096)",
        )
        error.filename = "/s/b"
        self.assertEqual(reason(error), "Input/output error (/s/b)")
        self.assertEqual(reason(OSError("odd")), "odd")

    def test_unread(self) -> None:
        """A read that the disk refuses says of which file, and from where on."""
        path = os.path.abspath(self.mktemp())
        os.makedirs(path)
        # A directory can be opened, but not be read.
        file = Disk().open_readonly(path)
        error = self.assertRaises(ReadError, file.pread, 10, 77)
        self.assertEqual((error.filename, error.position), (path, 77))
        self.assertEqual(error.errno, errno.EISDIR)
        file.close()
