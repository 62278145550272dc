"""Address patterns of ACL 1.0."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.address_patterns import parse

#: A pattern, addresses that match, and addresses that do not.
KNOWN = (
    ("", "", "10.0.0.1 ::1"),
    ("  ", "", "10.0.0.1"),
    ("*", "10.0.0.1 ::1", ""),
    ("*.*.*.*", "10.0.0.1 ::1", ""),
    ("*:*:*:*:*:*:*:*", "10.0.0.1 ::1", ""),
    ("10.0.0.1", "10.0.0.1", "10.0.0.10 10.0.0.2 ::1"),
    ("fe80::aB", "fe80::ab FE80:0:0:0:0:0:0:00AB", "fe80::ac 10.0.0.1"),
    ("10.0.0.{1,2}", "10.0.0.1 10.0.0.2", "10.0.0.3"),
    ("fe80::{1,a}", "fe80::1 fe80::A fe80:0:0:0:0:0:0:1", "fe80::2"),
    ("10.0.0.1,::1", "10.0.0.1 ::1 0:0:0:0:0:0:0:1", "10.0.0.2 ::2"),
    ("10.1.*.*", "10.1.0.0 10.1.255.255", "10.2.0.0 10.10.0.0 ::1"),
    ("10.*.7.7", "10.1.1.1 10.255.0.1", "11.1.1.1"),
    ("10.1.2-4.*", "10.1.2.9 10.1.4.9", "10.1.1.9 10.1.5.9"),
    ("10.1.2-4.9", "10.1.3.1 10.1.3.9", "10.1.5.9"),
    ("10.1.2.3-30", "10.1.2.3 10.1.2.30", "10.1.2.2 10.1.2.31 10.1.3.3"),
    ("10. 1 .2.*", "10.1.2.3", "10.1.3.3"),
    # The two colons stand for one group here.
    ("fe80::*", "fe80::1 fe80:0:7:0:0:0:0:ffff", "fe80:1::1 fe81::1 10.0.0.1"),
    ("fe80::5:1-1F", "fe80::5:1 fe80::5:1f", "fe80::5:0 fe80::5:20 fe80::1"),
    ("fe80::1-2:*", "fe80:0:1::9 fe80:0:2::", "fe80::1:9 fe80:0:3::"),
    ("1:2:3:4:5:6:7:*", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:8:8"),
)

#: Texts that are no patterns.
WRONG = (
    "10.0.0",
    "10.0.0.256",
    "10.0.0.01",
    "host",
    "10.0.{1,2}",
    "10.{1,2}.0.1",
    "10.0.0.x{1}",
    "fe80::x{1}",
    "10.0.0.{300}",
    "10.0.0.1, 10.0.0.2",
    "10.0.0.1-2,10.0.0.9",
    "10.1.*",
    "10.1.*.*.*",
    "300.1.*.*",
    "x.1.*.*",
    "10.1.2.-3",
    "10.1.2.3-",
    "10.1.2.9-3",
    "10.1.2.3-256",
    "10.1.2.a-b",
    "*.1.2.3",
    "10.1.2.0-0",
    "fe80::*:1",
    "fe80:1-2::1",
    "fe80::1-2:1:*",
    "fe80::1-fffff",
    "fe80::5-1",
    "*:",
    "1-2:3::4",
    "fe80::1/129",
    "fe80::1::2",
)


class PatternTests(SynchronousTestCase):
    """Which addresses match which patterns."""

    def test_knownPatterns(self) -> None:
        """As RocketMQ's classes say; the comparison with them has many more."""
        for text, inside, outside in KNOWN:
            pattern = parse(text)
            for address in inside.split():
                self.assertTrue(pattern.matches(address), f"{text} {address}")
            for address in outside.split():
                self.assertFalse(pattern.matches(address), f"{text} {address}")

    def test_noPattern(self) -> None:
        """None matches nothing, as a blank text does."""
        self.assertFalse(parse(None).matches("10.0.0.1"))

    def test_wrongPatternsAreRefused(self) -> None:
        """Each in words, before any request comes."""
        for text in WRONG:
            error = self.assertRaises(ValueError, parse, text)
            self.assertNotEqual(str(error), "", text)
