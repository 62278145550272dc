"""The settings of a name server."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.namesrv import NamesrvOptions, NamesrvSettings
from rocketbroker.errors import ConfigurationError
from tests.config.keys import check_tables


class NamesrvOptionsTests(SynchronousTestCase):
    """L{NamesrvOptions}."""

    def test_tables(self) -> None:
        """Tables and attributes agree, and the defaults can be read back."""
        check_tables(self, NamesrvOptions)

    def test_paths(self) -> None:
        """Without settings the files are in the user's home directory."""
        options = NamesrvOptions()
        self.assertTrue(options.kv_config_path.endswith("/namesrv/kvConfig.json"))
        self.assertTrue(
            options.config_store_path.endswith("/namesrv/namesrv.properties")
        )


class NamesrvSettingsTests(SynchronousTestCase):
    """L{NamesrvSettings}."""

    def test_defaults(self) -> None:
        """Without a file everything has its default; the port is 9876."""
        settings = NamesrvSettings.from_properties({})
        self.assertEqual(settings.server.listen_port, 9876)
        self.assertEqual(settings.options.metrics_prom_exporter_port, 5558)

    def test_oneFile(self) -> None:
        """One file feeds all parts; what none knows is kept."""
        settings = NamesrvSettings.from_properties(
            {
                "listenPort": "19876",
                "orderMessageEnable": "true",
                "connectTimeoutMillis": "50",
                "color": "blue",
                "configStorePath": "/elsewhere",
            },
            "/etc/namesrv.properties",
        )
        self.assertEqual(settings.server.listen_port, 19876)
        self.assertTrue(settings.options.order_message_enable)
        self.assertEqual(settings.client.connect_timeout_millis, 50)
        self.assertEqual(settings.unknown, {"color": "blue"})
        self.assertEqual(settings.options.config_store_path, "/etc/namesrv.properties")

    def test_badValue(self) -> None:
        """A bad value is one sentence with the file, the key and the value."""
        error = self.assertRaises(
            ConfigurationError,
            NamesrvSettings.from_properties,
            {"listenPort": "70000"},
            "/etc/n",
        )
        self.assertEqual(
            str(error),
            "/etc/n: listenPort cannot be '70000': it must lie between 0 and 65535.",
        )
