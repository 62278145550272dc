"""What scripts/release.py makes of changelog, version and names of files."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from scripts.compiled import ROOT
from scripts.release import (
    Refused,
    cut,
    numbers,
    with_version,
    wrong_files,
)

CHANGES = """\
Changes
=======

Unreleased
----------

Added
~~~~~

* This.

0.1.0 (2026-11-21)
------------------

* That.
"""

CUT = """\
Changes
=======

Unreleased
----------


0.2.0 (2026-11-28)
------------------

Added
~~~~~

* This.

0.1.0 (2026-11-21)
------------------

* That.
"""

TAG = "manylinux_2_17_x86_64.manylinux2014_x86_64"

FILES = [
    "rocketbroker-0.2.0.tar.gz",
    "rocketbroker-0.2.0-py3-none-any.whl",
    f"rocketbroker-0.2.0-cp311-cp311-{TAG}.whl",
    "rocketbroker-0.2.0-cp313-cp313-linux_aarch64.whl",
]


class ChangelogTests(SynchronousTestCase):
    """The section "Unreleased" becomes that of a version."""

    def test_unreleasedBecomesTheVersionWithItsDate(self) -> None:
        """The entries stand under the version, and "Unreleased" is empty."""
        self.assertEqual(cut(CHANGES, "0.2.0", "2026-11-28"), CUT)

    def test_secondCutWithoutEntriesIsRefused(self) -> None:
        """Nothing has changed since, so nothing is released."""
        with self.assertRaisesRegex(Refused, "nothing stands under"):
            cut(CUT, "0.3.0", "2026-12-24")

    def test_versionWithASectionIsRefused(self) -> None:
        """No version is released twice."""
        with self.assertRaisesRegex(Refused, r"has a section 0\.1\.0 already"):
            cut(CHANGES, "0.1.0", "2026-11-28")

    def test_changelogWithoutUnreleasedIsRefused(self) -> None:
        """It says which section is missing."""
        with self.assertRaisesRegex(Refused, 'one section "Unreleased"'):
            cut("Changes\n=======\n", "0.2.0", "2026-11-28")

    def test_changelogOfTheCheckoutCanBeCut(self) -> None:
        """CHANGES.rst has the form that a release expects."""
        changes = (ROOT / "CHANGES.rst").read_text("utf-8")
        after = changes.split("Unreleased\n----------\n")[1]
        if after.strip():
            made = cut(changes, "999.0.0", "2026-11-28")
            self.assertIn("\n999.0.0 (2026-11-28)\n--------------------\n", made)


class VersionTests(SynchronousTestCase):
    """Versions are three numbers that only go up."""

    def test_settingsGetTheVersionAndKeepTheRest(self) -> None:
        """One line of setup.cfg changes."""
        before = "[metadata]\nname = rocketbroker\nversion = 0.9.0\nlicense = x\n"
        after = "[metadata]\nname = rocketbroker\nversion = 0.10.0\nlicense = x\n"
        self.assertEqual(with_version(before, "0.10.0"), after)

    def test_versionNotAboveTheLastIsRefused(self) -> None:
        """Both versions are named."""
        for version in ("0.2.0", "0.1.9"):
            with self.assertRaisesRegex(Refused, r"is not above 0\.2\.0"):
                with_version("version = 0.2.0\n", version)

    def test_otherTextsAreNoVersions(self) -> None:
        """A version has three numbers and nothing else."""
        self.assertEqual(numbers("0.10.2"), (0, 10, 2))
        for text in ("0.2", "v0.2.0", "0.2.0rc1", "0.02.0", "0.2.0.1", ""):
            with self.assertRaisesRegex(Refused, "is no version"):
                numbers(text)


class FileTests(SynchronousTestCase):
    """A release has an sdist, a pure wheel, and a compiled one for each Python."""

    def test_completeSetOfFilesIsAccepted(self) -> None:
        """The order does not matter, nor which of the platform's tags it is."""
        self.assertEqual(wrong_files(reversed(FILES), "0.2.0", (11, 13)), [])

    def test_missingFilesAreNamed(self) -> None:
        """One sentence for each."""
        self.assertEqual(
            wrong_files(FILES[1:3], "0.2.0", (11, 12)),
            [
                "the sdist is there 0 times",
                "the compiled wheel of Python 3.12 is there 0 times",
            ],
        )

    def test_filesOfOtherVersionsAreNamed(self) -> None:
        """Nothing else lies among the files."""
        other = "rocketbroker-0.1.0.tar.gz"
        self.assertEqual(
            wrong_files([*FILES, other], "0.2.0", (11, 13)),
            [f"{other} is no file of 0.2.0"],
        )

    def test_twoWheelsOfOnePythonAreNamed(self) -> None:
        """An old one that was left would be taken for the new one."""
        second = "rocketbroker-0.2.0-cp311-cp311-linux_x86_64.whl"
        self.assertEqual(
            wrong_files([*FILES, second], "0.2.0", (11, 13)),
            ["the compiled wheel of Python 3.11 is there 2 times"],
        )
