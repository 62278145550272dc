# -*- test-case-name: tests.records.test_hosts -*-
"""An address and a port as a record has them: 4 or 16 bytes, then the port as i32."""

from __future__ import annotations

import ipaddress
import struct
from typing import Final

from rocketbroker.records.malformed import Malformed

_PORT: Final = struct.Struct(">i")

#: The length of a host of each family.
V4_SIZE: Final = 8
V6_SIZE: Final = 20


def encode(address: str, port: int) -> bytes:
    """The bytes of an address in text, IPv4 or IPv6.

    @raise Malformed: it is a name or nothing at all, or the port is not one.
    """
    try:
        packed = ipaddress.ip_address(address.partition("%")[0]).packed
    except ValueError:
        raise Malformed(f"{address!r} is not an IP address") from None
    if not 0 <= port <= 65535:
        raise Malformed(f"{port} is not a port")
    return packed + _PORT.pack(port)


def decode(host: bytes) -> tuple[str, int]:
    """The address in text, and the port.

    @raise Malformed: it has another length than the two.
    """
    if len(host) not in (V4_SIZE, V6_SIZE):
        raise Malformed(f"a host of {len(host)} bytes")
    return str(ipaddress.ip_address(host[:-4])), _PORT.unpack(host[-4:])[0]


def text(host: bytes) -> str:
    """C{1.2.3.4:5678}, or C{[::1]:5678}.

    @raise Malformed: it has another length than the two.
    """
    address, port = decode(host)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
