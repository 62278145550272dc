"""What the verbs for a store's directory are told."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.storeoptions import settings
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError


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
