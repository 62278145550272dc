"""Pulls that were refused, as they are noted."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.pull.denied_pulls import (
    MAX_ADDRESSES,
    MAX_NOTED,
    DeniedPulls,
)


class RefusalsTests(SynchronousTestCase):
    """L{DeniedPulls}."""

    def test_taken(self) -> None:
        """Each address is noted once, until all is taken."""
        refusals = DeniedPulls()
        for address in ("a:1", "b:1", "a:1"):
            refusals.note("G", "T", address)
        self.assertEqual(refusals.take(), {("G", "T"): ["a:1", "b:1"]})
        self.assertEqual(refusals.take(), {})
        self.assertEqual(refusals.count, 3)

    def test_limits(self) -> None:
        """So many groups and topics, and addresses of each; all pulls are counted."""
        refusals = DeniedPulls()
        for number in range(MAX_NOTED + 1):
            refusals.note("G", f"T{number}", "a:1")
        for number in range(MAX_ADDRESSES + 1):
            refusals.note("G", "T0", f"b:{number}")
        self.assertEqual(refusals.count, MAX_NOTED + 1 + MAX_ADDRESSES + 1)
        noted = refusals.take()
        self.assertEqual(len(noted), MAX_NOTED)
        self.assertEqual(len(noted["G", "T0"]), MAX_ADDRESSES)
