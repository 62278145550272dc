# -*- test-case-name: tests.integration.test_proxy_front -*-
"""Two sockets joined: what comes from one goes to the other, until both have ended.

Bytes go from socket to socket. A way reads only when all that it has read is written:
one chunk is the most that it holds, a peer that does not read stops the other one, and
a connection at rest holds none. A transport of asyncio with TLS holds 256 KiB for each
connection, and clients keep theirs open for days.

A client is told to go elsewhere by a frame of the front's own, between two of the
server's: L{frames}.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Final, final

from rocketbroker.proxy.frames import GOAWAY, Frames

#: At most so many bytes are read at once: some records of TLS, and so little that a
#: connection cannot keep the loop from others.
CHUNK: Final = 1 << 16

#: What a socket raises that cannot go on now.
LATER: Final = (BlockingIOError, InterruptedError, ssl.SSLWantReadError)
WAIT: Final = (*LATER, ssl.SSLWantWriteError)


@final
class Way:
    """One direction of a connection: what comes from one socket goes to another."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        source: socket.socket,
        sink: socket.socket,
        ended: Callable[[bool], None],
        frames: Frames | None = None,
    ) -> None:
        """
        @param ended: called once, when the source or the sink has ended; whether the
            sink has nothing more to say.
        @param frames: knows where the frames of the source end.
        """
        self._loop = loop
        self._source = source
        self._sink = sink
        self._ended = ended
        self._frames = frames
        self._left = b""
        self._farewell = b""
        self.has_ended = False

    def start(self) -> None:
        """Begin to read."""
        self._loop.add_reader(self._source, self._readable)

    def stop(self) -> None:
        """Do no more."""
        self.has_ended = True
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)

    def _readable(self) -> None:
        try:
            data = self._source.recv(CHUNK)
            if data:
                self._hand_on(data)
                return
        except WAIT:
            return
        except OSError:
            pass  # a connection that breaks has ended
        self._end()

    def _hand_on(self, data: bytes) -> None:
        if self._frames is not None:
            self._frames.came(data)
            if self._farewell and self._frames.is_between:
                data, self._farewell = data + self._farewell, b""
        sent = self._send(data)
        if sent < len(data):
            self._left = data[sent:]
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._sink, self._writable)

    def dismiss(self) -> None:
        """Tell the sink to go elsewhere, now or after the frame that is on its way."""
        if self.has_ended or self._frames is None:
            return
        if not self._frames.is_between:
            self._farewell = GOAWAY
        elif self._left:
            self._left += GOAWAY
        else:
            with contextlib.suppress(OSError):  # it is seen by who reads
                self._hand_on(GOAWAY)

    def _writable(self) -> None:
        try:
            self._left = self._left[self._send(self._left) :]
        except OSError:
            self._end()
            return
        if not self._left:
            self._loop.remove_writer(self._sink)
            self.start()

    def _send(self, data: bytes) -> int:
        """Send what the sink takes now; how much it was."""
        try:
            return self._sink.send(data)
        except WAIT:
            return 0

    def _end(self) -> None:
        self.stop()
        self._ended(_end_of_writing(self._sink))


def _end_of_writing(sock: socket.socket) -> bool:
    """Tell a peer that nothing more comes; it may go on.

    @return: whether it has said the same, so that the keys are forgotten: what is read
        from then on would be plain text.
    """
    has_ended = False
    with contextlib.suppress(OSError, ValueError):
        if isinstance(sock, ssl.SSLSocket):
            sock.unwrap()  # sends its close_notify, and waits for none
            has_ended = True
    with contextlib.suppress(OSError):
        # The method of SSLSocket would forget the keys.
        socket.socket.shutdown(sock, socket.SHUT_WR)
    return has_ended


@final
class Splice:
    """A client's connection and the server's, joined."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        server: socket.socket,
        closing_seconds: float,
        closed: Callable[[Splice], None],
    ) -> None:
        """
        @param closed: called once.
        """
        self._loop = loop
        self._sockets = client, server
        self._closing_seconds = closing_seconds
        self._closed = closed
        self._ways = (
            Way(loop, client, server, self._ended),
            Way(loop, server, client, self._ended, Frames()),
        )
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to hand on."""
        for way in self._ways:
            way.start()

    def dismiss(self) -> None:
        """Tell the client to go elsewhere."""
        _, way = self._ways
        way.dismiss()

    def _ended(self, is_over: bool) -> None:
        if is_over or all(way.has_ended for way in self._ways):
            self.close()
        else:
            self._timer = self._loop.call_later(self._closing_seconds, self.close)

    def close(self) -> None:
        """Close both connections."""
        if self._timer is not None:
            self._timer.cancel()
        for way in self._ways:
            way.stop()
        for sock in self._sockets:
            sock.close()
        self._closed(self)
