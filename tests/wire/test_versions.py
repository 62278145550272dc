"""Tests of the names of releases."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.versions import version_name


class VersionTests(SynchronousTestCase):
    """Ordinals that the fact sheet names."""

    def test_known(self) -> None:
        """Each ordinal of C{docs/facts/remoting.md 4.4} has its name."""
        for ordinal, name in {
            213: "v4_0_0",
            232: "v4_1_0_snapshot",
            317: "v4_5_2",
            333: "v4_6_0",
            399: "v4_9_3",
            409: "v4_9_8",
            413: "v5_0_0",
            479: "v5_3_3",
            611: "v5_9_9",
        }.items():
            self.assertEqual(version_name(ordinal), name)

    def test_outside(self) -> None:
        """What is newer than the table or older than 4.0 is called so."""
        self.assertEqual(version_name(612), "higher_version")
        self.assertEqual(version_name(100000), "higher_version")
        self.assertEqual(version_name(0), "before_v4_0_0")
        self.assertEqual(version_name(-5), "before_v4_0_0")
