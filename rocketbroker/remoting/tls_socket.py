# -*- test-case-name: tests.remoting.test_tls_port -*-
"""The socket of a connection of the hub that speaks TLS.

It does for the hub's connection what a socket of the system does, so that limits,
budgets of memory, fairness and workers hold for TLS as for plain connections, which pay
nothing for it. What is different:

  - A reading decrypts all that has come: nothing waits in here for which the epoll
    knows no event.
  - A record counts as sent when the kernel has taken the last byte of it; see
    L{TlsLayer.send_through}.
  - What the protocol itself has to say goes out with each reading. If the kernel does
    not take it during the handshake, the peer reads nothing, and the connection ends;
    later it goes out with the next reading or sending.
"""

from __future__ import annotations

import ssl
from contextlib import suppress
from socket import socket
from typing import Final, Protocol, final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.other_protocols import HANDSHAKE, ForeignProtocol
from rocketbroker.wire.tls_layer import TlsError, TlsLayer

#: The most that a peer sends before its handshake is over: certificates of a chain and
#: their keys are a few kilobytes.
HANDSHAKE_BYTES: Final = 64 * 1024

#: The most ciphertext that the kernel has not taken: records, and answers to a peer
#: that renews its keys again and again and does not read them.
MAX_UNTAKEN_BYTES: Final = 64 * 1024

#: First bytes that may come where TLS is enforced: of a ClientHello, and of the header
#: of a proxy in both of its versions.
_ALLOWED: Final = (HANDSHAKE[:1], b"P", b"\r")

#: What the log says of a client that does not encrypt where it must.
PLAIN: Final = (
    "a client without TLS: this port wants it (tls.server.mode=enforcing); turn TLS on "
    "in the client (useTLS, tls.enable)"
)


class TlsOwner(Protocol):
    """The connection of such a socket."""

    def failed_tls(self, error: RemoteProtocolError) -> None:
        """Nothing can be read or written any more: end it."""

    def opened_tls(self) -> None:
        """The handshake is over."""


@final
class EnforcingSocket:
    """A socket of the system where TLS is enforced, until its client begins with it.

    The header of a proxy may come before. All else is refused.

    @ivar owner: its connection.
    """

    def __init__(self, sock: socket) -> None:
        self.owner: TlsOwner | None = None
        self.system = sock
        self._is_fresh = True
        self.fileno = sock.fileno
        self.send = sock.send
        self.sendmsg = sock.sendmsg
        self.getsockname = sock.getsockname
        self.close = sock.close

    def recv(self, size: int, /) -> bytes:
        """The first bytes, if they are of TLS or of a proxy.

        @raise BlockingIOError: there are none now, or they are refused.
        """
        data = self.system.recv(size)
        if self._is_fresh and data and data[:1] not in _ALLOWED:
            assert self.owner is not None
            self.owner.failed_tls(ForeignProtocol(PLAIN))
            raise BlockingIOError
        self._is_fresh = False
        return data


@final
class TlsSocket:
    """The socket of one connection.

    @ivar system: the one that it is of.
    """

    def __init__(self, owner: TlsOwner, sock: socket, first: bytes) -> None:
        """
        @param first: what has been received already.
        """
        self.system = sock
        self._owner = owner
        self._came = first
        self._count = len(first)
        self._layer: TlsLayer | None = None
        self.fileno = sock.fileno
        self.getsockname = sock.getsockname

    def start(self, context: ssl.SSLContext) -> None:
        """The handshake goes on with the next reading, whether or not more comes."""
        self._layer = TlsLayer(context)

    def recv(self, size: int, /) -> bytes:
        """All that has come and can be read now.

        @return: nothing at the end.
        @raise BlockingIOError: nothing can be read now, or never again: then the owner
            is told.
        @raise OSError: the network broke.
        """
        try:
            data = self.system.recv(size)
            if not data:
                return b""
        except BlockingIOError:
            if self._layer is None or not self._came:
                raise
            data = b""
        layer = self._layer
        try:
            if layer is not None and layer.is_open:
                said = layer.receive(data)
                self._push()
            else:
                said = self._shake(data)
        except TlsError as error:
            with suppress(OSError):
                self._push()  # the words of the protocol for it
            self._owner.failed_tls(error)
            raise BlockingIOError from error
        if said or (layer is not None and layer.has_ended):
            return said
        raise BlockingIOError

    def _shake(self, data: bytes) -> bytes:
        """Go on with the handshake, as soon as there is a context."""
        layer = self._layer
        self._count += len(data)
        if self._count > HANDSHAKE_BYTES:
            raise TlsError(f"TLS: a handshake of more than {HANDSHAKE_BYTES} bytes")
        if layer is None:
            self._came += data
            return b""
        data, self._came = self._came + data, b""
        said = layer.receive(data)
        if not self._push():
            raise TlsError("TLS: it does not read the handshake")
        if layer.is_open:
            self._owner.opened_tls()
        return said

    def _push(self) -> bool:
        """Give the kernel what was encrypted; whether it has taken all.

        @raise OSError: the network broke, or the peer does not read.
        """
        layer = self._layer
        if layer is None or layer.push(self.system.send):
            return True
        if len(layer.untaken) > MAX_UNTAKEN_BYTES:
            raise ConnectionAbortedError("it does not read what TLS has to say")
        return False

    def send(self, data: bytes | memoryview, /) -> int:
        """Encrypt bytes and give them to the kernel, as far as it takes them.

        @return: of how many it has taken all; the rest is to be sent again.
        @raise BlockingIOError: TLS is not open yet.
        @raise OSError: the network broke.
        """
        layer = self._layer
        if layer is None or not layer.is_open:
            raise BlockingIOError
        try:
            return layer.send_through(data, self.system.send)
        except TlsError as error:
            raise ConnectionAbortedError(str(error)) from error

    def sendmsg(self, parts: list[bytes | memoryview], /) -> int:
        """The same of parts."""
        return self.send(b"".join(parts))

    def close(self) -> None:
        """Close it; the peer is told if it takes that at once."""
        if self._layer is not None and not self._layer.untaken:
            with suppress(OSError):
                self.system.send(self._layer.close())
        self.system.close()
