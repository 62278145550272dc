"""Hosts as a record has them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.records import hosts
from rocketbroker.records.malformed import Malformed


class HostTests(SynchronousTestCase):
    """Addresses of both families."""

    def test_v4(self) -> None:
        """4 bytes and the port."""
        host = hosts.encode("10.0.0.1", 50000)
        self.assertEqual(host.hex(), "0a0000010000c350")
        self.assertEqual(hosts.decode(host), ("10.0.0.1", 50000))
        self.assertEqual(hosts.text(host), "10.0.0.1:50000")

    def test_v6(self) -> None:
        """16 bytes and the port; a zone is left out."""
        host = hosts.encode("fe80::1%eth0", 10911)
        self.assertEqual(host.hex(), "fe80" + "00" * 13 + "01" + "00002a9f")
        self.assertEqual(hosts.text(host), "[fe80::1]:10911")

    def test_notOne(self) -> None:
        """Names, odd ports and odd lengths are refused."""
        self.assertRaises(Malformed, hosts.encode, "localhost", 1)
        self.assertRaises(Malformed, hosts.encode, "", 1)
        self.assertRaises(Malformed, hosts.encode, "1.2.3.4", 65536)
        self.assertRaises(Malformed, hosts.encode, "1.2.3.4", -1)
        for size in {*range(25)} - {8, 20}:
            self.assertRaises(Malformed, hosts.decode, bytes(size))
