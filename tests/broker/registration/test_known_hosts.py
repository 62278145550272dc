"""Whose connections come from which host."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from rocketbroker.broker.registration.known_hosts import KnownHosts
from rocketbroker.remoting.addresses import packed_address
from rocketbroker.testing.threads import at_once
from tests.broker.rig import Known


class KnownHostsTests(SynchronousTestCase):
    """L{KnownHosts}."""

    def setUp(self) -> None:
        """A machine with two addresses."""
        self.lookup = Known()
        self.lookup.addresses = ["10.0.0.1", "fd00::1"]
        self.hosts = KnownHosts(self.lookup, at_once)

    def look_up(self, *addresses: str) -> None:
        """Look hosts up."""
        self.successResultOf(self.hosts.look_up(addresses))

    def is_of(self, host: str, *addresses: str) -> bool:
        """Whether a peer is on the host of one of them."""
        return self.hosts.is_of(packed_address(host), addresses)

    def test_addressesOfBothFamilies(self) -> None:
        """An address is the same in all spellings, and with any port."""
        for host, address in (
            ("10.0.0.7", "10.0.0.7:10911"),
            ("::ffff:10.0.0.7", "10.0.0.7:10911"),
            ("fd00::7", "[fd00:0:0:0:0:0:0:7]:10911"),
            ("fd00::7", "[fd00::7]:10911"),
        ):
            self.assertTrue(self.is_of(host, "10.9.9.9:1", address), address)
        self.assertFalse(self.is_of("10.0.0.8", "10.0.0.7:10911"))
        self.assertFalse(self.is_of("10.0.0.8"))

    def test_names(self) -> None:
        """A name is all addresses that it had at the last look-up that succeeded; a
        name that was not looked up is nobody."""
        self.assertFalse(self.is_of("10.0.0.7", "a:1"))
        self.lookup.hosts["a"] = ["10.0.0.7", "fd00::7"]
        self.look_up("a:1", "b:1")
        self.assertTrue(self.is_of("10.0.0.7", "a:2"))
        self.assertTrue(self.is_of("fd00::7", "a:2"))
        self.assertFalse(self.is_of("10.0.0.7", "b:1"))
        del self.lookup.hosts["a"]
        self.look_up("a:1")
        self.assertTrue(self.is_of("10.0.0.7", "a:2"))
        self.lookup.hosts["a"] = ["10.0.0.8"]
        self.look_up("a:1")
        self.assertFalse(self.is_of("10.0.0.7", "a:2"))

    def test_ownAddresses(self) -> None:
        """All addresses of this machine are one host, loopback included."""
        self.assertFalse(self.is_of("127.0.0.1", "10.0.0.1:1"))
        self.look_up()
        own = "127.0.0.1", "127.8.8.8", "::1", "10.0.0.1", "fd00::1"
        for host in own:
            self.assertTrue(self.is_of(host, "10.0.0.1:10911"), host)
            self.assertTrue(self.is_of(host, "127.0.0.1:10911"), host)
            self.assertFalse(self.is_of(host, "10.0.0.2:10911"), host)
        self.assertFalse(self.is_of("10.0.0.2", *(f"{each}:1" for each in own[:2])))
