"""Hints of SQL92 expressions."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.filtering.sql import compiled
from rocketbroker.filtering.sqlhints import MAX_BYTES, MAX_STRINGS

VALUES = (
    *("0", "00", "+0", "-0", "7", "07", "-7", "+007", "70", "17", "1", "x", "xy"),
    *("0" * 300 + "7", "\u0667", "0\u0667", "-\u0660\u0667", "\u0660", "7.0", "7x"),
)


class HintTests(SynchronousTestCase):
    """What they find."""

    def test_found(self) -> None:
        """A hint is found wherever its expression is true, first, last, or before the
        size of the next record."""
        for expression in (
            *("a = 0", "a = 7", "a = -7", "a = 7L", "a = 'x'", "a = '07'"),
            *("a IN ('x', '7')", "a = 7 AND b = 'y'", "b = 'y' AND a IN ('7')"),
        ):
            wanted = compiled(expression)
            assert wanted.hint is not None, expression
            true = 0
            for value in VALUES:
                one = f"a\1{value}".encode()
                for stored in (
                    *(one + b"\2", one, b"b\1y\2" + one, b"a\x019\2b\1y\2" + one),
                    *(one + b"\2b\1y", one + b"\2a\1\2b\1y\2"),
                ):
                    if wanted.matches(stored):
                        true += 1
                        found = wanted.hint.search(stored + b"\0\0\1")
                        self.assertIsNotNone(found, (expression, stored))
            self.assertGreater(true, 0, expression)

    def test_few(self) -> None:
        """It is not found where another value stands, or another property."""
        for expression in ("a = 7", "a = '7'", "a IN ('7', '8')"):
            hint = compiled(expression).hint
            assert hint is not None
            for stored in (b"a\x015\2", b"b\x017\2", b"a7\2", b""):
                self.assertIsNone(hint.search(stored), expression)
        hint = compiled("a = 7").hint
        assert hint is not None
        self.assertIsNone(hint.search(b"a\x0171\2"))

    def test_none(self) -> None:
        """What may be true without such a text has no hint."""
        many = ", ".join(f"'{number}'" for number in range(MAX_STRINGS + 1))
        for expression in (
            *("a = 0 OR b = 1", "a <> 0", "a IS NULL", "a > 0", "a = 0.5", "0 = a"),
            *("a NOT IN ('x')", "a = ''", "a IN ('', 'x')", "a = 'ö'", "a = b", "TRUE"),
            *("a = TRUE", f"a IN ({many})", "NOT a = 5", "a = b AND c > 5"),
        ):
            self.assertIsNone(compiled(expression).hint, expression)

    def test_long(self) -> None:
        """Of long strings the beginning is enough; a dot is only a dot."""
        hint = compiled(f"a = '{'.' * 1000}'").hint
        assert hint is not None
        self.assertIsNotNone(hint.search(b"a\1" + b"." * MAX_BYTES))
        self.assertIsNone(hint.search(b"a\1" + b"x" * 1000))
