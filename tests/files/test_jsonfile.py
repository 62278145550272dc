"""The file that is replaced whole."""

from __future__ import annotations

import contextlib
import errno
import json
import random

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.jsonfile import JsonFile
from rocketbroker.testing.files import MemoryDisk

PATH = "/store/config/topics.json"


class JsonFileTests(SynchronousTestCase):
    """Loading, saving, and what a crash leaves."""

    def setUp(self) -> None:
        """A disk with the directory of the store."""
        self.new_disk()

    def new_disk(self) -> None:
        """An empty one."""
        self.disk = MemoryDisk()
        self.disk.make_dirs("/store/config")
        for path in ("/", "/store"):
            self.disk.sync_dir(path)

    def write(self, path: str, content: bytes) -> None:
        """Put a file there as another program would."""
        file = self.disk.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.datasync()
        file.close()
        self.disk.sync_dir("/store/config")

    def test_nothing(self) -> None:
        """No file, no content."""
        self.assertIsNone(JsonFile(self.disk, PATH).load())

    def test_saveAndLoad(self) -> None:
        """What was saved is loaded, and the version before stands in .bak."""
        file = JsonFile(self.disk, PATH)
        file.save(b'{"a":1}')
        file.save(b"{}")
        self.assertEqual(JsonFile(self.disk, PATH).load(json.loads), b"{}")
        self.assertEqual(self.disk.read(PATH + ".bak"), b'{"a":1}')
        self.assertFalse(self.disk.exists(PATH + ".tmp"))

    def test_unread(self) -> None:
        """What the disk could not read is kept by the next that is saved, under another
        name; so is the good version in .bak."""
        for old in (b"", b"{}"):
            self.new_disk()
            self.write(PATH, b'{"a":1}')
            if old:
                self.write(PATH + ".bak", old)
            self.disk.spoil(PATH, 0, 1)
            file = JsonFile(self.disk, PATH)
            if old:
                self.assertEqual(file.load(), old)
            else:
                self.assertRaises(OSError, file.load)
            for content in (b"1", b"2"):
                file.save(content)
            self.assertRaises(OSError, self.disk.read, PATH + ".damaged")
            self.assertEqual(JsonFile(self.disk, PATH).load(), b"2")
            self.assertEqual(self.disk.read(PATH + ".bak"), b"1")
            self.disk.heal()
            self.assertEqual(self.disk.read(PATH + ".damaged"), b'{"a":1}')

    def test_directoryIsMade(self) -> None:
        """Saving makes the directory."""
        JsonFile(self.disk, "/store/other/a.json").save(b"{}")
        self.assertEqual(self.disk.list("/store/other"), ["a.json"])

    def test_folders(self) -> None:
        """A file in the place of its directory is not moved away: the path is a
        setting's, and may be anybody's."""
        self.disk.open("/store/file", create=True)
        file = JsonFile(self.disk, "/store/file/a.json")
        self.assertRaises(OSError, file.save, b"{}")
        self.assertEqual(self.disk.list("/store"), ["config", "file"])

    def test_badDisk(self) -> None:
        """So is one that the disk cannot read; without .bak that is an error."""
        self.write(PATH, b"{}")
        self.disk.fail("read", errno.EIO)
        self.assertRaises(OSError, JsonFile(self.disk, PATH).load)
        self.write(PATH + ".bak", b"[]")
        self.disk.fail("read", errno.EIO)
        file = JsonFile(self.disk, PATH)
        self.assertEqual((file.load(), file.fallbacks), (b"[]", 1))

    def test_fallBack(self) -> None:
        """A missing, empty or unreadable file is replaced by .bak."""
        self.write(PATH + ".bak", b"{}")
        for content in (None, b"", b'{"a":'):
            if content is not None:
                self.write(PATH, content)
            file = JsonFile(self.disk, PATH)
            self.assertEqual(file.load(json.loads), b"{}")
            self.assertEqual(file.fallbacks, 1)

    def test_bothBad(self) -> None:
        """When no version makes sense, the check's own error tells."""
        self.write(PATH, b'{"a":')
        file = JsonFile(self.disk, PATH)
        self.assertRaises(ValueError, file.load, json.loads)
        self.write(PATH + ".bak", b'{"b":')
        self.assertRaises(ValueError, file.load, json.loads)

    def test_badFileDoesNotReplaceBak(self) -> None:
        """After a fall-back the bad file does not become .bak."""
        self.write(PATH + ".bak", b"{}")
        self.write(PATH, b'{"a":')
        file = JsonFile(self.disk, PATH)
        file.load(json.loads)
        file.save(b'{"new":1}')
        self.assertEqual(self.disk.read(PATH), b'{"new":1}')
        self.assertEqual(self.disk.read(PATH + ".bak"), b"{}")

    def test_damagedIsKept(self) -> None:
        """What makes no sense is kept aside, file and .bak, whatever is saved."""
        for round in range(2):
            self.write(PATH, b"bad %d" % round)
            self.write(PATH + ".bak", b"old %d" % round)
            file = JsonFile(self.disk, PATH)
            self.assertRaises(ValueError, file.load, json.loads)
            self.assertEqual(file.damaged, [PATH, PATH + ".bak"])
            for content in (b"1", b"2", b"3"):
                file.save(content)
            self.assertEqual(file.damaged, [])
            self.assertEqual(self.disk.read(PATH), b"3")
            self.assertEqual(self.disk.read(PATH + ".bak"), b"2")
        for name, content in (
            (".damaged", b"bad 0"),
            (".bak.damaged", b"old 0"),
            (".damaged.2", b"bad 1"),
            (".bak.damaged.2", b"old 1"),
        ):
            self.assertEqual(self.disk.read(PATH + name), content)

    def test_leftoverTemporary(self) -> None:
        """A longer temporary file of a crash before leaves nothing behind."""
        self.write(PATH + ".tmp", b"x" * 100)
        JsonFile(self.disk, PATH).save(b"{}")
        self.assertEqual(self.disk.read(PATH), b"{}")

    def test_fullDisk(self) -> None:
        """When the disk refuses, the error is told and the old content stands."""
        file = JsonFile(self.disk, PATH)
        file.save(b"{}")
        self.disk.fail("pwrite", errno.ENOSPC)
        self.assertRaises(OSError, file.save, b'{"a":1}')
        self.assertEqual(JsonFile(self.disk, PATH).load(), b"{}")

    def test_crashAtEveryCall(self) -> None:
        """Whichever call fails, whatever the crash then keeps, a version is there."""
        calls = ("open", "truncate", "pwrite", "datasync", "rename", "sync_dir")
        for call in calls:
            for after in range(2):
                for seed in range(8):
                    self.new_disk()
                    file = JsonFile(self.disk, PATH)
                    file.save(b'{"old":1}')
                    self.disk.fail(call, errno.EIO, after)
                    with contextlib.suppress(OSError):
                        file.save(b'{"new":1}')
                    self.disk.crash(random.Random(seed))
                    content = JsonFile(self.disk, PATH).load(json.loads)
                    self.assertIn(content, (b'{"old":1}', b'{"new":1}'))
