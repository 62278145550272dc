"""What stands where a file or directory of ours belongs."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.disk import Disk
from rocketbroker.files.misplaced_files import (
    ASIDE,
    clear_for_file,
    clear_for_folder,
    leads_nowhere,
)


class ObstaclesTests(SynchronousTestCase):
    """On the real disk, for the links."""

    def setUp(self) -> None:
        """A directory with one of each."""
        self.root = os.path.abspath(self.mktemp())
        os.makedirs(f"{self.root}/folder/within")
        os.symlink("nowhere", f"{self.root}/link")
        with open(f"{self.root}/file", "w") as file:
            file.write("kept")
        self.disk = Disk()

    def path(self, name: str) -> str:
        """The path of one."""
        return f"{self.root}/{name}"

    def names(self) -> set[str]:
        """What is there."""
        return set(os.listdir(self.root))

    def test_file(self) -> None:
        """A directory, and a link that leads nowhere, are moved from where a file
        belongs, with what is in them; a file, or nothing, is not."""
        for name in ("file", "none"):
            self.assertEqual(clear_for_file(self.disk, self.path(name)), [])
        for name in ("folder", "link"):
            path = self.path(name)
            sentence = clear_for_file(self.disk, path)
            self.assertEqual(sentence, [f"{path} is no file; it is now {path}{ASIDE}."])
        self.assertEqual(self.names(), {"file", "folder.aside", "link.aside"})
        self.assertTrue(os.path.isdir(self.path("folder.aside/within")))
        self.assertEqual(os.readlink(self.path("link.aside")), "nowhere")

    def test_folder(self) -> None:
        """A file, and a link that leads nowhere, are moved from where a directory
        belongs; the link may be left."""
        for name in ("folder", "none"):
            self.assertEqual(clear_for_folder(self.disk, self.path(name)), [])
        self.assertEqual(clear_for_folder(self.disk, self.path("link"), False), [])
        for name in ("file", "link"):
            path = self.path(name)
            sentence = clear_for_folder(self.disk, path)
            self.assertEqual(
                sentence, [f"{path} is no directory; it is now {path}{ASIDE}."]
            )
        self.assertEqual(self.names(), {"file.aside", "folder", "link.aside"})

    def test_several(self) -> None:
        """What was moved before stays."""
        os.mkdir(self.path("file.aside"))
        os.symlink("nowhere", self.path("file.aside.1"))
        clear_for_folder(self.disk, self.path("file"))
        with open(self.path("file.aside.2")) as file:
            self.assertEqual(file.read(), "kept")

    def test_links(self) -> None:
        """A link leads nowhere if nothing is there."""
        os.symlink("file", self.path("other"))
        self.assertTrue(leads_nowhere(self.disk, self.path("link")))
        for name in ("file", "folder", "none", "other"):
            self.assertFalse(leads_nowhere(self.disk, self.path(name)))
