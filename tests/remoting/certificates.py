"""A certificate for tests, made once for all of them: nobody has signed it."""

from __future__ import annotations

import ssl
from functools import cache

from twisted.internet.defer import Deferred, fail, succeed

from rocketbroker.app.certificates import own_context
from rocketbroker.errors import ConfigurationError


@cache
def server_context() -> ssl.SSLContext:
    """What a server speaks TLS with."""
    return own_context([])


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
