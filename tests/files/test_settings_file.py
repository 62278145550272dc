"""The file of settings that is changed in its place."""

from __future__ import annotations

import contextlib
import errno
import os
import random
import stat
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.files.settings_file import SettingsFile
from rocketbroker.testing.files import MemoryDisk

PATH = "/etc/broker.properties"


class SettingsFileTests(SynchronousTestCase):
    """Changes, what a crash leaves, and permissions."""

    def setUp(self) -> None:
        """A disk with a file that a person wrote."""
        self.new_disk()

    def new_disk(self) -> None:
        """Another such disk."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/etc")
        self.disk.sync_dir("/")
        self.write(b"a=1\n")

    def write(self, content: bytes) -> None:
        """Write the file as an editor does."""
        file = self.disk.open(PATH, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.datasync()
        file.close()
        self.disk.sync_dir("/etc")

    def test_edit(self) -> None:
        """The content becomes what is made of it; the one before stands in .bak."""
        file = SettingsFile(self.disk, PATH)
        file.edit(lambda old: old + b"b=2\n")
        self.write(b"c=3\n")
        file.edit(lambda old: old + b"d=4\n")
        self.assertEqual(self.disk.read(PATH), b"c=3\nd=4\n")
        self.assertEqual(self.disk.read(PATH + ".bak"), b"c=3\n")
        self.assertEqual(
            self.disk.list("/etc"), ["broker.properties", "broker.properties.bak"]
        )

    def test_new(self) -> None:
        """A file that is not there is made, with its directory, and no .bak."""
        file = SettingsFile(self.disk, "/store/config/broker.properties")
        file.edit(lambda old: old + b"a=1\n")
        self.disk.crash()
        self.assertEqual(self.disk.read(file.path), b"a=1\n")
        self.assertEqual(self.disk.list("/store/config"), ["broker.properties"])

    def test_refused(self) -> None:
        """A disk that refuses leaves the old content."""
        calls = ("open", "truncate", "copy_mode", "pwrite", "datasync", "rename")
        for call in calls:
            for after in (0, 1):
                self.disk.fail(call, errno.ENOSPC, after)
                file = SettingsFile(self.disk, PATH)
                self.assertRaises(OSError, file.edit, lambda old: b"b=2\n")
                self.assertEqual(self.disk.read(PATH), b"a=1\n", (call, after))
                self.disk.heal()

    def test_crash(self) -> None:
        """A crash at any moment leaves the old or the new content under the name."""
        calls = ("truncate", "copy_mode", "pwrite", "datasync", "rename", "sync_dir")
        for seed in range(20):
            for call in calls:
                for after in (0, 1):
                    self.new_disk()
                    self.disk.fail(call, errno.EIO, after)
                    with contextlib.suppress(OSError):
                        SettingsFile(self.disk, PATH).edit(lambda old: b"b=2\n")
                    self.disk.crash(random.Random(seed))
                    self.assertIn(self.disk.read(PATH), (b"a=1\n", b"b=2\n"))

    def test_permissions(self) -> None:
        """A file that only its owner may read stays so, and so does its .bak."""
        path = Path(self.mktemp()).absolute()
        path.write_bytes(b"secret=1\n")
        os.chmod(path, 0o600)
        SettingsFile(Disk(), str(path)).edit(lambda old: old + b"b=2\n")
        self.assertEqual(path.read_bytes(), b"secret=1\nb=2\n")
        for each in (path, path.with_name(path.name + ".bak")):
            self.assertEqual(stat.S_IMODE(os.stat(each).st_mode), 0o600)
