"""Tests of reading what was written."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.wire.fastjson import dumps, loads


class FastjsonTests(SynchronousTestCase):
    """Both directions."""

    def test_roundTrip(self) -> None:
        """What was written is read."""
        value = {"a": {1: [True, None, 1.5, "x"]}}
        self.assertEqual(loads(dumps(value)), value)
