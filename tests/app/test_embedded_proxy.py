"""What the proxy beside a standalone broker is told."""

from __future__ import annotations

import json
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.embedded_proxy import embedded_settings
from rocketbroker.auth.signatures import Credentials
from rocketbroker.client.settings import ClientSettings
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.proxy.inner_client import client_settings
from rocketbroker.proxy.settings import ProxySettings, settings_from

ROOT = '{"username":"root","password":"root-secret"}'
INNER = '{"accessKey":"inner","secretKey":"inner-secret"}'


class EmbeddedTests(SynchronousTestCase):
    """Settings of a broker become those of a proxy."""

    def told(self, **settings: str) -> tuple[ProxySettings, ClientSettings]:
        """What a proxy makes of what it is told; it uses all of it."""
        path = Path(self.mktemp())
        path.write_text("")
        given = {"tls.config.file": str(path), **settings}
        broker = BrokerSettings.from_properties(given, None)
        text = json.dumps(embedded_settings(broker))
        found, unused = settings_from(text)
        self.assertEqual(unused, [])
        return found, client_settings(("a:1",), found)

    def test_openBrokerAsksForNothing(self) -> None:
        """Nothing is signed, either."""
        found, client = self.told(brokerClusterName="c")
        self.assertEqual(found, ProxySettings(rocket_mq_cluster_name="c"))
        self.assertEqual((client.credentials(), client.tls_terms()), (None, None))

    def test_accessIsControlledAsAtTheBroker(self) -> None:
        """The proxy asks as the broker's inner user, or as its first one."""
        settings = {
            "authenticationEnabled": "true",
            "authenticationWhitelist": "apache.rocketmq.v2.HeartbeatRequest",
            "authorizationEnabled": "true",
            "authorizationWhitelist": "105",
            "rocketbrokerAuthRelease": "5.4",
            "initAuthenticationUser": ROOT,
        }
        found, client = self.told(**settings)
        self.assertTrue(found.authentication_enabled and found.authorization_enabled)
        name = "apache.rocketmq.v2.HeartbeatRequest"
        self.assertEqual(found.authentication_whitelist, name)
        self.assertEqual(found.authorization_whitelist, "105")
        self.assertEqual(found.rocketbroker_auth_release, "5.4")
        self.assertEqual(client.credentials(), Credentials("root", "root-secret"))
        settings["innerClientAuthenticationCredentials"] = INNER
        _, client = self.told(**settings)
        self.assertEqual(client.credentials(), Credentials("inner", "inner-secret"))

    def test_brokerThatEnforcesTlsIsAskedByTls(self) -> None:
        """With what the broker shows to others, if it shows anything."""
        _, client = self.told(**{"tls.server.mode": "enforcing"})
        terms = client.tls_terms()
        assert terms is not None
        self.assertFalse(terms.verify)
