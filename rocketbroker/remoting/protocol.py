# -*- test-case-name: tests.remoting.test_contract -*-
"""A connection on a Twisted transport: TLS, no epoll, clients, the memory network.

It does what a connection of the hub does, through L{rocketbroker.wire.connection} and
without hot responders: complete, only slower. One delivery of bytes is a turn here,
answered with one write.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast, final

from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IPushProducer,
    ITCPTransport,
)
from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.remoting.command_channel import CommandChannel
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.wire.command import Command
from rocketbroker.wire.connection import Connection

_NOWHERE: Final = ("0.0.0.0", 0)


def place(address: IAddress | None) -> tuple[str, int]:
    """Host and port of a transport's address; zeros if it is of another kind."""
    host = getattr(address, "host", None)
    port = getattr(address, "port", None)
    if isinstance(host, str) and isinstance(port, int):
        return host, port
    return _NOWHERE


@final
@implementer(IPushProducer)
class StreamConnection(CommandChannel):
    """A connection whose bytes a Twisted transport moves.

    To the transport it is the producer of written bytes: paused when too many wait, it
    stops reading from the peer; resumed, it serves the requests that it has, and reads
    again.
    """

    def __init__(self, group: ConnectionGroup, transport: ITCPTransport) -> None:
        super().__init__(group, *place(transport.getPeer()))
        self._transport = transport
        self._incoming = Connection(group.limits.frame_bytes)
        self._first = b""
        self._commands: deque[Command] = deque()
        self._error: RemoteProtocolError | None = None
        self._out: list[bytes] = []
        self._queued = 0
        self._in_turn = False
        self._gone = False
        # Where the transport has such a mark (a plain socket's), it is ours.
        if hasattr(transport, "bufferSize"):
            cast(Any, transport).bufferSize = group.limits.high_water
        cast(IConsumer, transport).registerProducer(self, True)
        group.joined(self)

    def local_host(self) -> str:
        """See L{IConnection.local_host}."""
        if self.closed:
            return ""
        host = place(self._transport.getHost())[0]
        return "" if host == _NOWHERE[0] else host

    def received(self, data: bytes) -> None:
        """Bytes came: one turn."""
        if self.closed:
            return
        group = self.group
        group.counts.bytes_in += len(data)
        self.last_moved = group.clock.seconds()
        try:
            if self.is_new:
                self._first += data
                behind = self.after_proxy(self._first)
                if behind is None:
                    return
                data, self._first = behind, b""
            self._commands.extend(self._incoming.receive(data))
        except RemoteProtocolError as error:
            self._error = error
            self._commands.extend(self._incoming.before_error)
        self._work()

    def _work(self) -> None:
        """Serve the requests that came, as long as the peer takes the answers."""
        group = self.group
        commands = self._commands
        high_water = group.limits.high_water
        self._in_turn = True
        while commands and not self.closed and not self.congested:
            group.counts.frames_in += 1
            self.command_received(commands.popleft())
            if self._queued > high_water:
                self._flush()
        group.turns.end()
        self._in_turn = False
        if self._error is not None and not commands and not self.closed:
            self.break_off(self._error)
        self._flush()

    def send(self, frames: bytes, count: int = 1) -> None:
        """Send whole frames, at the end of this turn; nothing once it is closed."""
        if self.closed:
            return
        self._out.append(frames)
        self._queued += len(frames)
        self.group.counts.frames_out += count
        if not self._in_turn:
            self._flush()

    def _flush(self) -> None:
        out = self._out
        if out and not self._gone:
            data = b"".join(out)
            self.group.counts.bytes_out += len(data)
            out.clear()
            self._queued = 0
            self._transport.write(data)

    def close(self) -> None:
        """Close it; bytes sent before still go out if the peer takes them."""
        if self.closed:
            return
        self._flush()
        self.closed = True
        cast(IConsumer, self._transport).unregisterProducer()
        self._transport.loseConnection()
        self.was_closed()

    def abort(self) -> None:
        """Close it at once; unsent bytes are lost."""
        self._out.clear()
        if not self._gone:
            self._transport.abortConnection()
        if not self.closed:
            self.closed = True
            self.was_closed()

    def lost(self) -> None:
        """The transport is gone."""
        self._gone = True
        self._out.clear()
        self.group.left(self)
        if not self.closed:
            self.group.counts.lost += 1
            self.closed = True
            self.was_closed()

    # Called by the transport.

    def pauseProducing(self) -> None:
        """So much waits to be sent that the peer is not read until it reads."""
        if not self.congested and not self.closed:
            self.congested = True
            self.group.counts.congestions += 1
            cast(Any, self._transport).pauseProducing()

    def resumeProducing(self) -> None:
        """All of that has been sent."""
        self.last_moved = self.group.clock.seconds()
        if self.congested:
            self.congested = False
            if not self.closed:
                cast(Any, self._transport).resumeProducing()
                self._work()

    def stopProducing(self) -> None:
        """The transport ends; L{lost} follows."""


@final
class RemotingProtocol(Protocol):
    """The protocol of a Twisted transport: makes a L{StreamConnection} and feeds it.

    @ivar connection: C{None} until the connection is made.
    """

    def __init__(
        self,
        group: ConnectionGroup,
        made: Callable[[StreamConnection], None] | None = None,
    ) -> None:
        """
        @param made: called with the connection, when it is there.
        """
        self._group = group
        self._made = made
        self.connection: StreamConnection | None = None

    def connectionMade(self) -> None:
        """The transport is connected."""
        transport = cast(ITCPTransport, self.transport)
        if hasattr(transport, "setTcpNoDelay"):
            transport.setTcpNoDelay(True)
        self.connection = StreamConnection(self._group, transport)
        if self._made is not None:
            self._made(self.connection)

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""
        assert self.connection is not None
        self.connection.received(data)

    def connectionLost(self, reason: Failure | None = None) -> None:
        """The transport is gone."""
        if self.connection is not None:
            self.connection.lost()
