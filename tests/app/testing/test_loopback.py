"""The settings of a broker in testing mode."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.app.standalone import Flags, merged
from rocketbroker.app.testing.loopback import ADDRESSES, SEGMENT, testing_settings
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConfigurationError


class LoopbackTests(SynchronousTestCase):
    """Nobody but this machine reaches it."""

    def refused(self, **given: str) -> str:
        """Why these settings are refused."""
        return str(self.assertRaises(ConfigurationError, testing_settings, given))

    def test_allAddressesAreOfThisMachine(self) -> None:
        """Unless others of it are given."""
        settings = testing_settings({"brokerIP1": "localhost", "bindAddress": "::1"})
        found = [settings[key] for key in ADDRESSES]
        self.assertEqual(found, ["::1", "localhost", "127.0.0.1", "127.0.0.1"])
        checked = BrokerSettings.from_properties(testing_settings({}))
        self.assertEqual(checked.server.bind_address, "127.0.0.1")
        self.assertEqual(checked.broker.broker_ip1, "127.0.0.1")
        self.assertEqual(checked.broker.broker_ip2, "127.0.0.1")
        self.assertEqual(checked.broker.metrics_prom_exporter_host, "127.0.0.1")

    def test_outerAddressesAreRefused(self) -> None:
        """Of any kind, with the key, or the flag."""
        for key in ADDRESSES:
            for address in ("10.0.0.1", "0.0.0.0", "b.example"):
                self.assertIn(f"{key}", self.refused(**{key: address}))
        with self.assertRaises(ConfigurationError) as caught:
            merged({}, Flags(advertise="10.0.0.1:30911", is_testing=True))
        self.assertEqual(
            str(caught.exception),
            "--testing listens on this machine only, and brokerIP1 (--advertise) is "
            "10.0.0.1: leave it out.",
        )

    def test_slavesAreRefused(self) -> None:
        """As is a broker with workers."""
        self.assertIn("brokerRole=SLAVE", self.refused(brokerRole="SLAVE"))
        self.assertIn("workers", self.refused(workers="auto"))
        testing_settings({"brokerRole": "SYNC_MASTER", "workers": "0"})

    def test_segmentsAreSmall(self) -> None:
        """So that retention has something to remove; the largest message fits."""
        for given, size, most in (
            ({}, SEGMENT, SEGMENT - (64 << 10)),
            ({"maxMessageSize": "1000"}, 1000 + (1 << 20), 1000),
            ({"maxMessageSize": "4194304"}, 5 << 20, 4 << 20),
            ({"mappedFileSizeCommitLog": "65536"}, 65536, 4 << 20),
        ):
            store = BrokerSettings.from_properties(testing_settings(given)).store
            self.assertEqual(
                (store.mapped_file_size_commit_log, store.max_message_size),
                (size, most),
            )

    def test_flagsHaveTheSameSizes(self) -> None:
        """A temporary store as well."""
        for is_temporary in (False, True):
            flags = Flags(directory="/d", is_temporary=is_temporary, is_testing=True)
            settings = merged({}, flags)
            self.assertEqual(settings["mappedFileSizeCommitLog"], str(SEGMENT))
