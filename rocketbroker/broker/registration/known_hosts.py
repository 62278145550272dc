# -*- test-case-name: tests.broker.registration.test_known_hosts -*-
"""Known hosts: addresses of settings and tables, compared with the peers of
connections.

A peer shows the address of one interface, and a port that says nothing. So only hosts
are compared:

  - A name stands for all addresses that it had when it was looked up last; a look-up
    that fails leaves what was known.
  - All addresses of this machine, loopback included, are one host: a broker that is
    registered with the address of the network may connect over loopback.
  - A host that is registered with one address and connects from another is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import final

from twisted.internet.defer import Deferred

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import Lookup
from rocketbroker.remoting.addresses import packed_address

_LOOPBACK_V6 = bytes(15) + b"\1"


@final
class KnownHosts:
    """The addresses of names, as they were looked up last, and of this machine."""

    def __init__(self, lookup: Lookup, in_thread: InThread) -> None:
        self._lookup = lookup
        self._in_thread = in_thread
        self._named: Mapping[str, frozenset[bytes]] = {}
        self._own: frozenset[bytes] = frozenset()

    def look_up(self, addresses: Iterable[str]) -> Deferred[None]:
        """Look up the hosts of C{addresses}, and this machine's.

        @param addresses: each with a port; what was known of other hosts is forgotten.
        @return: fires when it is done.
        """
        names = {name for each in addresses if packed(name := host_of(each)) is None}
        done = self._in_thread(partial(found, self._lookup, names))
        return done.addCallback(self._found, names)

    def _found(
        self,
        result: tuple[dict[str, frozenset[bytes]], frozenset[bytes]],
        names: set[str],
    ) -> None:
        named, self._own = result
        before = self._named
        self._named = {
            name: named.get(name, before.get(name, frozenset())) for name in names
        }

    def is_own(self, host: bytes) -> bool:
        """Whether it is an address of this machine."""
        is_loopback = host == _LOOPBACK_V6 or (len(host) == 4 and host[0] == 127)
        return is_loopback or host in self._own

    def is_of(self, host: bytes, addresses: Iterable[str]) -> bool:
        """Whether a peer is on the host of one of some addresses.

        @param host: the peer's address, 4 or 16 bytes.
        @param addresses: each with a port.
        """
        is_own = self.is_own(host)
        for each in addresses:
            name = host_of(each)
            address = packed(name)
            hosts = self._named.get(name, ()) if address is None else (address,)
            if host in hosts or (is_own and any(map(self.is_own, hosts))):
                return True
        return False


def host_of(address: str) -> str:
    """The host in an address with a port."""
    return address.strip().rpartition(":")[0].strip("[]")


def packed(host: str) -> bytes | None:
    """The 4 or 16 bytes of an address; None for a name."""
    found = packed_address(host)
    return found if any(found) else None


def found(
    lookup: Lookup, names: Iterable[str]
) -> tuple[dict[str, frozenset[bytes]], frozenset[bytes]]:
    """I{Blocking.} The addresses of names that can be looked up, and of the machine."""
    named = {}
    for name in names:
        try:
            named[name] = frozenset(map(packed_address, lookup.resolve(name)))
        except (OSError, UnicodeError):  # the latter of a name that cannot be one
            continue
    return named, frozenset(map(packed_address, lookup.own()))
