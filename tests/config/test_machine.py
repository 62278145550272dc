"""Defaults that depend on the machine."""

from __future__ import annotations

import ipaddress
import os

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.config import machine


class MachineTests(SynchronousTestCase):
    """What the machine says is usable, whatever it is."""

    def test_address(self) -> None:
        """The local address is an IPv4 address that can be registered."""
        address = ipaddress.IPv4Address(machine.local_address())
        self.assertFalse(address.is_unspecified)

    def test_addresses(self) -> None:
        """Each address of an interface is an IPv4 address."""
        for text in machine.ipv4_addresses():
            ipaddress.IPv4Address(text)

    def test_ipv6(self) -> None:
        """So is each IPv6 address, where there are any."""
        for text in machine.ipv6_addresses():
            ipaddress.IPv6Address(text)

    def test_name(self) -> None:
        """There is a host name."""
        self.assertNotEqual(machine.host_name(), "")

    def test_threads(self) -> None:
        """RocketMQ's pool sizes follow from the number of processors."""
        count = machine.processors()
        self.assertGreaterEqual(count, 1)
        self.assertLessEqual(machine.few_processors(), 4)
        self.assertLessEqual(machine.at_most_32(), 32)
        self.assertEqual(machine.twice_and_16(), 16 + 2 * count)
        self.assertEqual(machine.eight_more(), 8 + count)
        self.assertGreaterEqual(machine.transaction_threads(), 8 + 2 * count)

    def test_home(self) -> None:
        """Paths under the home directory are absolute."""
        self.assertTrue(os.path.isabs(machine.store_root()))
