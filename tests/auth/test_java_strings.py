"""Strings as Java sees them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.java_strings import code_units, split, tokens


class JavaStringTests(SynchronousTestCase):
    """As the reference pages of these methods say."""

    def test_splitDropsEmptyPartsAtTheEnd(self) -> None:
        """Others stay; a text without anything is one empty part."""
        for text, parts in (
            ("a,b", ["a", "b"]),
            (",a,,b,,", ["", "a", "", "b"]),
            ("", [""]),
            (",,", []),
        ):
            self.assertEqual(split(text, ","), parts)

    def test_tokensAreNeverEmpty(self) -> None:
        """Two separators are as good as one."""
        self.assertEqual(tokens(",a,,b,", ","), ["a", "b"])
        self.assertEqual(tokens("", ","), [])

    def test_orderOfCodeUnits(self) -> None:
        """A character of two units stands before those above the surrogates."""
        self.assertEqual(
            sorted(["\ufb01", "\U0001f600", "z"], key=code_units),
            ["z", "\U0001f600", "\ufb01"],
        )
