"""The settings of TLS."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.config.tls import ENFORCING, PERMISSIVE, TlsOptions
from rocketbroker.errors import ConfigurationError, NoPermission
from tests.config.keys import check_tables

FILES = {
    "tls.test.mode.enable": "false",
    "tls.server.certPath": "/a.crt",
    "tls.server.keyPath": "/a.key",
    "tls.server.keyPassword": "opensesame",
}


class TlsOptionsTests(SynchronousTestCase):
    """L{TlsOptions}."""

    def read(self, **properties: str) -> TlsOptions:
        words = {key.replace("_", "."): text for key, text in properties.items()}
        return TlsOptions.read(words, "f")

    def refusal(self, properties: dict[str, str]) -> str:
        return str(
            self.assertRaises(ConfigurationError, TlsOptions.read, properties, "f")
        )

    def test_tables(self) -> None:
        """Tables and attributes agree, and the defaults can be read back."""
        check_tables(self, TlsOptions)

    def test_defaults(self) -> None:
        """Clients may speak TLS; to others it is not spoken."""
        options = TlsOptions.read({}, "f")
        self.assertEqual(options.server_mode, PERMISSIVE)
        self.assertFalse(options.is_client)

    def test_outgoing(self) -> None:
        """It is spoken to others where all must speak it, unless a setting says so."""
        for enable, mode, is_client in (
            ("", ENFORCING, True),
            ("", PERMISSIVE, False),
            ("false", ENFORCING, False),
            ("true", PERMISSIVE, True),
        ):
            properties = {"tls.server.mode": mode, "tls.enable": enable}
            self.assertEqual(TlsOptions.read(properties, "f").is_client, is_client)

    def test_fileOfCertificates(self) -> None:
        """It wins; one that is named must be there."""
        path = Path(self.mktemp()).absolute()
        path.write_text("tls.server.certPath=/b.crt\n")
        options = TlsOptions.read({**FILES, "tls.config.file": str(path)}, "f")
        self.assertEqual(options.server.certificate_path, "/b.crt")
        self.assertEqual(options.server.key_path, "/a.key")
        path.unlink()
        self.assertIn(str(path), self.refusal({"tls.config.file": str(path)}))

    def test_whatCannotBeMeant(self) -> None:
        """It refuses the start, in a sentence."""
        for properties, words in (
            ({"tls.server.mode": "Enforced"}, "must be one of disabled, permissive"),
            ({**FILES, "tls.test.mode.enable": "true"}, "leave the certificates that"),
            ({"tls.server.certPath": "/a.crt"}, "keyPath go together"),
            ({"tls.client.keyPath": "/a.key"}, "tls.client.keyPath go together"),
            ({"tls.test.mode.enable": "false"}, "needs tls.server.certPath"),
            (
                {**FILES, "tls.server.need.client.auth": "require"},
                "needs tls.server.authClient=true",
            ),
        ):
            self.assertIn(words, self.refusal(properties))

    def test_secrets(self) -> None:
        """No list of settings has a password, nor does a text of them; no request
        changes a setting of TLS."""
        broker = BrokerSettings.from_properties(FILES)
        names = NamesrvSettings.from_properties(FILES)
        for settings in (broker, names):
            self.assertEqual(settings.tls.server.key_password, "opensesame")
            self.assertIn("/a.crt", str(settings.tls))
            for shown in (settings.as_properties(), settings.tls, settings.tls.server):
                self.assertNotIn("opensesame", str(shown))
            with self.assertRaises(NoPermission):
                settings.changed({"tls.server.mode": "disabled"})
