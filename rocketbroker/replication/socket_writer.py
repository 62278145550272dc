# -*- test-case-name: tests.replication.test_socket_writer -*-
"""The socket writer: bytes written to a connection without a reactor's detour, where
the kernel takes them.

A transport keeps what is written, asks the reactor to tell when the socket takes it,
and gives it then: two changes of the reactor's epoll and one more round, some twenty
microseconds, for each small frame and each report. Nearly always the socket takes them
at once. So they are given to it directly; what it does not take goes through the
transport, and until that is done nothing else is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from twisted.internet.interfaces import IPullProducer, ITransport
from zope.interface import classImplements


@final
class SocketWriter:
    """The way out of one connection.

    @ivar is_busy: whether bytes are on the way that the socket has not taken: nothing
        may be written.
    @ivar written: how many bytes were given to it.
    """

    __slots__ = ("_drained", "_rest", "_send", "_transport", "is_busy", "written")

    def __init__(self, transport: ITransport, drained: Callable[[], object]) -> None:
        """
        @param transport: connected; of a plain socket, or one that has none.
        @param drained: called when it is no longer busy.
        """
        self._transport: Any = transport
        self._drained = drained
        handle = getattr(transport, "getHandle", None)
        self._send: Callable[[bytes], int] | None = None
        if handle is not None:
            self._send = handle().send
        self._rest: bytes | memoryview | None = None
        self.is_busy = False
        self.written = 0

    def write(self, data: bytes) -> None:
        """Send; the outlet must not be busy."""
        size = len(data)
        self.written += size
        sent = 0
        if self._send is not None:
            try:
                sent = self._send(data)
            except OSError:
                # It is full, or the transport will find out what is wrong with it.
                sent = 0
            if sent == size:
                return
        self._rest = memoryview(data)[sent:] if sent else data
        self.is_busy = True
        self._transport.registerProducer(self, False)

    def resumeProducing(self) -> None:
        """The transport wants bytes: it has just been asked, or has sent all."""
        rest, self._rest = self._rest, None
        if rest is not None:
            self._transport.write(bytes(rest))
            return
        self._transport.unregisterProducer()
        self.is_busy = False
        self._drained()

    def stopProducing(self) -> None:
        """The connection is over; nothing will be written any more."""
        self._rest = None


classImplements(SocketWriter, IPullProducer)
