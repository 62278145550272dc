"""Addresses as text and as bytes."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.errors import ConfigurationError
from rocketbroker.remoting.addresses import address_text, host_bytes, split_address


class AddressTests(SynchronousTestCase):
    """Of the other side of a connection."""

    def test_text(self) -> None:
        """IPv4 as it is, IPv6 as Java prints it."""
        self.assertEqual(address_text("1.2.3.4", 5678), "1.2.3.4:5678")
        self.assertEqual(address_text("::1", 5678), "[0:0:0:0:0:0:0:1]:5678")
        self.assertEqual(address_text("fe80::a0b%eth0", 1), "[fe80:0:0:0:0:0:0:a0b]:1")

    def test_mapped(self) -> None:
        """An IPv4 address in IPv6's clothes is the IPv4 address."""
        self.assertEqual(address_text("::ffff:1.2.3.4", 5), "1.2.3.4:5")
        self.assertEqual(host_bytes("::ffff:1.2.3.4", 5), host_bytes("1.2.3.4", 5))

    def test_bytes(self) -> None:
        """Four or sixteen bytes, then the port as 32 bits; a name is four zeros."""
        self.assertEqual(host_bytes("1.2.3.4", 258).hex(), "0102030400000102")
        self.assertEqual(host_bytes("::1", 1).hex(), "00" * 15 + "01" + "00000001")
        self.assertEqual(host_bytes("[::1]", 1), host_bytes("::1", 1))
        self.assertEqual(host_bytes("name", 1).hex(), "0000000000000001")
        self.assertEqual(host_bytes("no:address", 1).hex(), "0000000000000001")

    def test_split(self) -> None:
        """At the last colon; brackets are taken off."""
        self.assertEqual(split_address(" a.b:9876 "), ("a.b", 9876))
        self.assertEqual(split_address("::1:9876"), ("::1", 9876))
        self.assertEqual(split_address("[::1]:9876"), ("::1", 9876))

    def test_notSplit(self) -> None:
        """What is not host:port is refused with one sentence."""
        for wrong in ("", "host", "host:", ":1", "host:x", "host:0", "host:65536"):
            error = self.assertRaises(ConfigurationError, split_address, wrong)
            self.assertTrue(str(error).endswith("."), error)
