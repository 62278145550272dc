# -*- test-case-name: tests.metrics.test_page_guard -*-
"""The guard of the pages: a bearer token, or a certificate of the client.

Either is enough where both are wanted. Who shows neither is answered with 401, and its
address gets one line in the log.
"""

from __future__ import annotations

from typing import Final, cast, final

from twisted.web.resource import IResource, Resource
from twisted.web.server import Request

from rocketbroker.files.secret_file import SecretFile
from rocketbroker.remoting.refusal_log import AddressRefusals
from rocketbroker.remoting.tls_transport import TlsTransport

#: How a token is shown (RFC 6750, 2.1).
SCHEME: Final = b"bearer"

#: The answer to who shows neither.
REFUSAL: Final = b"This page wants a bearer token or a client's certificate.\n"


@final
class PageGuard:
    """Says who may see pages."""

    def __init__(
        self,
        token: SecretFile | None,
        takes_certificates: bool,
        refusals: AddressRefusals,
    ) -> None:
        """
        @param token: C{None}: no token opens them.
        @param takes_certificates: whether a certificate does that TLS has checked.
        """
        self._token = token
        self._takes_certificates = takes_certificates
        self._refusals = refusals

    def allows(self, request: Request) -> bool:
        """Whether a request has shown enough."""
        if self._has_token(request) or self._has_certificate(request):
            return True
        host = getattr(request.getClientAddress(), "host", "")
        self._refusals.say(
            host,
            f"{host or 'Somebody'} asks for pages of metrics without the token or the "
            "certificate for them (metricsBearerTokenFile, metricsClientCertificate), "
            "and is refused.",
        )
        return False

    def _has_token(self, request: Request) -> bool:
        given = request.getHeader(b"Authorization")
        if self._token is None or given is None:
            return False
        scheme, _, token = given.partition(b" ")
        return scheme.lower() == SCHEME and self._token.is_secret(token.strip())

    def _has_certificate(self, request: Request) -> bool:
        transport = request.transport
        return (
            self._takes_certificates
            and isinstance(transport, TlsTransport)
            and transport.peer_certificate() is not None
        )


@final
class GuardedResource(Resource):
    """A page behind a guard; what is below it is open."""

    def __init__(self, page: Resource, guard: PageGuard) -> None:
        super().__init__()
        self._page = page
        self._guard = guard
        self.isLeaf = page.isLeaf

    def getChildWithDefault(self, path: bytes, request: Request) -> IResource:
        """What is below the page."""
        return cast(IResource, self._page.getChildWithDefault(path, request))

    def render(self, request: Request) -> bytes | int:
        """The page, or why not."""
        if self._guard.allows(request):
            return cast("bytes | int", self._page.render(request))
        request.setResponseCode(401)
        request.setHeader(b"WWW-Authenticate", b"Bearer")
        request.setHeader(b"Content-Type", b"text/plain; charset=utf-8")
        request.setHeader(b"Content-Length", b"%d" % len(REFUSAL))
        return b"" if request.method == b"HEAD" else REFUSAL
