"""What the broker says of its settings."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.admin.settings_requests import SettingsRequests
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.properties import parse
from tests.broker.rig import Rig


class SettingsRequestTests(SynchronousTestCase):
    """Request 26."""

    def test_settings(self) -> None:
        """All keys of all parts, and those that nobody knows, as properties."""
        rig = Rig({})
        self.addCleanup(rig.close)
        said = {"brokerName": "b", "fileReservedTime": "9", "myKey": "my value"}
        settings = BrokerSettings.from_properties(said)
        SettingsRequests(settings, rig.wall_ms).register(rig.table)
        answer = rig.ask(26, {})
        known = parse(answer.body.decode())
        self.assertEqual(known["brokerName"], "b")
        self.assertEqual(known["fileReservedTime"], "9")
        self.assertEqual(known["listenPort"], "10911")
        self.assertEqual(known["connectTimeoutMillis"], "3000")
        self.assertEqual(known["myKey"], "my value")
        assert answer.ext is not None
        self.assertIn('"counter":0', answer.ext["version"])
