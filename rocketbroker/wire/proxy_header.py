# -*- test-case-name: tests.wire.test_proxy_header -*-
"""HAProxy's PROXY protocol: the client's address, before the first frame.

A proxy puts it before a connection that it hands on, as a line (version 1) or as bytes
(version 2). The format is in C{proxy-protocol.txt} of HAProxy; what RocketMQ takes of
it, in C{docs/facts/remoting.md} 11. The first four bytes of either version, read as the
length of a frame, are larger than any frame.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from struct import Struct
from typing import Final, NamedTuple

from rocketbroker.errors import RemoteProtocolError

_LINE: Final = b"PROXY "
_SIGNATURE: Final = b"\r\n\r\n\0\r\nQUIT\n"
_MAX_LINE: Final = 107  # with its line break, by the specification

_HEAD: Final = Struct(
    ">12s"  # signature
    "B"  # version 2 (4 bits), command (4 bits): 0 the proxy's own, 1 handed on
    "B"  # family (4 bits): 1 IPv4, 2 IPv6; transport (4 bits)
    "H"  # length of the rest: addresses, ports, further fields
)
_HANDED_ON: Final = 0x21
_OWN: Final = 0x20

#: By family: the length of an address, and its type.
_FAMILIES: Final = {1: (4, IPv4Address), 2: (16, IPv6Address)}
_LINE_FAMILIES: Final = {b"TCP4": IPv4Address, b"TCP6": IPv6Address}


class ProxyHeader(NamedTuple):
    """What stands before the first frame.

    @ivar size: in bytes; 0 if the connection begins with a frame.
    @ivar host: the client's address; empty if it is not told.
    @ivar port: the client's port.
    """

    size: int
    host: str = ""
    port: int = 0


def proxy_header(data: bytes) -> ProxyHeader | None:
    """Read the header at the beginning of a connection.

    @return: C{None} while more bytes are needed.
    @raise RemoteProtocolError: it begins as such a header and is none.
    """
    if data.startswith(_LINE):
        return _line(data)
    if data.startswith(_SIGNATURE):
        return _binary(data)
    if _LINE.startswith(data) or _SIGNATURE.startswith(data):
        return None
    return ProxyHeader(0)


def _line(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, _MAX_LINE)
    if end < 0:
        if len(data) < _MAX_LINE:
            return None
        raise _wrong("its line does not end")
    words = data[:end].split(b" ")
    if words[1] == b"UNKNOWN":
        return ProxyHeader(end + 2)
    family = _LINE_FAMILIES.get(words[1])
    if family is None or len(words) != 6:
        raise _wrong(f"{data[:end]!r}")
    try:
        host = str(family(words[2].decode("ascii")))
        port = int(words[4])
    except ValueError:
        raise _wrong(f"{data[:end]!r}") from None
    if not 0 <= port < 65536:
        raise _wrong(f"{data[:end]!r}")
    return ProxyHeader(end + 2, host, port)


def _binary(data: bytes) -> ProxyHeader | None:
    if len(data) < _HEAD.size:
        return None
    _, command, family, length = _HEAD.unpack_from(data)
    if command not in (_HANDED_ON, _OWN):
        raise _wrong(f"version and command {command:#x}")
    end = _HEAD.size + length
    if len(data) < end:
        return None
    if command == _OWN or family >> 4 not in _FAMILIES:
        return ProxyHeader(end)
    width, kind = _FAMILIES[family >> 4]
    if length < 2 * width + 4:
        raise _wrong(f"{length} bytes for two addresses and ports")
    source = _HEAD.size
    ports = source + 2 * width
    host = str(kind(data[source : source + width]))
    return ProxyHeader(end, host, int.from_bytes(data[ports : ports + 2], "big"))


def _wrong(words: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"a wrong header of the PROXY protocol: {words}")
