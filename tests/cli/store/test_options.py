"""What the verbs for a store's directory are told."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.cli.store.options import place_of_log, settings
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError, StoreError
from rocketbroker.files.disk import Disk


class SettingsTests(SynchronousTestCase):
    """A broker's file, or none."""

    def write(self, text: str) -> str:
        """Such a file."""
        path: str = self.mktemp()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def test_none(self) -> None:
        """The usual settings."""
        usual = StoreOptions()
        self.assertEqual(settings(None).max_index_num, usual.max_index_num)

    def test_file(self) -> None:
        """Those in the file; other settings of a broker do not matter."""
        options = settings(self.write("brokerName=b\nmaxHashSlotNum=7\n"))
        self.assertEqual(options.max_hash_slot_num, 7)

    def test_wrong(self) -> None:
        """A value that cannot be is told."""
        path = self.write("maxHashSlotNum=many\n")
        error = self.assertRaises(ConfigurationError, settings, path)
        self.assertIn("maxHashSlotNum", str(error))

    def test_noSettings(self) -> None:
        """A file that sets nothing that a broker knows is not taken for one; one that
        says nothing at all is."""
        path = self.write("#!/bin/sh\nexport HOME=/root\nls -l\n")
        error = self.assertRaises(ConfigurationError, settings, path)
        self.assertIn("no file of a broker's settings", str(error))
        settings(self.write("# nothing\n"))
        settings(self.write("listenPort=10911\n"))

    def test_otherBytes(self) -> None:
        """A file of any bytes is read as Java reads it."""
        path: str = self.mktemp()
        with open(path, "wb") as file:
            file.write(b"maxIndexNum=8\nbrokerName=\xff\xfe\n")
        self.assertEqual(settings(path).max_index_num, 8)


class PlaceOfLogTests(SynchronousTestCase):
    """Where the log is."""

    def setUp(self) -> None:
        """A root with a log, and settings that name another place."""
        self.root = os.path.realpath(self.mktemp())
        self.log = os.path.join(self.root, "commitlog")
        os.makedirs(self.log)
        self.options = StoreOptions(store_path_commit_log="/srv/production")

    def place(self, commit_log: str | None = None) -> str:
        """Where it is taken to be."""
        return place_of_log(Disk(), self.root, commit_log, self.options)

    def test_root(self) -> None:
        """In the root if it is there, whatever the settings say."""
        with open(os.path.join(self.log, "0" * 20), "wb"):
            pass
        self.assertEqual(self.place(), self.log)

    def test_elsewhere(self) -> None:
        """Where the settings say it is nobody goes without being told to."""
        error = self.assertRaises(StoreError, self.place)
        self.assertIn("--commit-log /srv/production", str(error))
        self.options = StoreOptions()
        self.assertEqual(self.place(), self.log)
        # In a store to which no message has come.
        link = self.root + "-link"
        os.symlink(self.root, link)
        path = os.path.join(link, "commitlog")
        self.options = StoreOptions(store_path_commit_log=path)
        self.assertEqual(self.place(), self.log)

    def test_given(self) -> None:
        """Where it was said to be, and where links lead from there."""
        link = os.path.join(self.root, "link")
        os.symlink(self.log, link)
        self.assertEqual(self.place(f"{link},/other"), f"{self.log},/other")
