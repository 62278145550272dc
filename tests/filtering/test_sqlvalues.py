"""Values in SQL92 expressions."""

from __future__ import annotations

import math

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.filtering.sqlvalues import Incomparable, double, integer, long, order


class ReadingTests(SynchronousTestCase):
    """Strings as numbers, as Java reads them."""

    def test_integers(self) -> None:
        """Signs, leading zeros and the limits; nothing around them."""
        self.assertEqual(integer(b"+5"), 5)
        self.assertEqual(integer(b"-007"), -7)
        self.assertEqual(integer(b"2147483647"), 2147483647)
        self.assertEqual(long(b"2147483648"), 2147483648)
        self.assertEqual(long(b"-9223372036854775808"), -(1 << 63))
        for text in ("", " 5", "5.0", "5L", "1_0", "2147483648", "0x5", "9" * 5000):
            self.assertRaises(Incomparable, integer, text.encode())
        self.assertRaises(Incomparable, long, b"9223372036854775808")

    def test_doubles(self) -> None:
        """Blanks around, a suffix, names and hexadecimal are taken."""
        self.assertEqual(double(b" 5 "), 5.0)
        self.assertEqual(double(b"5.d"), 5.0)
        self.assertEqual(double(b".5e1F"), 5.0)
        self.assertEqual(double(b"-Infinity"), -math.inf)
        self.assertTrue(math.isnan(double(b"NaN")))
        self.assertEqual(double(b"0x1.8p1"), 3.0)
        self.assertEqual(double(b"0x1p5000"), math.inf)
        self.assertEqual(double(b"1e999"), math.inf)
        for text in ("", "inf", "nan", "1_0", "5L", "e5", ".", "0x5", "\u0665"):
            self.assertRaises(Incomparable, double, text.encode())

    def test_order(self) -> None:
        """NaN is the largest and equals itself; the zeros differ."""
        self.assertEqual(order(1.0, 2.0), -1)
        self.assertGreater(order(math.nan, math.inf), 0)
        self.assertLess(order(math.inf, math.nan), 0)
        self.assertEqual(order(math.nan, math.nan), 0)
        self.assertGreater(order(0.0, -0.0), 0)
        self.assertLess(order(-0.0, 0.0), 0)
        self.assertEqual(order(5, 5.0), 0)
