"""The files of ACL 1.0 on the disk."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.plain_edits import AccountChange, with_account
from rocketbroker.auth.request import Asked
from rocketbroker.auth.signatures import Credentials, sign
from rocketbroker.broker.access.plain_files import PlainFiles
from rocketbroker.errors import ConfigurationError
from rocketbroker.testing.files import MemoryDisk

HOME = "/home"
FILE = "/home/conf/plain_acl.yml"


def account(*names: str) -> bytes:
    """The text of a file with such administrators."""
    line = "- {{accessKey: {0}, secretKey: s-{0}, admin: true}}"
    return "\n".join(["accounts:", *map(line.format, names)]).encode()


class PlainFilesTests(SynchronousTestCase):
    """L{PlainFiles}."""

    def setUp(self) -> None:
        """One account."""
        self.disk = MemoryDisk()
        self.put(FILE, account("accountA"))
        self.files = PlainFiles(self.disk, HOME)
        self.files.load()

    def put(self, path: str, content: bytes) -> None:
        """Write a file; time passes."""
        self.disk.now_ms += 1000
        self.disk.make_dirs(path.rpartition("/")[0])
        file = self.disk.open(path, create=True)
        file.truncate(0)
        file.pwrite(content, 0)
        file.close()

    def known(self) -> list[str]:
        """Who may ask."""
        found = []
        for name in ("accountA", "accountB", "accountC"):
            fields = sign({}, b"", Credentials(name, f"s-{name}"))
            if self.files.rules.decide(Asked(17, fields)).allowed:
                found.append(name[-1])
        return found

    def test_severalFiles(self) -> None:
        """Those below conf/acl, wherever they are, and the default one."""
        self.put("/home/conf/acl/deep/er/b.yaml", account("accountB"))
        self.put("/home/conf/acl/tools.yml", account("accountC"))
        self.put("/home/conf/acl/notes.txt", b"no file of accounts")
        self.assertEqual(self.files.look(), [])
        self.assertEqual(self.known(), ["A", "B"])
        self.assertIsNone(self.files.look())

    def test_changed(self) -> None:
        """A file that changes counts as it is now; so does one that goes."""
        self.put(FILE, account("accountB"))
        self.assertEqual(self.files.look(), [])
        self.assertEqual(self.known(), ["B"])
        self.disk.remove(FILE)
        self.assertEqual(self.files.look(), [])
        self.assertEqual(self.known(), [])

    def test_bad(self) -> None:
        """What is not in order changes nothing, is told once, and read again when it
        has changed again; so it is with an emptied file."""
        for content in (b"accounts: [", b"accounts:\n- {accessKey: a, secretKey: b}"):
            self.put(FILE, content)
            (problem,) = self.files.look() or []
            self.assertIn(FILE, problem)
            self.assertIsNone(self.files.look())
            self.assertEqual(self.known(), ["A"])
        self.put(FILE, b"")
        self.assertEqual(self.files.look(), [])
        self.assertEqual(self.known(), ["A"])
        self.put(FILE, account("accountB"))
        self.files.look()
        self.assertEqual(self.known(), ["B"])

    def test_badAtStart(self) -> None:
        """It refuses the start, in a sentence."""
        self.put(FILE, b"accounts: 7")
        with self.assertRaisesRegex(ConfigurationError, FILE):
            PlainFiles(self.disk, HOME).load()

    def test_written(self) -> None:
        """A change is in the file, and counts at once; what is refused is not."""
        change = AccountChange(
            access_key="accountB", secret_key="s-accountB", admin=True
        )
        self.files.write(lambda documents: with_account(documents, change, FILE, 5))
        self.assertEqual(self.known(), ["A", "B"])
        self.assertIsNone(self.files.look())
        again = PlainFiles(self.disk, HOME)
        again.load()
        self.assertEqual([each.counter for each in again.documents], [1])
        self.assertIn(b"accountB", self.disk.read(FILE))
        bad = AccountChange(access_key="accountC", secret_key="short")
        with self.assertRaises(ValueError):
            self.files.write(lambda documents: with_account(documents, bad, FILE, 5))
        self.assertEqual(self.known(), ["A", "B"])

    def test_diskThatIsFull(self) -> None:
        """The old file stands, and its rules."""
        before = self.disk.read(FILE)
        self.disk.capacity = self.disk.used()
        change = AccountChange(access_key="accountB", secret_key="s-accountB")
        with self.assertRaises(OSError):
            self.files.write(lambda documents: with_account(documents, change, FILE, 5))
        self.assertEqual(self.disk.read(FILE), before)
        self.assertEqual(self.known(), ["A"])
