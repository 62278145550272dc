# -*- test-case-name: tests.proxy.test_front -*-
"""The front of a proxy: TLS and plain text on one port (docs/facts/proxy.md 3.2).

grpcio's server has no such port, and takes over no listening socket. So the front has
the port, and grpcio's server one of its own on the loopback address, in plain text. The
front looks at the first byte of a connection without taking it. A record of TLS is
answered by the standard library's ssl, with ALPN C{h2}; all else is plain text. Then
bytes are handed on both ways, until both sides have ended: L{splice}.

The server behind sees connections of this machine only. L{Front.peer} tells whose each
is, by the port from which the front has made it.

The limits, each answered by closing the connection: L{Limits}.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import attrs

from rocketbroker.errors import ConfigurationError
from rocketbroker.proxy.settings import DISABLED, ENFORCING, MODE
from rocketbroker.proxy.splice import LATER, WAIT, Splice

_log: Final = logging.getLogger("rocketbroker.proxy")

#: The first byte of TLS: the type of the record with a handshake (RFC 8446, 5.1).
#: That of HTTP/2 is the C{P} of its preface.
HANDSHAKE_RECORD: Final = 0x16

#: What both sides speak above TLS.
ALPN: Final = "h2"

#: Connections that the kernel keeps until they are accepted, as at a port of data.
BACKLOG: Final = 1024

#: At most so many are accepted before others have their turn: those that were accepted
#: before go on in between, and make room.
MAX_ACCEPTED: Final = 64

#: After so long connections are accepted again, when there were no descriptors.
PAUSE_SECONDS: Final = 1.0

#: The log has one line in this time about connections closed for one reason.
LOG_SECONDS: Final = 60.0

#: A connection at rest is asked after so long whether its peer is still there: before
#: routers with NAT forget it, most of which do after 4 minutes or more. A peer that is
#: gone says nothing, and its stream would stay for ever.
KEEPALIVE_IDLE_SECONDS: Final = 60

#: It is asked again in these steps, and closed when it did not answer so often: a peer
#: that is gone is noticed within two minutes, and four packets may be lost.
KEEPALIVE_STEP_SECONDS: Final = 12
KEEPALIVE_PROBES: Final = 5

#: When the port is closed, connections that have come have so long to be opened: two
#: round trips, and no longer, as others have only connected.
OPENING_SECONDS: Final = 1.0

#: When the server behind has stopped, its last bytes have so long to reach clients.
DRAIN_SECONDS: Final = 5.0


@attrs.frozen
class Limits:
    """What a connection may take before it is closed.

    @ivar opening: connections without a first byte, or in a handshake; with one more
        the oldest is closed. As many as clients may come back at once in a restart;
        each holds some ten kilobytes.
    @ivar connections: all; one more is closed. Each has three descriptors: the
        client's connection, and both ends of that to the server behind. Without any,
        brokers could not be reached.
    @ivar first_byte_seconds: a client speaks first, in TLS and in HTTP/2, at once.
    @ivar handshake_seconds: a handshake takes two round trips; before it, so long for
        the certificate, which is made for the first one.
    @ivar closing_seconds: for so long one side may go on when the other has ended; as
        long as a proxy that stops waits for its calls.
    """

    opening: int = 512
    connections: int = 1 << 30
    first_byte_seconds: float = 20.0
    handshake_seconds: float = 20.0
    closing_seconds: float = 30.0


def refusal_of(mode: str, first: int, has_certificate: bool) -> str | None:
    """Why a connection is closed, C{None}: it is not.

    @param first: its first byte.
    """
    if first == HANDSHAKE_RECORD:
        if mode == DISABLED:
            return f"it speaks TLS, and {MODE} is {DISABLED}"
        if not has_certificate:
            return "it speaks TLS, and there is no certificate"
    elif mode == ENFORCING:
        return f"it speaks plain text, and {MODE} is {ENFORCING}"
    return None


def peer_text(address: Any) -> str:
    """The address of a peer, C{ip:port}, as sockets name it."""
    host, port = address[:2]
    if host.startswith("::ffff:") and "." in host:
        host = host[len("::ffff:") :]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens and does not block.

    @param host: an address; empty: all, of IPv6 too.
    @raise ConfigurationError: one sentence, if it cannot.
    """
    both = not host and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both or ":" in host else socket.AF_INET
    try:
        if not 0 <= port < 1 << 16:
            raise OSError(errno.EINVAL, "there is no such port")
        sock = socket.create_server(
            (host, port), family=family, backlog=BACKLOG, dualstack_ipv6=both
        )
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        words = "the port is in use" if taken else error.strerror or str(error)
        raise ConfigurationError(
            f"Cannot listen on {host or '*'}:{port} (grpcServerPort): {words}."
        ) from error
    sock.setblocking(False)
    return sock


def keep_alive(sock: socket.socket) -> None:
    """Let the kernel find out when the peer of a connection is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):  # not on macOS, which asks after two hours
        for option, value in (
            (socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS),
            (socket.TCP_KEEPINTVL, KEEPALIVE_STEP_SECONDS),
            (socket.TCP_KEEPCNT, KEEPALIVE_PROBES),
        ):
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


@final
class Front:
    """The port of a proxy.

    @ivar port: its number.
    @ivar closed: how many connections were closed, by the reason.
    """

    _loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        listening: socket.socket,
        mode: str,
        context: Callable[[], Awaitable[ssl.SSLContext | None]],
        limits: Limits = Limits(),
    ) -> None:
        """
        @param listening: of L{listening_socket}.
        @param context: what the next handshake has; C{None}: there is no certificate.
            Asked for each client that speaks TLS, and may take its time to be made.
        """
        self.port: int = listening.getsockname()[1]
        self.closed: Counter[str] = Counter()
        self._listening = listening
        self._mode = mode
        self._context = context
        self._limits = limits
        self._server_port = 0
        self._peers: dict[int, str] = {}
        self._opening: dict[asyncio.Task[None], str] = {}
        self._splices: set[Splice] = set()
        self._said_at: dict[str, float] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def start(self, server_port: int) -> None:
        """Accept connections, in the loop that runs.

        @param server_port: where the server behind listens on the loopback address.
        """
        self._loop = asyncio.get_running_loop()
        self._server_port = server_port
        self._loop.add_reader(self._listening, self._accept)

    def peer(self, address: str) -> str:
        """The address of a client.

        @param address: as the server behind knows it, C{ip:port}.
        """
        port = address.rpartition(":")[2]
        return self._peers.get(int(port), address) if port.isdecimal() else address

    async def stop_accepting(self) -> None:
        """Close the port. Connections that are being opened have a moment for that, and
        those that are open go on."""
        if self._listening.fileno() < 0:
            return
        if self._server_port:
            self._loop.remove_reader(self._listening)
        self._listening.close()
        if self._opening:
            await asyncio.wait(list(self._opening), timeout=OPENING_SECONDS)
        for task in list(self._opening):
            task.cancel()

    def dismiss(self) -> None:
        """Tell all clients to go elsewhere."""
        for splice in self._splices:
            splice.dismiss()

    async def stop(self) -> None:
        """Close everything, as soon as what the server has said has been taken."""
        await self.stop_accepting()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._is_empty.wait()
        for splice in list(self._splices):
            splice.close()
        await asyncio.gather(*self._opening, return_exceptions=True)

    def _accept(self) -> None:
        for _ in range(MAX_ACCEPTED):
            try:
                sock, address = self._listening.accept()
            except WAIT:
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                    continue  # the client has gone
                _log.error("No connections are accepted for a second: %s", error)
                self._loop.remove_reader(self._listening)
                self._loop.call_later(PAUSE_SECONDS, self._accept_again)
                return
            sock.setblocking(False)
            peer = peer_text(address)
            if len(self._splices) + len(self._opening) >= self._limits.connections:
                sock.close()
                self._refuse(peer, "there are too many connections")
                continue
            if len(self._opening) >= self._limits.opening:
                oldest, its_peer = next(iter(self._opening.items()))
                del self._opening[oldest]
                oldest.cancel()
                self._refuse(its_peer, "too many connections have not begun")
            task = self._loop.create_task(self._open(sock, peer))
            self._opening[task] = peer
            task.add_done_callback(functools.partial(self._opened, sock))

    def _accept_again(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _opened(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._opening.pop(task, None)
        if task.cancelled():
            sock.close()  # it may not have begun
        elif (problem := task.exception()) is not None:
            _log.error("A connection could not be opened", exc_info=problem)

    async def _open(self, client: socket.socket, peer: str) -> None:
        """One connection, until it is joined with one to the server."""
        with contextlib.ExitStack() as stack:
            stack.callback(client.close)
            try:
                async with asyncio.timeout(self._limits.first_byte_seconds):
                    first = await self._first_byte(client)
            except TimeoutError:
                self._refuse(peer, "it has said nothing")
                return
            except OSError:
                return
            if not first:
                return
            context = None
            if first[0] == HANDSHAKE_RECORD and self._mode != DISABLED:
                context = await self._context_in_time()
            refusal = refusal_of(self._mode, first[0], context is not None)
            if refusal is not None:
                self._refuse(peer, refusal)
                return
            if first[0] == HANDSHAKE_RECORD and context is not None:
                secured = await self._secured(client, peer, context)
                if secured is None:
                    return
                client = secured
                stack.callback(client.close)
            if await self._joined(client, peer):
                stack.pop_all()

    async def _first_byte(self, client: socket.socket) -> bytes:
        """The first byte, which stays where it is; empty: there is none."""
        while True:
            try:
                return client.recv(1, socket.MSG_PEEK)
            except LATER:
                await self._ready(client, is_reading=True)

    async def _context_in_time(self) -> ssl.SSLContext | None:
        """What a handshake has; C{None}: there is no certificate, or not yet."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.handshake_seconds):
                return await self._context()
        return None

    async def _secured(
        self, client: socket.socket, peer: str, context: ssl.SSLContext
    ) -> ssl.SSLSocket | None:
        """A connection after its handshake; C{None}: it is closed."""
        secured: ssl.SSLSocket | None = None
        try:
            secured = context.wrap_socket(
                client, server_side=True, do_handshake_on_connect=False
            )
            async with asyncio.timeout(self._limits.handshake_seconds):
                await self._handshake(secured)
            if secured.selected_alpn_protocol() == ALPN:
                found, secured = secured, None
                return found
            self._refuse(peer, "it does not speak HTTP/2 (ALPN h2)")
        except TimeoutError:
            self._refuse(peer, "its handshake takes too long")
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", None) or type(error).__name__
            self._refuse(peer, f"its handshake failed ({reason})")
        finally:
            if secured is not None:
                secured.close()
        return None

    async def _handshake(self, secured: ssl.SSLSocket) -> None:
        while True:
            try:
                secured.do_handshake()
            except ssl.SSLWantReadError:
                await self._ready(secured, is_reading=True)
            except ssl.SSLWantWriteError:
                await self._ready(secured, is_reading=False)
            else:
                return

    async def _joined(self, client: socket.socket, peer: str) -> bool:
        """Join a client's connection with one to the server; whether it is there."""
        server: socket.socket | None = None
        try:
            server = socket.socket()
            server.setblocking(False)
            await self._loop.sock_connect(server, ("127.0.0.1", self._server_port))
            for sock in (client, server):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            keep_alive(client)
            port: int = server.getsockname()[1]
        except BaseException as error:
            if server is not None:
                server.close()
            if not isinstance(error, OSError):
                raise
            self._refuse(peer, f"the server behind takes none ({error.strerror})")
            return False

        def closed(splice: Splice) -> None:
            self._splices.discard(splice)
            self._peers.pop(port, None)
            if not self._splices:
                self._is_empty.set()

        seconds = self._limits.closing_seconds
        splice = Splice(self._loop, client, server, seconds, closed)
        self._peers[port] = peer
        self._splices.add(splice)
        self._is_empty.clear()
        splice.start()
        return True

    async def _ready(self, sock: socket.socket, is_reading: bool) -> None:
        """Wait until a socket can be read, or written."""
        loop = self._loop
        ready: asyncio.Future[None] = loop.create_future()
        watch = loop.add_reader if is_reading else loop.add_writer
        forget = loop.remove_reader if is_reading else loop.remove_writer
        watch(sock, _fire, ready)
        try:
            await ready
        finally:
            forget(sock)

    def _refuse(self, peer: str, reason: str) -> None:
        """A connection is closed: count it, and say so now and then."""
        self.closed[reason] += 1
        now = self._loop.time()
        if now - self._said_at.get(reason, -LOG_SECONDS) >= LOG_SECONDS:
            self._said_at[reason] = now
            _log.warning(
                "The connection of %s is closed: %s; %d so far.",
                peer,
                reason,
                self.closed[reason],
            )


def _fire(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
