# -*- test-case-name: tests.client.test_tls_link -*-
"""A connection with TLS, on any runtime: it encrypts what goes over another link."""

from __future__ import annotations

from typing import final

from rocketbroker.client.runtime import Future, Link, LinkEvents, Runtime
from rocketbroker.config.certificates import ClientTls
from rocketbroker.errors import ConfigurationError, ConnectionLost
from rocketbroker.wire.tls_layer import TlsError, TlsLayer


async def connect(
    runtime: Runtime,
    address: tuple[str, int],
    seconds: float,
    events: LinkEvents,
    tls: ClientTls | None,
) -> Link:
    """Connect, with TLS if that is wanted.

    @param address: host and port.
    @raise ConnectionLost: it could not be done in that time.
    """
    host, port = address
    if tls is None:
        return await runtime.connect(host, port, seconds, events)
    deadline = runtime.monotonic() + seconds
    try:
        context, name = tls.context(), tls.server_name(host)
    except ConfigurationError as problem:
        raise ConnectionLost(f"no TLS with {host}:{port}: {problem}") from problem
    layer = TlsLayer(context, is_server=False, server_name=name)
    secured = TlsLink(events, layer, runtime.future())
    link = await runtime.connect(host, port, seconds, secured)
    timer = runtime.call_later(deadline - runtime.monotonic(), secured.overdue)
    try:
        await secured.shake(link)
    except ConnectionLost as problem:
        raise ConnectionLost(f"no TLS with {host}:{port}: {problem}") from problem
    finally:
        timer.cancel()
        if not secured.is_open:
            link.close()
    return secured


@final
class TlsLink:
    """To the client a link, to the link below what it tells."""

    def __init__(
        self, events: LinkEvents, layer: TlsLayer, opened: Future[None]
    ) -> None:
        """
        @param opened: what C{shake} waits for.
        """
        self._events = events
        self._layer = layer
        self._opened = opened
        self._link: Link | None = None

    @property
    def is_open(self) -> bool:
        """Whether the handshake is over."""
        return self._layer.is_open

    async def shake(self, link: Link) -> None:
        """Shake hands over C{link}.

        @raise ConnectionLost: the two sides do not come to terms.
        """
        self._link = link
        self.received(b"")
        await self._opened

    def overdue(self) -> None:
        """The handshake takes too long."""
        self._fail("no handshake in time")

    def _fail(self, why: str) -> None:
        if not self._opened.done():
            self._opened.set_exception(ConnectionLost(why))
        elif self._link is not None:
            self._link.close()

    def _push(self) -> None:
        data = self._layer.outgoing()
        if data and self._link is not None:
            self._link.write(data)

    # To the link below.

    def received(self, data: bytes) -> None:
        """See L{LinkEvents}."""
        layer = self._layer
        try:
            said = layer.receive(data)
        except TlsError as problem:
            self._push()  # the words of the protocol for it
            self._fail(str(problem))
            return
        self._push()
        if layer.is_open and not self._opened.done():
            self._opened.set_result(None)
        if said:
            self._events.received(said)
        if layer.has_ended:
            self.close()

    def congested(self, is_congested: bool) -> None:
        """See L{LinkEvents}."""
        self._events.congested(is_congested)

    def lost(self, why: str) -> None:
        """See L{LinkEvents}."""
        if self._opened.done():
            self._events.lost(why)
        else:
            self._fail(why)

    # To the client.

    def write(self, data: bytes) -> None:
        """See L{Link}."""
        view = memoryview(data)
        try:
            while view:
                view = view[self._layer.send(view) :]
        except TlsError as problem:
            self._fail(str(problem))
            return
        self._push()

    def close(self) -> None:
        """See L{Link}."""
        if self._link is not None:
            self._link.write(self._layer.close())
            self._link.close()
