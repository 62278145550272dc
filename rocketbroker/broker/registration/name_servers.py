# -*- test-case-name: tests.broker.registration.test_name_servers -*-
"""The addresses of a broker's name servers, from the settings, DNS or an address
server.

  - C{namesrvAddr} lists them. Names in it are resolved anew at each connection.
  - With C{fetchNameSrvAddrByDnsLookup} each address of each name is a name server.
  - Without C{namesrvAddr}, with C{fetchNamesrvAddrByAddressServer}: a page that an HTTP
    server has (C{docs/facts/broker.md} 1.2 and 3.2).

The last two are asked again and again. Where they do not answer, or with nothing, the
broker keeps the name servers that it has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, final

from twisted.internet.defer import Deferred, succeed
from twisted.logger import Logger
from twisted.python.failure import Failure

from rocketbroker.broker.background_work import InThread
from rocketbroker.broker.context import Lookup
from rocketbroker.broker.registration.known_hosts import KnownHosts
from rocketbroker.broker.services import Service, Services
from rocketbroker.config.addresses import addresses
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.remoting.addresses import split_address
from rocketbroker.remoting.interfaces import IConnection

NAME_SERVERS: Final = Service(
    "look-up of name servers",
    "DNS or an address server may know others than before",
    lambda s: (
        (
            s.broker.update_name_server_addr_period
            if s.name_servers
            else s.broker.fetch_namesrv_addr_interval
        )
        / 1000
    ),
)

#: So much of an address server's page is read: more than a thousand addresses.
MAX_PAGE_BYTES: Final = 64 * 1024

#: What stands behind the address in a connection's C{peer_host}.
PORT_BYTES: Final = 4


@final
class NameServers:
    """The name servers of one broker.

    @ivar current: their addresses now; none: nobody is told of this broker.
    @ivar hosts: the addresses of their names, as of others' names.
    """

    _log = Logger()

    def __init__(
        self,
        settings: BrokerSettings,
        lookup: Lookup,
        in_thread: InThread,
        services: Services,
    ) -> None:
        broker = settings.broker
        self.current = settings.name_servers
        self.hosts = KnownHosts(lookup, in_thread)
        self._find: Callable[[], tuple[str, ...]] | None = None
        if self.current and broker.fetch_name_srv_addr_by_dns_lookup:
            self._find = partial(from_dns, lookup, self.current)
        elif not self.current and broker.fetch_namesrv_addr_by_address_server:
            self._find = partial(from_page, lookup, settings.address_server)
        self._in_thread = in_thread
        self._services = services
        self._problem = ""
        self._changed: list[Callable[[], object]] = []

    def is_needed(self) -> bool:
        """Whether there are name servers, or will be."""
        return bool(self.current) or self._find is not None

    def is_one(self, connection: IConnection) -> bool:
        """Whether a connection comes from the host of a name server."""
        return self.hosts.is_of(connection.peer_host[:-PORT_BYTES], self.current)

    def watch(self, changed: Callable[[], object]) -> None:
        """Call C{changed} after each change."""
        self._changed.append(changed)

    def start(self) -> Deferred[None]:
        """Look for them now and regularly; fires when the first look is over."""
        if self._find is None:
            return succeed(None)
        self._services.begin(NAME_SERVERS, self._look)
        return self._look()

    def _look(self) -> Deferred[None]:
        assert self._find is not None
        return self._in_thread(self._find).addCallbacks(self._found, self._not_found)

    def _found(self, found: tuple[str, ...]) -> None:
        self._problem = ""
        if found and found != self.current:
            self.current = found
            self._log.info("The name servers are {servers}.", servers=";".join(found))
            for changed in self._changed:
                changed()

    def _not_found(self, failure: Failure) -> None:
        """Log a problem once; what there is stays."""
        problem = failure.getErrorMessage()
        if problem != self._problem:
            self._problem = problem
            self._log.warn(
                "Name servers cannot be looked up, {current} stay: {problem}",
                current=";".join(self.current) or "none",
                problem=problem,
            )


def from_dns(lookup: Lookup, names: tuple[str, ...]) -> tuple[str, ...]:
    """I{Blocking.} All addresses of all names, sorted, so that equal answers are equal.

    @param names: each with a port.
    @raise OSError: one of them is not known.
    """
    found: dict[str, None] = {}
    for name in names:
        host, port = split_address(name)
        for address in sorted(lookup.resolve(host)):
            shown = f"[{address}]" if ":" in address else address
            found[f"{shown}:{port}"] = None
    return tuple(found)


def from_page(lookup: Lookup, url: str) -> tuple[str, ...]:
    """I{Blocking.} The addresses of an address server's page.

    @raise OSError: there is no such page.
    @raise ConfigurationError: it is something else; one sentence.
    """
    return addresses(lookup.fetch(url, MAX_PAGE_BYTES).strip(), url, "the page")
