"""Tests of L{rocketbroker.config.hours}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.hours import parse_hours
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError


class HoursTests(SynchronousTestCase):
    """L{parse_hours}."""

    def test_hours(self) -> None:
        """One hour or several, with or without the leading zero."""
        self.assertEqual(parse_hours("04"), {4})
        self.assertEqual(parse_hours("00; 4;23"), {0, 4, 23})

    def test_noHours(self) -> None:
        """What is no hour of the day stops the start."""
        for text in ("", "24", "-1", "4;", "4,5", "004", "\u0664"):
            self.assertRaises(ValueError, parse_hours, text)
        error = self.assertRaises(
            ConfigurationError,
            StoreOptions.from_properties,
            {"deleteWhen": "4 am"},
            "f",
        )
        self.assertIn("f: deleteWhen cannot be '4 am'", str(error))
