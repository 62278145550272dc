"""All that one file says to a broker."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.errors import ConfigurationError


class BrokerSettingsTests(SynchronousTestCase):
    """L{BrokerSettings}."""

    def refusal(self, **properties: str) -> str:
        """Why settings are refused."""
        return str(
            self.assertRaises(
                ConfigurationError, BrokerSettings.from_properties, properties, "f"
            )
        )

    def test_ports(self) -> None:
        """Without settings the ports are 10911 and one more."""
        settings = BrokerSettings.from_properties({})
        self.assertEqual(settings.server.listen_port, 10911)
        self.assertEqual(settings.store.ha_listen_port, 10912)

    def test_haPortFollows(self) -> None:
        """The HA port follows the main port, unless it is set."""
        settings = BrokerSettings.from_properties({"listenPort": "20000"})
        self.assertEqual(settings.store.ha_listen_port, 20001)
        settings = BrokerSettings.from_properties({"haListenPort": "7"})
        self.assertEqual(settings.store.ha_listen_port, 7)

    def test_haPortAtTheEdge(self) -> None:
        """Where one more is no port, any free one is taken."""
        for port in ("0", "65535"):
            settings = BrokerSettings.from_properties({"listenPort": port})
            self.assertEqual(settings.store.ha_listen_port, 0)

    def test_nameServers(self) -> None:
        """The command line's name servers win over the file's."""
        properties = {"namesrvAddr": "a:1;b:2"}
        settings = BrokerSettings.from_properties(properties)
        self.assertEqual(settings.name_servers, ("a:1", "b:2"))
        settings = BrokerSettings.from_properties(properties, None, "c:3")
        self.assertEqual(settings.name_servers, ("c:3",))
        self.assertEqual(settings.broker.namesrv_addr, "c:3")

    def test_badNameServer(self) -> None:
        """A bad address is one sentence that shows a good one."""
        self.assertEqual(
            self.refusal(namesrvAddr="a:1;b"),
            "f: namesrvAddr cannot contain 'b': each entry must be host:port, as in "
            "127.0.0.1:9876;192.168.0.1:9876.",
        )

    def test_badNameServerOfTheCommandLine(self) -> None:
        """One from the command line says so."""
        error = self.assertRaises(
            ConfigurationError, BrokerSettings.from_properties, {}, "f", "b"
        )
        self.assertTrue(str(error).startswith("-n: namesrvAddr cannot contain 'b'"))

    def test_masterIsZero(self) -> None:
        """A master's brokerId is 0, whatever the file says."""
        settings = BrokerSettings.from_properties(
            {"brokerId": "3", "brokerRole": "SYNC_MASTER"}
        )
        self.assertEqual(settings.broker.broker_id, 0)

    def test_slave(self) -> None:
        """A slave keeps its brokerId, and counts less of the memory as new messages',
        as RocketMQ's does."""
        settings = BrokerSettings.from_properties(
            {"brokerId": "3", "brokerRole": "SLAVE"}
        )
        self.assertEqual(settings.broker.broker_id, 3)
        self.assertEqual(settings.store.access_message_in_memory_max_ratio, 30)

    def test_unknown(self) -> None:
        """What no part knows is kept; the address server's keys are known."""
        settings = BrokerSettings.from_properties(
            {"color": "blue", "rmqAddressServerDomain": "x"}, "/f"
        )
        self.assertEqual(settings.unknown, {"color": "blue"})
        self.assertEqual(settings.address_server, "http://x:8080/rocketmq/nsaddr")
        self.assertEqual(settings.broker.broker_config_path, "/f")
        with_port = {"rmqAddressServerDomain": "x:1", "rmqAddressServerSubGroup": "g"}
        settings = BrokerSettings.from_properties(with_port)
        self.assertEqual(settings.address_server, "http://x:1/rocketmq/g")
