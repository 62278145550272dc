"""In whose name brokers are asked, and how."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.auth.signatures import Credentials
from rocketbroker.client.settings import ClientSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.inner_client import client_settings, with_tools_account
from rocketbroker.proxy.settings import ProxySettings, settings_from

NAMES = ("a:1",)


class AccountTests(SynchronousTestCase):
    """Signatures."""

    def client(self, settings: ProxySettings, home: str = "") -> ClientSettings:
        """What a proxy asks with."""
        return client_settings(NAMES, with_tools_account(settings, home))

    def home(self, text: str) -> str:
        """A directory with the account of the command line."""
        home = Path(self.mktemp())
        (home / "conf").mkdir(parents=True)
        (home / "conf" / "tools.yml").write_text(text)
        return str(home)

    def test_nothingIsSignedUnlessItIsAskedFor(self) -> None:
        """As in RocketMQ: credentials alone are none."""
        credentials = '{"accessKey":"inner","secretKey":"s"}'
        home = self.home("accessKey: tool\nsecretKey: t\n")
        settings = ProxySettings(inner_client_authentication_credentials=credentials)
        self.assertIsNone(self.client(settings, home).credentials())
        self.assertIsNone(self.client(settings, home).tls_terms())

    def test_credentialsAreThoseOfTheSettings(self) -> None:
        """By the names of rmq-proxy.json; no text shows the secret."""
        settings, unused = settings_from(
            '{"enableAclRpcHookForClusterMode": true, '
            '"innerClientAuthenticationCredentials": '
            '"{\\"accessKey\\":\\"inner\\",\\"secretKey\\":\\"hidden\\"}"}'
        )
        self.assertEqual(unused, [])
        found = self.client(settings, self.home("accessKey: tool\nsecretKey: t\n"))
        self.assertEqual(found.credentials(), Credentials("inner", "hidden"))
        self.assertNotIn("hidden", repr(settings) + repr(found))

    def test_accountOfTheToolsIsTheNext(self) -> None:
        """Digits are a text."""
        settings = ProxySettings(enable_acl_rpc_hook_for_cluster_mode=True)
        home = self.home("accessKey: tool\nsecretKey: 12345678\n")
        found = self.client(settings, home).credentials()
        self.assertEqual(found, Credentials("tool", "12345678"))

    def test_noAccountAtAllIsOneSentence(self) -> None:
        """Which names both places."""
        settings = ProxySettings(enable_acl_rpc_hook_for_cluster_mode=True)
        for home in ("", self.mktemp(), self.home("accessKey: tool\n")):
            problem = self.assertRaises(
                ConfigurationError, with_tools_account, settings, home
            )
            path = str(Path(home or "ROCKETMQ_HOME") / "conf" / "tools.yml")
            self.assertEqual(
                str(problem),
                "enableAclRpcHookForClusterMode needs "
                "innerClientAuthenticationCredentials, or accessKey and secretKey in "
                f"{path}.",
            )


class TlsTests(SynchronousTestCase):
    """Encryption."""

    def client(self, **settings: object) -> ClientSettings:
        """What a proxy asks with; nothing stands in a file of the machine."""
        path = Path(self.mktemp())
        path.write_text("")
        given = {"tls_enable": True, "tls_config_file": str(path), **settings}
        return client_settings(NAMES, ProxySettings(**given))  # type: ignore[arg-type]

    def test_anyCertificateIsTakenUnlessOneIsChecked(self) -> None:
        """As RocketMQ's clients do."""
        terms = self.client().tls_terms()
        assert terms is not None
        self.assertFalse(terms.verify)
        terms = self.client(tls_client_test_mode=False).tls_terms()
        assert terms is not None
        self.assertFalse(terms.verify)

    def test_filesAreThoseOfTheSettings(self) -> None:
        """One that is not in order is one sentence."""
        problem = self.assertRaises(
            ConfigurationError,
            self.client,
            tls_client_test_mode=False,
            tls_client_auth_server=True,
            tls_client_trust_cert_path="/nowhere/ca.pem",
        )
        self.assertIn("/nowhere/ca.pem cannot be read", str(problem))
        problem = self.assertRaises(
            ConfigurationError,
            self.client,
            tls_client_test_mode=False,
            tls_client_cert_path="/nowhere/c.pem",
        )
        self.assertIn("tls.client.certPath and tls.client.keyPath go", str(problem))

    def test_fileOfCertificatesWins(self) -> None:
        """It is RocketMQ's tls.properties; keys of its server are not ours."""
        path = Path(self.mktemp())
        path.write_text(
            "tls.test.mode.enable=false\ntls.client.authServer=true\n"
            "tls.client.trustCertPath=/nowhere/other.pem\n"
            "tls.server.certPath=/nowhere/s.pem\ntls.server.keyPath=/nowhere/s.key\n"
        )
        problem = self.assertRaises(
            ConfigurationError, self.client, tls_config_file=str(path)
        )
        self.assertIn("/nowhere/other.pem cannot be read", str(problem))
