# -*- test-case-name: tests.wire.test_tls_layer -*-
"""TLS without a socket: bytes of one side in, bytes of the other out.

The standard library encrypts between two buffers in memory here, so that whoever has
the socket reads and writes it in its own way: the hub, a transport of Twisted.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Final, final

from rocketbroker.wire.other_protocols import ForeignProtocol

#: What one record carries at most (RFC 8446, 5.1).
RECORD_BYTES: Final = 16384


class TlsError(ForeignProtocol):
    """The other side broke off, is not trusted, or speaks no TLS."""


@final
class TlsLayer:
    """One end of a TLS connection.

    @ivar is_open: whether the handshake is over.
    @ivar has_ended: whether the other side has said that nothing more comes.
    @ivar untaken: what a socket that does not block has not taken.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        *,
        is_server: bool = True,
        server_name: str | None = None,
    ) -> None:
        """
        @param server_name: of the server that a client connects to: told to it, and
            compared with its certificate if the context says so.
        """
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, is_server, server_name
        )
        self.is_open = self.has_ended = False
        self.untaken = b""
        self._owed = 0

    def receive(self, data: bytes = b"") -> bytes:
        """Take bytes of the other side; afterwards there may be some for it.

        @return: what it has said with them; all of it.
        @raise TlsError: it broke off, is not trusted, or speaks no TLS.
        """
        self._incoming.write(data)
        said: list[bytes] = []
        try:
            if not self.is_open:
                self._tls.do_handshake()
                self.is_open = True
            while part := self._tls.read(RECORD_BYTES):
                said.append(part)
            self.has_ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.has_ended = True
        except ssl.SSLError as error:
            raise TlsError(_words(error)) from error
        return b"".join(said)

    def send(self, data: bytes | memoryview) -> int:
        """Encrypt bytes for the other side.

        @return: how many.
        @raise TlsError: that cannot be any more.
        """
        try:
            return self._tls.write(data)
        except ssl.SSLError as error:
            raise TlsError(_words(error)) from error

    def outgoing(self) -> bytes:
        """What is to be sent to the other side; it is kept no longer."""
        return self._outgoing.read()

    # For sockets that do not block.

    def push(self, send: Callable[[bytes], int]) -> bool:
        """Let a socket have what is to be sent; whether it has taken all.

        @param send: sends some of the bytes; how many. May raise C{BlockingIOError}.
        """
        self.untaken += self.outgoing()
        if not self.untaken:
            return True
        with suppress(BlockingIOError):
            self.untaken = self.untaken[send(self.untaken) :]
        return not self.untaken

    def send_through(
        self, data: bytes | memoryview, send: Callable[[bytes], int]
    ) -> int:
        """Encrypt bytes and let a socket have them, as far as it takes them.

        A record counts when the socket has taken the last byte of it. Until then its
        text is I{owed}: the caller keeps it as unsent, and begins its next sending with
        it; then it is not encrypted again.

        @return: of how many bytes all is sent; the rest is to be given again.
        @raise TlsError: that cannot be any more.
        """
        if not self.push(send):
            return 0
        taken, self._owed = self._owed, 0
        size, view = len(data), memoryview(data)
        while taken < size:
            encrypted = self.send(view[taken : taken + RECORD_BYTES])
            if not self.push(send):
                self._owed = encrypted
                break
            taken += encrypted
        return taken

    def close(self) -> bytes:
        """Say that nothing more comes.

        @return: what is to be sent to the other side.
        """
        if self.is_open:
            with suppress(ssl.SSLError):  # it has not said it yet, or broke off
                self._tls.unwrap()
        return self.outgoing()

    def peer_certificate(self) -> bytes | None:
        """The certificate of the other side in DER; C{None}: it has shown none."""
        return self._tls.getpeercert(binary_form=True)


def _words(error: ssl.SSLError) -> str:
    """What went wrong, without the place in the library."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"TLS: its certificate is not trusted: {error.verify_message}"
    reason = (error.reason or error.strerror or "it broke off").replace("_", " ")
    return f"TLS: {reason.lower()}"
