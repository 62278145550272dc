"""Settings that refuse the start."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.unsupported import BROKER, NAME_SERVER, SERVER
from rocketbroker.errors import ConfigurationError


class UnsupportedTests(SynchronousTestCase):
    """What is not built is refused."""

    def refusal(self, properties: dict[str, str]) -> str:
        """Why a broker does not start with these settings."""
        return str(
            self.assertRaises(
                ConfigurationError, BrokerSettings.from_properties, properties, "f"
            )
        )

    def test_broker(self) -> None:
        """Each key of a broker refuses all values but those that are served."""
        others = {
            "storeType": "defaultRocksDB",
            "configManagerVersion": "V2",
            "tlsMode": "enforcing",
            "socksProxyConfig": '{"*": {"addr": "10.0.0.1:1080"}}',
        }
        for key, served, reason in (*SERVER, *BROKER):
            text = others.get(key, "true")
            self.assertEqual(
                self.refusal({key: text}), f"f: {key} cannot be {text!r}: {reason}."
            )
            BrokerSettings.from_properties({key: served[0]})

    def test_slave(self) -> None:
        """A slave needs an id of its own: 0 is the master's."""
        for given in ({}, {"brokerId": "0"}):
            self.assertEqual(
                self.refusal({"brokerRole": "SLAVE", **given}),
                "f: brokerId cannot be 0 with brokerRole=SLAVE: slave's brokerId must "
                "be > 0.",
            )

    def test_otherReplication(self) -> None:
        """A sentence says what keeps copies instead of groups and controllers."""
        for key in "enableDLegerCommitLog", "enableControllerMode", "duplicationEnable":
            found = self.refusal({key: "true"})
            for word in "SYNC_MASTER", "inSyncReplicas=2", "SLAVE", "replication.rst":
                self.assertIn(word, found)
            self.assertEqual(found.count(". "), 0)

    def test_nameServer(self) -> None:
        """So does each key of a name server."""
        for key, text in (
            ("authenticationEnabled", "True"),
            *((each.key, "true") for each in NAME_SERVER),
        ):
            error = self.assertRaises(
                ConfigurationError, NamesrvSettings.from_properties, {key: text}, "f"
            )
            self.assertTrue(str(error).startswith(f"f: {key} cannot be {text!r}: "))
