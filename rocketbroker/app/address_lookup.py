# -*- test-case-name: tests.app.test_address_lookup -*-
"""Looks addresses up: in DNS, and on an address server."""

from __future__ import annotations

import socket
import urllib.request
from typing import Final, final
from urllib.error import HTTPError

from rocketbroker.config.machine import ipv4_addresses, ipv6_addresses

#: An address server that is slower is asked again later.
FETCH_SECONDS: Final = 5.0


@final
class AddressLookup:
    """See L{rocketbroker.broker.registration.name_servers.Lookup}."""

    def resolve(self, host: str) -> list[str]:
        """I{Blocking.} The addresses of a host; OSError if it is not known."""
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return sorted({str(address[0]) for *_, address in found})

    def own(self) -> list[str]:
        """The addresses of this machine."""
        return [*ipv4_addresses(), *ipv6_addresses()]

    def fetch(self, url: str, max_bytes: int) -> str:
        """I{Blocking.} The text of a page; OSError if there is none."""
        try:
            with urllib.request.urlopen(url, timeout=FETCH_SECONDS) as page:
                text: bytes = page.read(max_bytes)
        except HTTPError as error:
            error.close()
            raise
        return text.decode("latin-1")
