"""Addresses in settings."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config.addresses import (
    LOOPBACK_NETWORKS,
    addresses,
    advertised_address,
    check_host,
    check_interface,
    is_among,
    split_address,
)
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.config.namesrv import NamesrvSettings
from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.addresses import packed_address


class HostTests(SynchronousTestCase):
    """L{check_host} and L{check_interface}."""

    def test_good(self) -> None:
        """Names and addresses of both families are taken."""
        for host in ("10.0.0.1", "broker-a.example", "a_b", "::1", "[fe80::1%eth0]"):
            check_host(host)
            check_interface(host)
        check_interface("")

    def test_bad(self) -> None:
        """A comment, a blank or nothing is no address."""
        for host in ("10.0.0.1 # mine", "10.0.0.1 ", "10.0.0.1#x", "", "a;b", "[a b]"):
            self.assertRaises(ValueError, check_host, host)
        self.assertRaises(ValueError, check_interface, "0.0.0.0 # all")

    def test_settings(self) -> None:
        """The settings of a broker refuse them, with the key."""
        for key in ("brokerIP1", "brokerIP2", "bindAddress", "metricsPromExporterHost"):
            error = self.assertRaises(
                ConfigurationError,
                BrokerSettings.from_properties,
                {key: "10.0.0.1 # public"},
                "f",
            )
            self.assertEqual(
                str(error),
                f"f: {key} cannot be '10.0.0.1 # public': it must be an address or a "
                "host name, without blanks and comments.",
            )


class AddressesTests(SynchronousTestCase):
    """L{addresses}."""

    def test_list(self) -> None:
        """Entries are separated by semicolons; empty ones do not count."""
        self.assertEqual(
            addresses("a:1; [::1]:65535;;", "f", "k"), ("a:1", "[::1]:65535")
        )
        self.assertEqual(addresses(None, "f", "k"), ())

    def test_bad(self) -> None:
        """An entry that is not host:port is named."""
        bads = ("a", "a:", ":1", "a:x", "a:0", "a:65536", "a:" + "9" * 5000)
        for bad in (*bads, "a:1 # x", "# a:1", "a b:1", "a:1,b:2"):
            error = self.assertRaises(
                ConfigurationError, addresses, f"b:1;{bad}", "f", "namesrvAddr"
            )
            self.assertTrue(
                str(error).startswith(f"f: namesrvAddr cannot contain {bad!r}: ")
            )


class AdvertisedTests(SynchronousTestCase):
    """L{advertised_address}."""

    def test_bound(self) -> None:
        """A broker that listens on one address tells that one."""
        for bind, expected in (
            ("10.1.1.1", "10.1.1.1"),
            ("127.0.0.1", "127.0.0.1"),
            ("::1", "[::1]"),
        ):
            self.assertEqual(
                advertised_address(bind, "10.0.0.1", []), (expected, "bindAddress")
            )

    def test_route(self) -> None:
        """One that listens everywhere tells the address of the route outside."""
        self.assertEqual(
            advertised_address("0.0.0.0", "10.0.0.1", ["127.0.0.1", "10.0.0.1"]),
            ("10.0.0.1", "the route to other networks begins there"),
        )

    def test_several(self) -> None:
        """Of several addresses the others are named."""
        address, reason = advertised_address(
            "", "10.0.0.1", ["127.0.0.1", "172.17.0.1", "10.0.0.1"]
        )
        self.assertEqual(address, "10.0.0.1")
        self.assertTrue(reason.endswith("; other addresses are 172.17.0.1"))

    def test_noRoute(self) -> None:
        """Without a route the loopback address is the last choice."""
        address, reason = advertised_address(
            "0.0.0.0", "127.0.0.1", ["127.0.0.1", "172.17.0.1"]
        )
        self.assertEqual(address, "172.17.0.1")
        self.assertIn("no route", reason)
        self.assertEqual(
            advertised_address("0.0.0.0", "127.0.0.1", ["127.0.0.1"]),
            ("127.0.0.1", "the machine has no other address"),
        )

    def test_settings(self) -> None:
        """Both addresses follow; what is set wins."""
        settings = BrokerSettings.from_properties({"bindAddress": "10.9.9.9"})
        self.assertEqual(settings.broker.broker_ip1, "10.9.9.9")
        self.assertEqual(settings.broker.broker_ip2, "10.9.9.9")
        self.assertEqual(settings.address_reason, "bindAddress")
        settings = BrokerSettings.from_properties({"brokerIP1": "b.example"})
        self.assertEqual(settings.broker.broker_ip1, "b.example")
        self.assertEqual(settings.address_reason, "brokerIP1")


class NetworksTests(SynchronousTestCase):
    """Lists of addresses and networks."""

    def test_listOfBothFamilies(self) -> None:
        """An address is in it by itself, or by its network; nobody is in none."""
        text = "10.0.0.5, 192.168.0.0/16;fd00::/8,"
        for host, expected in (
            ("10.0.0.5", True),
            ("10.0.0.6", False),
            ("192.168.7.1", True),
            ("::ffff:10.0.0.5", True),
            ("fd12::1", True),
            ("::1", False),
        ):
            self.assertEqual(is_among(packed_address(host), text), expected, host)
        self.assertFalse(is_among(packed_address("10.0.0.5"), ""))

    def test_ownMachineIsDefault(self) -> None:
        """In both families."""
        for host in ("127.0.0.1", "127.0.0.2", "::1"):
            self.assertTrue(is_among(packed_address(host), LOOPBACK_NETWORKS))

    def test_wrongEntryRefusesStartInOneSentence(self) -> None:
        """Of a broker as of a name server."""
        for entry in ("proxy.example", "10.0.0.0/33", "10.0.0.1/8"):
            texts = {"rocketbrokerProxyProtocolFrom": f"127.0.0.1,{entry}"}
            for settings in (BrokerSettings, NamesrvSettings):
                error = self.assertRaises(
                    ConfigurationError, settings.from_properties, texts
                )
                self.assertIn(
                    f"settings: rocketbrokerProxyProtocolFrom cannot be '127.0.0.1,"
                    f"{entry}': it must be a list of addresses and networks, as in "
                    "10.0.0.7;10.1.0.0/16;fd00::/8, and ",
                    str(error),
                )
                self.assertIn(entry, str(error).partition(" and ")[2])
                self.assertTrue(str(error).endswith("."))


class SplitTests(SynchronousTestCase):
    """Host and port of an address."""

    def test_addresses(self) -> None:
        """Host and port are split at the last colon."""
        self.assertEqual(split_address(" a:1 "), ("a", 1))
        self.assertEqual(split_address("[::1]:9876"), ("::1", 9876))
        self.assertEqual(split_address("::1:9876"), ("::1", 9876))

    def test_noAddresses(self) -> None:
        """Anything else is refused."""
        for text in ("", "a", "a:", ":1", "a:b", "a:0", "a:65536", "a:-1"):
            self.assertRaises(ConfigurationError, split_address, text)
