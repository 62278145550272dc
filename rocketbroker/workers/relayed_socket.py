# -*- test-case-name: tests.workers.test_relay -*-
"""The socket of a relayed connection, in the owner.

It does for the hub's connection what a socket of the system does. Bytes that the link
brings wait in it until they are received; bytes that are sent go into the link at once,
unless it is full or the worker has as many bytes for the client as it may.
"""

from __future__ import annotations

from typing import Final, Protocol, final

from rocketbroker.remoting.hubconnection import (
    FIRST_RELAYED,
    IN,
    OUT,
    HubConnection,
)
from rocketbroker.workers.link_frames import (
    WINDOW_BYTES,
    Kind,
    Reason,
    link_frame,
)

#: Bytes that may wait to be received before the worker is told to read no more of the
#: client: some readings. Below half of it the worker reads again.
INBOX_BYTES: Final = 256 * 1024


class SocketLink(Protocol):
    """The link of such sockets."""

    @property
    def is_full(self) -> bool:
        """Whether it takes nothing now."""

    def write(self, data: bytes) -> None:
        """Send at the end of this turn, or soon."""

    def write_data(self, connection_id: int, data: bytes) -> None:
        """Send bytes of a connection at the end of this turn, or soon."""

    def wait(self, sock: RelayedSocket) -> None:
        """Say when it is not full any more."""

    def unread(self, sock: RelayedSocket) -> None:
        """Bytes of that socket wait to be received."""

    def closed(self, sock: RelayedSocket) -> None:
        """The hub has done with it."""


@final
class RelayedSocket:
    """The socket of one connection.

    @ivar id: its number on the link.
    @ivar connection: the hub's connection that it is for.
    @ivar has_ended: whether the worker has closed the connection.
    @ivar fences: how many fences wait until all that came before them is served.
    @ivar is_quiet: whether that is counted already, not as the client's doing.
    """

    __slots__ = (
        "_armed",
        "_inbox",
        "_is_held",
        "_link",
        "_outstanding",
        "_size",
        "connection",
        "fences",
        "has_ended",
        "id",
        "is_quiet",
    )

    def __init__(self, link: SocketLink, connection_id: int) -> None:
        self.id = connection_id
        self.connection: HubConnection | None = None
        self.has_ended = False
        self.is_quiet = False
        self.fences = 0
        self._link = link
        self._inbox: list[bytes] | None = None
        self._size = 0
        self._armed = IN
        self._is_held = False
        self._outstanding = 0

    # Called by the hub and its connection.

    def fileno(self) -> int:
        """A number that no other socket of this process has had."""
        return FIRST_RELAYED + self.id

    def recv(self, size: int, /) -> bytes:
        """All bytes that wait, whatever C{size} is: they are in memory anyway."""
        inbox = self._inbox
        if inbox is None:
            if not self.has_ended:
                raise BlockingIOError
            if self.is_quiet and self.connection is not None:
                self.connection.close()
                raise BlockingIOError
            return b""
        data = inbox[0] if len(inbox) == 1 else b"".join(inbox)
        self._inbox = None
        self._size = 0
        if self._is_held:
            self._hold()
        if self.has_ended:
            self._link.unread(self)
        return data

    def send(self, data: bytes | memoryview, /) -> int:
        """Into the link; after the end into nothing."""
        size = len(data)
        if self.has_ended:
            return size
        room = WINDOW_BYTES - self._outstanding
        if room <= 0 or self._link.is_full:
            self._link.wait(self)
            raise BlockingIOError
        if size > room:
            data, size = data[:room], room
        self._outstanding += size
        self._link.write_data(self.id, bytes(data))
        return size

    def sendmsg(self, parts: list[bytes | memoryview], /) -> int:
        """The same of parts."""
        return self.send(b"".join(parts))

    def rearm(self, events: int) -> None:
        """Only C{events} are wanted from now on."""
        self._armed = events
        self._hold()
        if events & IN and (self._inbox is not None or self.has_ended):
            self._link.unread(self)
        if events & OUT:
            self._link.wait(self)

    def close(self) -> None:
        """The hub has done with it."""
        self._inbox = None
        if not self.has_ended:
            self._link.write(link_frame(Kind.CLOSE, self.id))
        self._link.closed(self)

    def _hold(self) -> None:
        """Tell the worker whether to read the client."""
        least = INBOX_BYTES // 2 if self._is_held else INBOX_BYTES
        is_held = not self._armed & IN or self._size > least
        if is_held != self._is_held:
            self._is_held = is_held
            if not self.has_ended:
                kind = Kind.PAUSE if is_held else Kind.RESUME
                self._link.write(link_frame(kind, self.id))

    def tell(self, kind: Kind, payload: bytes) -> None:
        """Say something of this connection to the worker."""
        if not self.has_ended:
            self._link.write(link_frame(kind, self.id, payload))

    # Called by the link.

    @property
    def is_served(self) -> bool:
        """Whether all that came was handed to responders."""
        connection = self.connection
        is_left = connection is not None and connection.partial is not None
        return self._inbox is None and not is_left

    @property
    def is_readable(self) -> bool:
        """Whether the hub wants what waits to be received."""
        has_some = self._inbox is not None or self.has_ended
        return bool(self._armed & IN) and has_some

    @property
    def is_writable(self) -> bool:
        """Whether the worker may have more for the client."""
        return self._outstanding < WINDOW_BYTES

    def deliver(self, data: bytes) -> None:
        """Bytes of the client."""
        if self._inbox is None:
            self._inbox = [data]
        else:
            self._inbox.append(data)
        self._size += len(data)
        if self._size > INBOX_BYTES:
            self._hold()

    def acknowledged(self, size: int) -> None:
        """The client's kernel has taken so many bytes."""
        self._outstanding -= size
        if self._armed & OUT:
            self._link.wait(self)

    def end(self, reason: int) -> None:
        """The worker has closed the connection: nothing comes behind what waits."""
        self.has_ended = True
        self._outstanding = 0
        connection = self.connection
        if connection is None:
            return
        counts = connection.group.counts
        if reason == Reason.IDLE:
            counts.idle += 1
        elif reason == Reason.STALLED:
            counts.stalled += 1
        self.is_quiet = reason != Reason.LOST
