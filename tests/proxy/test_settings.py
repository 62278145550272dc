"""Settings of a proxy."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.settings import ProxySettings, settings_from, settings_with


class SettingsTests(SynchronousTestCase):
    """rmq-proxy.json and C{--set}."""

    def test_fileSetsWhatItNames(self) -> None:
        """By RocketMQ's names; what is not used here is told."""
        settings, unused = settings_from(
            '{"rocketMQClusterName": "c", "grpcServerPort": 1, "useDelayLevel": true}'
        )
        self.assertEqual(
            settings, ProxySettings(rocket_mq_cluster_name="c", grpc_server_port=1)
        )
        self.assertEqual(unused, ["useDelayLevel"])

    def test_otherFilesAreOneSentence(self) -> None:
        """No JSON, no object, a value of another kind."""
        for text, words in (
            ("{", "rmq-proxy.json is no JSON: "),
            ("[]", "rmq-proxy.json is no JSON object"),
            (
                '{"grpcServerPort": "1"}',
                "grpcServerPort is a int in rmq-proxy.json, not '1'",
            ),
            (
                '{"enableProxyAutoRenew": 1}',
                "enableProxyAutoRenew is a bool in rmq-proxy.json, not 1",
            ),
        ):
            problem = self.assertRaises(ConfigurationError, settings_from, text)
            self.assertTrue(str(problem).startswith(words), str(problem))

    def test_modeIsOneOfThree(self) -> None:
        """Under the name of RocketMQ's property."""
        settings, unused = settings_from('{"tls.server.mode": "enforcing"}')
        self.assertEqual((settings.tls_server_mode, unused), ("enforcing", []))
        texts = {"tls.server.mode": "on"}
        problem = self.assertRaises(
            ConfigurationError, settings_with, ProxySettings(), texts
        )
        self.assertEqual(
            str(problem),
            "tls.server.mode is one of disabled, permissive, enforcing, not 'on'",
        )

    def test_requestsMayBeTwiceAsLargeAsBodies(self) -> None:
        """Unless that is set, and at least 8 MiB."""
        for settings, size in (
            (ProxySettings(), 8 << 20),
            (ProxySettings(max_message_size=0), 8 << 20),
            (ProxySettings(max_message_size=16 << 20), 32 << 20),
            (ProxySettings(grpc_max_inbound_message_size=1000), 1000),
        ):
            self.assertEqual(settings.inbound_bytes, size)

    def test_commandLineWins(self) -> None:
        """Each kind of value; what is none is refused."""
        texts = {
            "grpcServerPort": "0",
            "enableProxyAutoRenew": "false",
            "namesrvAddr": "a:1",
        }
        settings = settings_with(ProxySettings(), texts)
        self.assertEqual(
            settings,
            ProxySettings(
                grpc_server_port=0, enable_proxy_auto_renew=False, namesrv_addr="a:1"
            ),
        )
        for key, text in (
            ("grpcServerPort", "x"),
            ("enableProxyAutoRenew", "1"),
            ("nothing", "1"),
        ):
            self.assertRaises(
                ConfigurationError, settings_with, ProxySettings(), {key: text}
            )
