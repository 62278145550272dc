# -*- test-case-name: tests.workers.test_link -*-
"""Frames and descriptors through the socket of a link.

What a turn writes goes out at its end, with one call of the system if it is not much. A
link is read whenever something comes: what must not come is stopped connection by
connection, by PAUSE, so that none waits for another.
"""

from __future__ import annotations

import socket
from array import array
from collections import deque
from typing import Final, final

from rocketbroker.workers.link_frames import Kind, LinkDecoder, LinkFrame, head

#: Bytes read at once, into memory that is always the same: a link carries what many
#: connections bring in a turn.
READ_BYTES: Final = 256 * 1024

#: Pieces are joined up to so many bytes; a longer one goes by itself.
JOINED_BYTES: Final = 128 * 1024

#: So short data is joined with its head at once: one piece less is worth the copy.
SHORT_BYTES: Final = 4096

#: The kernel's buffer of a link, as far as the system allows it.
BUFFER_BYTES: Final = 1 << 20

#: Unsent bytes beyond which nobody is to give it more, and below which they may again:
#: some of the largest answers, or what all connections bring in some turns.
HIGH_WATER: Final = 4 << 20
LOW_WATER: Final = 1 << 20

_DESCRIPTOR: Final = array("i", [0])
_ROOM: Final = socket.CMSG_SPACE(_DESCRIPTOR.itemsize)


def link_pair() -> tuple[socket.socket, socket.socket]:
    """The two sockets of a new link."""
    pair = socket.socketpair()
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    return pair


@final
class LinkStream:
    """One end of a link.

    @ivar is_broken: whether the other end is gone.
    @ivar unsent: bytes that wait to be sent.
    @ivar sent: bytes sent so far.
    @ivar received: bytes received so far.
    """

    __slots__ = (
        "_decoder",
        "_memory",
        "_out",
        "_passed",
        "_socket",
        "is_broken",
        "received",
        "sent",
        "unsent",
    )

    def __init__(self, sock: socket.socket) -> None:
        """
        @param sock: connected; it is this object's from now on.
        """
        sock.setblocking(False)
        self.is_broken = False
        self.unsent = 0
        self.sent = 0
        self.received = 0
        self._socket = sock
        self._memory = memoryview(bytearray(READ_BYTES))
        self._decoder = LinkDecoder()
        self._out: deque[tuple[bytes | memoryview, socket.socket | None]] = deque()
        self._passed: deque[socket.socket] = deque()

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self._socket.fileno()

    def read(self) -> list[LinkFrame]:
        """Read once.

        @return: the frames that are whole now.
        @raise RemoteProtocolError: what came is no frame.
        """
        try:
            size, ancillary, _, _ = self._socket.recvmsg_into([self._memory], _ROOM)
        except BlockingIOError:
            return []
        except OSError:
            self.is_broken = True
            return []
        for level, kind, data in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                for descriptor in array("i", data):
                    self._passed.append(socket.socket(fileno=descriptor))
        if not size:
            self.is_broken = True
            return []
        self.received += size
        return self._decoder.receive(self._memory[:size])

    def passed_socket(self) -> socket.socket:
        """The socket of the next OPEN frame: it came with the frame's bytes."""
        return self._passed.popleft()

    def write(self, data: bytes, passed: socket.socket | None = None) -> None:
        """Send at the next flush.

        @param passed: a socket that goes with the bytes, and is closed here then.
        """
        if self.is_broken:
            if passed is not None:
                passed.close()
            return
        self._out.append((data, passed))
        self.unsent += len(data)

    def write_data(self, connection_id: int, data: bytes) -> None:
        """Send bytes of a connection at the next flush."""
        size = len(data)
        before = head(Kind.DATA, connection_id, size)
        if size <= SHORT_BYTES:
            self.write(before + data)
        else:
            self.write(before)
            self.write(data)

    def flush(self) -> None:
        """Give the kernel what it takes."""
        out = self._out
        while out and not self.is_broken:
            data, passed = self._next()
            try:
                if passed is None:
                    sent = self._socket.send(data)
                else:
                    sent = self._send_with(data, passed)
                    passed.close()
                    passed = None
            except BlockingIOError:
                sent = 0
            except OSError:
                self.is_broken = True
                sent = 0
            self.unsent -= sent
            self.sent += sent
            if sent < len(data):
                out.appendleft((memoryview(data)[sent:], passed))
                break
        if self.is_broken:
            self._drop()

    def _send_with(self, data: bytes | memoryview, passed: socket.socket) -> int:
        rights = array("i", [passed.fileno()])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
        return self._socket.sendmsg([data], ancillary)

    def _next(self) -> tuple[bytes | memoryview, socket.socket | None]:
        """Some pieces joined, or one."""
        out = self._out
        data, passed = out.popleft()
        size = len(data)
        if passed is not None or not out or size > JOINED_BYTES:
            return data, passed
        pieces = [data]
        while out:
            more, passed = out[0]
            size += len(more)
            if passed is not None or size > JOINED_BYTES:
                break
            pieces.append(more)
            out.popleft()
        return b"".join(pieces), None

    def _drop(self) -> None:
        for _, passed in self._out:
            if passed is not None:
                passed.close()
        self._out.clear()
        self.unsent = 0

    def close(self) -> None:
        """Close it; what is unsent is lost."""
        self.is_broken = True
        self._drop()
        while self._passed:
            self._passed.popleft().close()
        self._socket.close()
