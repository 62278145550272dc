"""Tests of L{rocketbroker.replication.transfer_rate}."""

from __future__ import annotations

from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.replication.transfer_rate import TransferRate


class TransferRateTests(SynchronousTestCase):
    """Bytes by the second."""

    def test_seconds(self) -> None:
        """The last whole second is what went in it, nothing if nothing did."""
        clock = Clock()
        rate = TransferRate(clock.seconds)
        rate.add(3)
        clock.advance(0.75)
        rate.add(4)
        self.assertEqual((rate.now(), rate.last(), rate.rest()), (7, 0, 0.25))
        clock.advance(0.25)
        self.assertEqual((rate.now(), rate.last()), (0, 7))
        rate.add(5)
        clock.advance(1)
        self.assertEqual((rate.now(), rate.last()), (0, 5))
        clock.advance(2)
        rate.add(1)
        self.assertEqual((rate.now(), rate.last()), (1, 0))
