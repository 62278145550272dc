"""The version of this package."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.files.own_version import own_version


class VersionTests(SynchronousTestCase):
    """L{own_version}."""

    def test_isOneWord(self) -> None:
        """It is there, installed or not."""
        self.assertRegex(own_version(), r"^\S+$")
