# -*- test-case-name: tests.remoting.test_addresses -*-
"""Addresses as RocketMQ writes them: text in tables and logs, bytes in records.

C{docs/facts/remoting.md} 9: the text is that of Java's socket addresses, so an IPv6
address is eight groups in brackets, without leading zeros and without C{::}. A host and
its port are split at the last colon (section 7).
"""

from __future__ import annotations

import socket
from struct import Struct
from typing import Final

from rocketbroker.errors import ConfigurationError

#: The port at the end of L{host_bytes}.
PORT_BYTES: Final = 4

_PORT = Struct(">I")
_GROUPS = Struct(">8H")
_MAPPED_V4 = bytes(10) + b"\xff\xff"


def packed_address(host: str) -> bytes:
    """The 4 or 16 bytes of an address; of a name, or none at all, four zeros.

    An IPv4 address mapped into IPv6 is the IPv4 address, as Java has it. An IPv6
    address may stand in brackets: so a broker registers, because clients connect to
    the text as it is.
    """
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    if ":" not in host:
        try:
            return socket.inet_pton(socket.AF_INET, host)
        except OSError:
            return bytes(4)
    try:
        packed = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    except OSError:
        return bytes(4)
    return packed[12:] if packed.startswith(_MAPPED_V4) else packed


def host_bytes(host: str, port: int) -> bytes:
    """An address as a record stores it: its bytes, then the port as 32 bits."""
    return packed_address(host) + _PORT.pack(port)


def address_text(host: str, port: int) -> str:
    """An address as Java prints it: C{1.2.3.4:5678}, C{[0:0:0:0:0:0:0:1]:5678}."""
    if ":" not in host:
        return f"{host}:{port}"
    packed = packed_address(host)
    if len(packed) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, packed)}:{port}"
    groups = ":".join(f"{group:x}" for group in _GROUPS.unpack(packed))
    return f"[{groups}]:{port}"


def split_address(address: str) -> tuple[str, int]:
    """Host and port of C{host:port}, split at the last colon; brackets are taken off.

    @raise ConfigurationError: it is no such address.
    """
    host, colon, port = address.strip().rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()):
        raise ConfigurationError(f"{address!r} is not an address like host:port.")
    if not 0 < int(port) < 65536:
        raise ConfigurationError(f"{address!r} has a port outside 1 to 65535.")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port)
