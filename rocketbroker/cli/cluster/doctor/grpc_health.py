# -*- test-case-name: tests.cli.cluster.doctor.test_grpc_health -*-
"""A health check of gRPC by hand: whether a port serves, asked without grpcio.

One call of C{grpc.health.v1.Health/Check} in HTTP/2 (RFC 9113, 3.4 and 4.1; RFC 7541,
6.2.2) is some 150 bytes, which are always the same. Of the answer its frames are read,
and none of its headers:

  - DATA has the message, behind five bytes of gRPC;
  - HEADERS that end the stream, without DATA, say that there is no such service.

Where plain text is closed, the first record of a handshake tells whether TLS is spoken.
"""

from __future__ import annotations

import contextlib
import enum
import ssl
from typing import Final, final

from rocketbroker.blocking.machine import Machine, Stream
from rocketbroker.errors import ConnectionLost

#: Types of frames, and the flag of the last one of a stream.
DATA: Final = 0
HEADERS: Final = 1
RST_STREAM: Final = 3
SETTINGS: Final = 4
GOAWAY: Final = 7
END_STREAM: Final = 1
END_HEADERS: Final = 4

#: The head of a frame: length, type, flags, stream.
HEAD_BYTES: Final = 9

#: The longest frame that a peer may send us, as we allow no more.
MAX_FRAME: Final = 1 << 14

#: Before a message of gRPC: whether it is compressed, and its length.
PREFIX_BYTES: Final = 5

#: C{HealthCheckResponse.status} with SERVING.
SERVING: Final = b"\x08\x01"

#: Who does not answer the first packet of a connection has one more in this time.
CONNECT_SECONDS: Final = 2.0

#: The first byte of TLS, as in L{rocketbroker.proxy.front}.
HANDSHAKE_RECORD: Final = 0x16


@final
class Health(enum.Enum):
    """What a port has said."""

    SERVES = enum.auto()
    SERVES_NOT = enum.auto()
    NOT_TOLD = enum.auto()
    TLS_ONLY = enum.auto()
    CLOSED = enum.auto()
    SILENT = enum.auto()
    OTHER = enum.auto()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """A frame of HTTP/2."""
    head = len(payload).to_bytes(3, "big") + bytes((kind, flags))
    return head + stream.to_bytes(4, "big") + payload


def field(index: int, value: bytes, name: bytes = b"") -> bytes:
    """A header without indexing.

    @param index: that of the name in the static table, below 31; 0: it is not there.
    """
    known = bytes((index,)) if index < 15 else bytes((15, index - 15))
    named = bytes((len(name),)) + name if not index else b""
    return known + named + bytes((len(value),)) + value


#: The call; 0x83 and 0x86 are the headers of POST and of http.
REQUEST: Final = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    + frame(SETTINGS, 0, 0)
    + frame(
        HEADERS,
        END_HEADERS,
        1,
        b"\x83\x86"
        + field(4, b"/grpc.health.v1.Health/Check")
        + field(1, b"proxy")
        + field(31, b"application/grpc")
        + field(0, b"trailers", b"te"),
    )
    + frame(DATA, END_STREAM, 1, bytes(PREFIX_BYTES))
)


@final
class Answer:
    """What comes back on a call.

    @ivar health: what that says; C{None}: nothing yet.
    """

    def __init__(self) -> None:
        self.health: Health | None = None
        self._data = b""
        self._message = b""
        self._is_http2 = False

    def take(self, data: bytes) -> None:
        """Read on; empty: the peer has ended."""
        self._data += data
        while self.health is None and len(self._data) >= HEAD_BYTES:
            size = int.from_bytes(self._data[:3], "big")
            kind, flags = self._data[3:5]
            if size > MAX_FRAME or not (self._is_http2 or kind == SETTINGS):
                self.health = Health.OTHER
                return
            self._is_http2 = True
            end = HEAD_BYTES + size
            if len(self._data) < end:
                break
            payload, self._data = self._data[HEAD_BYTES:end], self._data[end:]
            self._read(kind, flags, payload)
        if not data and self.health is None:
            is_empty = not self._is_http2 and not self._data
            self.health = Health.CLOSED if is_empty else Health.OTHER

    def _read(self, kind: int, flags: int, payload: bytes) -> None:
        if kind == DATA:
            self._message += payload
            size = int.from_bytes(self._message[1:PREFIX_BYTES], "big")
            if len(self._message) >= max(PREFIX_BYTES, PREFIX_BYTES + size):
                is_serving = self._message[PREFIX_BYTES:] == SERVING
                self.health = Health.SERVES if is_serving else Health.SERVES_NOT
        elif kind == GOAWAY:
            self.health = Health.SERVES_NOT
        elif kind == RST_STREAM or (kind == HEADERS and flags & END_STREAM):
            self.health = Health.NOT_TOLD


@final
class Handshake:
    """What comes back on the first record of a handshake.

    @ivar health: as in L{Answer}.
    """

    def __init__(self) -> None:
        self.health: Health | None = None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        sent = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
        self.hello = sent.read()

    def take(self, data: bytes) -> None:
        """See L{Answer.take}."""
        is_tls = data[:1] == bytes((HANDSHAKE_RECORD,))
        self.health = Health.TLS_ONLY if is_tls else Health.CLOSED


def health_of(machine: Machine, host: str, port: int, seconds: float) -> Health:
    """Whether a port serves gRPC.

    @param seconds: how long that may take.
    @raise ConnectionLost: nobody listens there.
    """
    until = machine.monotonic() + seconds

    def asked(answer: Answer | Handshake, request: bytes) -> Health:
        stream = machine.connect(host, port, min(CONNECT_SECONDS, seconds))
        try:
            return exchanged(machine, stream, request, answer, until)
        finally:
            stream.close()

    found = asked(Answer(), REQUEST)
    if found == Health.CLOSED:
        handshake = Handshake()
        found = asked(handshake, handshake.hello)
    return found


def exchanged(
    machine: Machine,
    stream: Stream,
    request: bytes,
    answer: Answer | Handshake,
    until: float,
) -> Health:
    """Send a request, and read until the answer is known.

    @param until: when it has to be.
    """
    left = memoryview(request)
    while answer.health is None:
        seconds = until - machine.monotonic()
        if seconds <= 0:
            return Health.SILENT
        try:
            ready = stream.wait(len(left) > 0, seconds)
            if ready.writable and left:
                left = left[stream.send(left) :]
            data = stream.receive() if ready.readable else None
        except ConnectionLost:
            data = b""
        if data is not None:
            answer.take(data)
    return answer.health
