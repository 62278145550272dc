"""TLS in tests: a certificate, made once for all of them, and two ends that talk."""

from __future__ import annotations

import ssl
from functools import cache

from twisted.internet.defer import Deferred, fail, succeed

from rocketbroker.app.certificates import own_context, write_own
from rocketbroker.errors import ConfigurationError
from rocketbroker.wire.tls_layer import TlsLayer


@cache
def server_context() -> ssl.SSLContext:
    """What a server speaks TLS with; nobody has signed it."""
    return own_context([], write_own)


def client_context() -> ssl.SSLContext:
    """That of a client that trusts everybody."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class MadeContexts:
    """Has one, or none."""

    def __init__(self, context: ssl.SSLContext | None) -> None:
        self._context = context

    def get(self) -> Deferred[ssl.SSLContext]:
        """At once."""
        if self._context is None:
            return fail(ConfigurationError("there is none"))
        return succeed(self._context)


def converse(one: TlsLayer, other: TlsLayer) -> tuple[bytes, bytes]:
    """Let both say all that they have.

    @return: what the other said, and what the one did.
    """
    heard, said = one.receive(), b""
    while data := one.outgoing():
        said += other.receive(data)
        heard += one.receive(other.outgoing())
    return heard, said
