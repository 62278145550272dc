"""Paths in settings."""

from __future__ import annotations

import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import CLASSES, BrokerSettings
from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.config.paths import all_resolved, resolved
from rocketbroker.errors import ConfigurationError


def beginnings() -> dict[str, str]:
    """What stands before a name in each way to write a path, and where it leads."""
    here, home = os.getcwd(), os.path.expanduser("~/")
    return {
        "": f"{here}/",
        "sub/": f"{here}/sub/",
        "../": f"{os.path.dirname(here)}/",
        "~/": home,
        "${user.home}/": home,
        "/a/": "/a/",
        "/a/../b/": "/b/",
    }


class PathTests(SynchronousTestCase):
    """L{resolved} and L{all_resolved}."""

    def test_eachBeginning(self) -> None:
        """Every way to write a path gives an absolute one."""
        for beginning, place in beginnings().items():
            self.assertEqual(resolved(beginning + "x"), place + "x")

    def test_noPathStaysNone(self) -> None:
        """Nothing does not become the working directory."""
        self.assertEqual(resolved(""), "")
        self.assertEqual(all_resolved("/a, ,~"), f"/a,,{os.path.expanduser('~')}")


class SettingsTests(SynchronousTestCase):
    """Every setting that is a path."""

    def test_everyPathIsAbsolute(self) -> None:
        """Of brokers and name servers, however it is written."""
        for cls in (*CLASSES, NamesrvOptions):
            for name in cls.PATHS:
                key = {name: key for key, name in cls.keys().items()}[name]
                for beginning, place in beginnings().items():
                    options = cls.from_properties({key: beginning + "x"})
                    self.assertEqual(getattr(options, name), place + "x", key)

    def test_settingsCalledPathAreKnown(self) -> None:
        """What has an effect and is called a path, a directory or a home is one."""
        for cls in (*CLASSES, NamesrvOptions):
            for key, name in cls.keys().items():
                if name in cls.ABOUT and key.endswith(("Path", "Paths", "Dir", "Home")):
                    self.assertIn(name, cls.PATHS)

    def test_listOfPaths(self) -> None:
        """The log may lie in several directories."""
        settings = BrokerSettings.from_properties({"storePathCommitLog": "a,~/b,/c"})
        self.assertEqual(
            settings.store.store_path_commit_log,
            f"{os.getcwd()}/a,{os.path.expanduser('~')}/b,/c",
        )

    def test_emptyPathIsRefused(self) -> None:
        """Where there has to be one; else it means the default."""
        for make, key in (
            (BrokerSettings.from_properties, "storePathRootDir"),
            (NamesrvSettings.from_properties, "kvConfigPath"),
        ):
            error = self.assertRaises(ConfigurationError, make, {key: " "})
            self.assertEqual(
                str(error), f"settings: {key} cannot be ' ': it must be a path."
            )
        settings = BrokerSettings.from_properties({"storePathCommitLog": ""})
        self.assertEqual(settings.store.store_path_commit_log, "")
