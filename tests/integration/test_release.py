"""scripts/release.py on a small repository: what it commits, tags and keeps."""

from __future__ import annotations

import hashlib
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from scripts.release import Refused, check_checkout, git, keep, make_commit

CHANGES = "Changes\n=======\n\nUnreleased\n----------\n\n* This.\n"


class ReleaseTests(SynchronousTestCase):
    """A release of a repository that has a changelog and a version."""

    def setUp(self) -> None:
        """A repository with one commit, and a folder for the clone."""
        self.root = Path(self.mktemp()).absolute()
        self.folder = Path(self.mktemp()).absolute()
        self.root.mkdir()
        self.folder.mkdir()
        git(self.root, "init", "--quiet")
        git(self.root, "config", "user.name", "A")
        git(self.root, "config", "user.email", "a@example.org")
        (self.root / "CHANGES.rst").write_text(CHANGES)
        (self.root / "setup.cfg").write_text("[metadata]\nversion = 0.1.0\n")
        git(self.root, "add", ".")
        git(self.root, "commit", "--quiet", "--message", "All")

    def made(self) -> Path:
        """The clone with the commit of 0.2.0."""
        return make_commit(self.root, self.folder, "0.2.0", "2026-11-28")

    def test_commitOfTheVersionLeavesTheCheckoutAsItWas(self) -> None:
        """Only the clone has it, until all was tried."""
        before = git(self.root, "rev-parse", "HEAD")
        tree = self.made()
        self.assertIn("version = 0.2.0\n", (tree / "setup.cfg").read_text())
        self.assertIn("0.2.0 (2026-11-28)\n", (tree / "CHANGES.rst").read_text())
        self.assertEqual(
            git(tree, "log", "-1", "--format=%s by %an"), "Release 0.2.0 by A"
        )
        self.assertEqual(git(self.root, "rev-parse", "HEAD"), before)
        self.assertEqual((self.root / "CHANGES.rst").read_text(), CHANGES)

    def test_keptReleaseHasTagFilesAndDigests(self) -> None:
        """The branch goes forward to what was built, and the tag names it."""
        tree = self.made()
        file = self.folder / "rocketbroker-0.2.0.tar.gz"
        file.write_bytes(b"sdist")
        into = self.folder / "kept"
        keep(self.root, tree, [file], "0.2.0", into)
        made = git(tree, "rev-parse", "HEAD")
        self.assertEqual(
            git(self.root, "rev-parse", "HEAD", "v0.2.0^{}").split(), [made] * 2
        )
        self.assertEqual((into / file.name).read_bytes(), b"sdist")
        digest = hashlib.sha256(b"sdist").hexdigest()
        self.assertEqual(
            (into / "SHA256SUMS").read_text(), f"{digest}  rocketbroker-0.2.0.tar.gz\n"
        )
        with self.assertRaisesRegex(Refused, r"the tag v0\.2\.0 is there already"):
            check_checkout(self.root, "0.2.0")

    def test_checkoutThatWentOnMeanwhileGetsNoTag(self) -> None:
        """What was built is not what stands there now."""
        tree = self.made()
        git(self.root, "commit", "--quiet", "--allow-empty", "--message", "More")
        with self.assertRaisesRegex(Refused, "merge"):
            keep(self.root, tree, [], "0.2.0", self.folder / "kept")
        self.assertEqual(git(self.root, "tag"), "")

    def test_uncommittedChangesAreRefusedByName(self) -> None:
        """They would not be in the release."""
        (self.root / "setup.cfg").write_text("[metadata]\nversion = 0.1.1\n")
        with self.assertRaisesRegex(Refused, r"(?s)commit these first.*setup\.cfg"):
            check_checkout(self.root, "0.2.0")
