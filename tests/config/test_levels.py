"""Tests of L{rocketbroker.config.levels}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.levels import DELAY_LEVELS, MAX_LEVELS, parse_levels
from rocketbroker.config.store import StoreOptions
from rocketbroker.errors import ConfigurationError


class LevelTests(SynchronousTestCase):
    """What C{messageDelayLevel} means."""

    def test_units(self) -> None:
        """Each unit is known; more than one blank does no harm."""
        self.assertEqual(
            parse_levels("1s 2m  3h 4d 0s"), [1000, 120_000, 10_800_000, 345_600_000, 0]
        )

    def test_usual(self) -> None:
        """The eighteen levels of RocketMQ, up to two hours."""
        delays = parse_levels(DELAY_LEVELS)
        self.assertEqual((len(delays), delays[2], delays[17]), (18, 10_000, 7_200_000))
        self.assertEqual(StoreOptions().message_delay_level, DELAY_LEVELS)

    def test_bounds(self) -> None:
        """No level at all, and too many of them."""
        self.assertEqual(len(parse_levels("1s " * MAX_LEVELS)), MAX_LEVELS)
        for text in ("", "  ", "1s " * (MAX_LEVELS + 1)):
            self.assertRaises(ValueError, parse_levels, text)

    def test_refused(self) -> None:
        """What makes no sense refuses the start with one sentence."""
        for word in ("x", "s", "1", "1x", "-1s", "1.5s", "1S", "1234567890s", "1s,5s"):
            error = self.assertRaises(
                ConfigurationError,
                StoreOptions.from_properties,
                {"messageDelayLevel": f"1s {word}"},
                "broker.conf",
            )
            self.assertIn("broker.conf: messageDelayLevel cannot be", str(error))
            self.assertIn(repr(word), str(error))
