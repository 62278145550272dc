"""Settings of access to the ports beside those of data."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.errors import ConfigurationError

CLIENTS = {
    "tls.test.mode.enable": "false",
    "tls.server.certPath": "/c",
    "tls.server.keyPath": "/k",
    "tls.server.authClient": "true",
    "tls.server.need.client.auth": "optional",
}


class MetricsAccessTests(SynchronousTestCase):
    """The same of a broker and a name server."""

    def refusal(self, **properties: str) -> str:
        """Why both do not start; empty: they do."""
        found = []
        for make in (BrokerSettings.from_properties, NamesrvSettings.from_properties):
            try:
                make(properties)
            except ConfigurationError as error:
                found.append(str(error))
            else:
                found.append("")
        self.assertEqual(found[0], found[1])
        return found[0]

    def test_tlsWithoutCertificateIsRefused(self) -> None:
        """The pages have the certificate of the ports of data."""
        words = self.refusal(
            **{"metricsTls": "enforcing", "tls.server.mode": "disabled"}
        )
        self.assertIn("metricsTls=enforcing needs tls.server.mode", words)
        self.assertIn("must be one of", self.refusal(metricsTls="true"))
        self.assertEqual(self.refusal(metricsTls="permissive"), "")

    def test_certificatesMustBeAskedFor(self) -> None:
        """By TLS that is on, and checks what it is shown."""
        wanted = {"metricsClientCertificate": "true"}
        for missing in (
            wanted,
            {**wanted, **CLIENTS},
            {**wanted, **CLIENTS, "metricsTls": "permissive"}
            | {"tls.server.need.client.auth": "none"},
            {**wanted, "metricsTls": "permissive"},
        ):
            words = self.refusal(**missing)
            self.assertIn("metricsClientCertificate=true needs metricsTls", words)
        all_of_it = {**wanted, **CLIENTS, "metricsTls": "permissive"}
        self.assertEqual(self.refusal(**all_of_it), "")


class ReplicationTests(SynchronousTestCase):
    """The port of replication of a broker."""

    def test_tlsNeedsCertificate(self) -> None:
        """It has that of the ports of data."""
        given = {"haTlsRequired": "true", "tls.server.mode": "disabled"}
        error = self.assertRaises(
            ConfigurationError, BrokerSettings.from_properties, given
        )
        self.assertIn("haTlsRequired=true needs tls.server.mode", str(error))
        del given["tls.server.mode"]
        self.assertTrue(BrokerSettings.from_properties(given).store.ha_tls_required)
