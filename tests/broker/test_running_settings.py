"""The settings in force, and the parts that obey them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.running_settings import RunningSettings
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import NoPermission


class RunningSettingsTests(SynchronousTestCase):
    """L{RunningSettings}."""

    def test_change(self) -> None:
        """After a change there are other settings, with a version; those who want to
        know are told."""
        before = BrokerSettings.from_properties({"storePathRootDir": "/store"})
        now = [1000]
        running = RunningSettings(before, lambda: now[0])
        told: list[BrokerSettings] = []
        running.watch(told.append)
        first = running.version
        now[0] = 2000
        running.change({"brokerPermission": "4"})
        self.assertEqual(running.current.broker.broker_permission, 4)
        self.assertEqual(told, [running.current])
        self.assertEqual((first.timestamp, first.counter), (1000, 0))
        self.assertEqual(running.version, first.next(2000))

    def test_refused(self) -> None:
        """A change that is refused changes nothing, and nobody is told."""
        before = BrokerSettings.from_properties({"storePathRootDir": "/store"})
        running = RunningSettings(before, lambda: 1)
        running.watch(lambda settings: self.fail("told"))
        texts = {"brokerPermission": "4", "listenPort": "1"}
        self.assertRaises(NoPermission, running.change, texts)
        self.assertIs(running.current, before)
        self.assertEqual(running.version.counter, 0)
