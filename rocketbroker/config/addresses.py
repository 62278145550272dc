# -*- test-case-name: tests.config.test_addresses -*-
"""Addresses in settings: those of name servers, the one that clients are told, and
those of trusted hosts and proxies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias

from rocketbroker.config.keyed import PORT
from rocketbroker.errors import ConfigurationError

#: Addresses that have their first bits in common; one address has all.
Network: TypeAlias = IPv4Network | IPv6Network

#: An address or a name. A comment behind the value is part of it in a properties file.
_HOST: Final = re.compile(r"[A-Za-z0-9_.:%-]+|\[[0-9A-Fa-f:.]+(%[A-Za-z0-9_.-]+)?\]")

#: Where a server listens that listens everywhere.
_EVERYWHERE: Final = ("", "0.0.0.0", "::", "[::]", "*")

#: Names of the machine for itself.
_LOOPBACK: Final = re.compile(r"127\.[0-9.]+|\[?::1\]?|localhost")

#: What stands before an address that somebody gives as a URL.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")

#: The machine itself, as a list of networks.
LOOPBACK_NETWORKS: Final = "127.0.0.0/8,::1"


def check_host(text: str) -> None:
    """Check a host name or an address.

    @raise ValueError: what it must be instead.
    """
    if not _HOST.fullmatch(text):
        raise ValueError(
            "it must be an address or a host name, without blanks and comments"
        )


def check_interface(text: str) -> None:
    """Check where a port listens: a host, or nothing for everywhere.

    @raise ValueError: what it must be instead.
    """
    if text:
        check_host(text)


@lru_cache(maxsize=16)
def networks(text: str) -> tuple[Network, ...]:
    """The entries of a list of addresses and networks: C{10.0.0.7;10.1.0.0/16;::1},
    with semicolons or commas.

    @raise ValueError: what it must be instead.
    """
    entries = (entry.strip().strip("[]") for entry in re.split("[,;]", text))
    try:
        return tuple(ip_network(entry) for entry in entries if entry)
    except ValueError as error:
        raise ValueError(
            "it must be a list of addresses and networks, as in "
            f"10.0.0.7;10.1.0.0/16;fd00::/8, and {error}"
        ) from error


def is_among(address: bytes, text: str) -> bool:
    """Whether an address is in a list that L{networks} takes.

    @param address: its 4 or 16 bytes.
    """
    found = ip_address(address)
    return any(found in network for network in networks(text))


def is_loopback(host: str) -> bool:
    """Whether a host is this machine's name or address for itself."""
    return _LOOPBACK.fullmatch(host) is not None


def addresses(text: str | None, source: str, key: str) -> tuple[str, ...]:
    """The entries of an address list: C{host:port;host:port}.

    @raise ConfigurationError: an entry is something else; one sentence.
    """
    found = []
    for entry in (text or "").split(";"):
        address = entry.strip()
        if not address:
            continue
        host, _, port = address.rpartition(":")
        well_formed = _HOST.fullmatch(host) and port.isascii() and port.isdigit()
        if not well_formed or not 0 < int(port[:9]) <= PORT[1]:
            raise ConfigurationError(
                f"{source}: {key} cannot contain {address!r}: each entry must be "
                f"host:port, as in 127.0.0.1:9876;192.168.0.1:9876."
            )
        found.append(address)
    return tuple(found)


def split_address(address: str) -> tuple[str, int]:
    """Host and port of C{host:port}, split at the last colon.

    @raise ConfigurationError: it is not of that form.
    """
    host, colon, port = address.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigurationError(f"{address!r} is not an address of the form host:port")
    return host.removeprefix("[").removesuffix("]"), int(port)


def name_server_list(given: str | Iterable[str]) -> tuple[str, ...]:
    """The addresses of name servers, as users give them.

    @param given: C{host:port}, several with semicolons or commas between, or a list of
        them; C{http://} or another scheme before one is passed over, as Java's clients
        do.
    @raise ConfigurationError: there is none, or one is not an address.
    """
    if not isinstance(given, str | Iterable) or isinstance(given, bytes):
        raise ConfigurationError(f"{given!r} is no address; give 'host:port'")
    found: list[str] = []
    for part in [given] if isinstance(given, str) else given:
        if not isinstance(part, str):
            raise ConfigurationError(f"{part!r} is no address; give 'host:port'")
        for text in part.replace(",", ";").split(";"):
            address = _SCHEME.sub("", text.strip(), count=1).rstrip("/")
            if address:
                host, _ = split_address(address)
                try:
                    check_host(host)
                except ValueError:
                    raise ConfigurationError(
                        f"{address!r} is not an address of the form host:port"
                    ) from None
                found.append(address)
    if not found:
        raise ConfigurationError("no name server is given; give 'host:port'")
    return tuple(dict.fromkeys(found))


def advertised_address(
    bind_address: str, route: str, others: Sequence[str]
) -> tuple[str, str]:
    """The address that clients are told where C{brokerIP1} is not set.

    @param bind_address: where the broker listens.
    @param route: the address from which the machine speaks to other networks.
    @param others: all addresses of the machine.
    @return: the address, and why this one; the reason goes into a log line.
    """
    if bind_address not in _EVERYWHERE:
        is_bare = ":" in bind_address and not bind_address.startswith("[")
        return f"[{bind_address}]" if is_bare else bind_address, "bindAddress"
    rest = [each for each in others if each != route and not is_loopback(each)]
    if is_loopback(route):
        if not rest:
            return route, "the machine has no other address"
        route, *rest = rest
        reason = "the first one, as there is no route to other networks"
    else:
        reason = "the route to other networks begins there"
    if rest:
        reason += f"; other addresses are {', '.join(rest)}"
    return route, reason
