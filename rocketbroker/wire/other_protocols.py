# -*- test-case-name: tests.wire.test_other_protocols -*-
"""First bytes of other protocols, which stand where a frame has its length.

All of them, read as a length, are larger than any frame. So they are looked for only
when a length is wrong, and cost nothing otherwise.
"""

from __future__ import annotations

from typing import Final

from rocketbroker.errors import RemoteProtocolError

_HTTP: Final = (
    "an HTTP client",
    "metrics and health are on the port of metricsPromExporterPort",
)
_GRPC: Final = (
    "a gRPC client",
    "use a client of the remoting protocol",
)
_TLS: Final = (
    "a TLS client",
    "turn TLS off in the client (useTLS, tls.enable), or on here (tls.server.mode)",
)

#: The first four bytes of a connection: the client, and the advice for it.
_PREFACES: Final = {
    b"PRI ": _GRPC,
    **dict.fromkeys(
        (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"CONN", b"PATC"), _HTTP
    ),
}

#: Type and major version of a TLS record with a handshake: a ClientHello.
HANDSHAKE: Final = b"\x16\x03"


class ForeignProtocol(RemoteProtocolError):
    """The peer speaks another protocol; the words say which, and the advice."""


def wrong_length(length: int, max_length: int) -> RemoteProtocolError:
    """The error for a first word that begins no frame.

    @param length: the length that the word says, with a sign or without.
    @param max_length: the longest allowed frame, its first word included.
    """
    first = (length & 0xFFFFFFFF).to_bytes(4, "big")
    found = _TLS if first.startswith(HANDSHAKE) else _PREFACES.get(first)
    if found is not None:
        client, advice = found
        return ForeignProtocol(
            f"{client}: rocketbroker speaks the remoting protocol only; {advice}"
        )
    if length < 4:
        return RemoteProtocolError(f"a frame of length {length}")
    return RemoteProtocolError(
        f"a frame of {length + 4} bytes, the most is {max_length}"
    )
