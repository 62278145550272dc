"""Tests of L{rocketbroker.broker.wait_limits}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.wait_limits import wait_limits
from rocketbroker.config.broker import BrokerOptions
from tests.broker.rig import Rig

CODES = (10, 11, 12, 34, 36, 37, 38, 105, 310, 361, 370, 200051)


class WaitLimitsTests(SynchronousTestCase):
    """The limits of a broker's tables."""

    def test_families(self) -> None:
        """Each family has RocketMQ's limit; some have none."""
        self.assertEqual(
            wait_limits(BrokerOptions(), CODES),
            {
                **dict.fromkeys((10, 36, 310, 370), 0.2),
                **dict.fromkeys((11, 361, 105), 5.0),
                34: 31.0,
                **dict.fromkeys((37, 200051), 3.0),
            },
        )

    def test_settings(self) -> None:
        """Each limit is a setting."""
        options = BrokerOptions.from_properties(
            {
                "waitTimeMillsInSendQueue": "1",
                "waitTimeMillsInPullQueue": "2",
                "waitTimeMillsInLitePullQueue": "3",
                "waitTimeMillsInHeartbeatQueue": "4",
                "waitTimeMillsInTransactionQueue": "5",
                "waitTimeMillsInAckQueue": "6",
                "waitTimeMillsInAdminBrokerQueue": "7",
            }
        )
        self.assertEqual(
            wait_limits(options, (310, 11, 361, 34, 37, 200051, 26)),
            {
                310: 0.001,
                11: 0.002,
                361: 0.003,
                34: 0.004,
                37: 0.005,
                200051: 0.006,
                26: 0.007,
            },
        )

    def test_broker(self) -> None:
        """Both ports of a broker have them, also after a change."""
        rig = Rig({})
        self.addCleanup(rig.close)
        for table in (rig.broker.main, rig.broker.vip):
            self.assertEqual(table.max_waits[310], 0.2)
            self.assertEqual(table.max_waits[26], 5.0)
            self.assertEqual(table.least_wait, 0.2)
        rig.change(waitTimeMillsInSendQueue=1500)
        self.assertEqual(rig.broker.vip.max_waits[310], 1.5)
        rig.change(brokerFastFailureEnable="false")
        self.assertEqual(rig.broker.main.max_waits, {})
