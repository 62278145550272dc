# -*- test-case-name: tests.workers.test_relayed_socket -*-
"""The socket of a relayed connection, in the owner.

It does for the hub's connection what a socket of the system does. Bytes that the link
brings wait in it until they are received; bytes that are sent go into the link at once,
unless it is full or the worker has as many bytes for the client as it may.

Both ends of the real connection can end it at any time: the client or the worker, and
the hub. What the one end has begun the other hears of a turn later, and frames cross on
the link. So each socket has one L{SocketState}, and L{TRANSITIONS} is the table of all
that L{SocketInput} may do to it; an input that a state has no entry for is a mistake of
ours::

    ========  =============================  ======  ======  ========  ========  ======
    state     meaning                        PAUSE   RESUME  HANG_UP   GIVE_UP   CLOSE
    ========  =============================  ======  ======  ========  ========  ======
    OPEN      the worker reads the client    PAUSED          HUNG_UP   GIVEN_UP  CLOSED
    PAUSED    the worker is told to read             OPEN    HUNG_UP   GIVEN_UP  CLOSED
              no more of it
    HUNG_UP   client or worker is gone                       HUNG_UP             CLOSED
    GIVEN_UP  the worker has closed it,                      GIVEN_UP            CLOSED
              idle or stalled
    CLOSED    the hub has done with it
    ========  =============================  ======  ======  ========  ========  ======

The worker hears of PAUSE and RESUME, and of CLOSE while it serves the connection, in
OPEN and PAUSED. HUNG_UP and GIVEN_UP have bytes to receive, but send into nothing.
Behind the last byte they differ: the hub reads the end of one that is HUNG_UP, and
counts it as lost; one that is GIVEN_UP was counted, so it is only closed. A worker that
dies hangs up all of its connections, also those that have ended.

Not of the state: C{_armed} is the hub's, in all states. C{fences} are answered as long
as the link has the socket.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
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


class SocketState(IntEnum):
    """Where a relayed socket is; see the module."""

    OPEN = 0
    PAUSED = 1
    HUNG_UP = 2
    GIVEN_UP = 3
    CLOSED = 4


class SocketInput(IntEnum):
    """What happens to a relayed socket.

    PAUSE: too much waits to be received, or the hub wants nothing. RESUME: it is
    received. HANG_UP: the client has closed the connection, or the worker is gone.
    GIVE_UP: the worker has closed it, and why is counted. CLOSE: the hub closes it.
    """

    PAUSE = 0
    RESUME = 1
    HANG_UP = 2
    GIVE_UP = 3
    CLOSE = 4


#: The table; see the module.
TRANSITIONS: Final[Mapping[SocketState, Mapping[SocketInput, SocketState]]] = {
    SocketState.OPEN: {
        SocketInput.PAUSE: SocketState.PAUSED,
        SocketInput.HANG_UP: SocketState.HUNG_UP,
        SocketInput.GIVE_UP: SocketState.GIVEN_UP,
        SocketInput.CLOSE: SocketState.CLOSED,
    },
    SocketState.PAUSED: {
        SocketInput.RESUME: SocketState.OPEN,
        SocketInput.HANG_UP: SocketState.HUNG_UP,
        SocketInput.GIVE_UP: SocketState.GIVEN_UP,
        SocketInput.CLOSE: SocketState.CLOSED,
    },
    SocketState.HUNG_UP: {
        SocketInput.HANG_UP: SocketState.HUNG_UP,
        SocketInput.CLOSE: SocketState.CLOSED,
    },
    SocketState.GIVEN_UP: {
        SocketInput.HANG_UP: SocketState.GIVEN_UP,
        SocketInput.CLOSE: SocketState.CLOSED,
    },
    SocketState.CLOSED: {},
}

# Members of an enumeration are slow to look up.
_OPEN: Final = SocketState.OPEN
_PAUSED: Final = SocketState.PAUSED
_GIVEN_UP: Final = SocketState.GIVEN_UP


@final
class RelayedSocket:
    """The socket of one connection.

    @ivar id: its number on the link.
    @ivar connection: the hub's connection that it is for.
    @ivar state: where it is.
    @ivar fences: how many fences wait until all that came before them is served.
    """

    __slots__ = (
        "_armed",
        "_inbox",
        "_link",
        "_outstanding",
        "_size",
        "connection",
        "fences",
        "id",
        "state",
    )

    def __init__(self, link: SocketLink, connection_id: int) -> None:
        self.id = connection_id
        self.connection: HubConnection | None = None
        self.state = _OPEN
        self.fences = 0
        self._link = link
        self._inbox: list[bytes] | None = None
        self._size = 0
        self._armed = IN
        self._outstanding = 0

    def on(self, given: SocketInput) -> None:
        """Go to the state that C{given} leads to."""
        self.state = TRANSITIONS[self.state][given]

    @property
    def has_ended(self) -> bool:
        """Whether the worker does not serve the connection any more."""
        state = self.state
        return state is not _OPEN and state is not _PAUSED

    # Called by the hub and its connection.

    def fileno(self) -> int:
        """A number that no other socket of this process has had."""
        return FIRST_RELAYED + self.id

    def recv(self, size: int, /) -> bytes:
        """All bytes that wait, whatever C{size} is: they are in memory anyway."""
        inbox, state = self._inbox, self.state
        if inbox is None:
            if state is _OPEN or state is _PAUSED:
                raise BlockingIOError
            if state is _GIVEN_UP and self.connection is not None:
                self.connection.close()
                raise BlockingIOError
            return b""
        data = inbox[0] if len(inbox) == 1 else b"".join(inbox)
        self._inbox = None
        self._size = 0
        if state is _PAUSED:
            self._pause_or_resume()
        elif state is not _OPEN:
            self._link.unread(self)
        return data

    def send(self, data: bytes | memoryview, /) -> int:
        """Into the link; after the end into nothing."""
        size, state = len(data), self.state
        if state is not _OPEN and state is not _PAUSED:
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

    def getsockname(self) -> None:
        """The worker has the address."""

    def rearm(self, events: int) -> None:
        """Only C{events} are wanted from now on."""
        self._armed = events
        self._pause_or_resume()
        if events & IN and (self._inbox is not None or self.has_ended):
            self._link.unread(self)
        if events & OUT:
            self._link.wait(self)

    def close(self) -> None:
        """The hub has done with it."""
        self._inbox = None
        if not self.has_ended:
            self._link.write(link_frame(Kind.CLOSE, self.id))
        self.on(SocketInput.CLOSE)
        self._link.closed(self)

    def _pause_or_resume(self) -> None:
        """Tell the worker whether to read the client, if that has changed."""
        state, is_wanted = self.state, self._armed & IN
        if state is _OPEN:
            if not is_wanted or self._size > INBOX_BYTES:
                self.on(SocketInput.PAUSE)
                self._link.write(link_frame(Kind.PAUSE, self.id))
        elif state is _PAUSED and is_wanted and self._size <= INBOX_BYTES // 2:
            self.on(SocketInput.RESUME)
            self._link.write(link_frame(Kind.RESUME, self.id))

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
        if not self._armed & IN:
            return False
        state = self.state
        return self._inbox is not None or (state is not _OPEN and state is not _PAUSED)

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
            self._pause_or_resume()

    def acknowledged(self, size: int) -> None:
        """The client's kernel has taken so many bytes."""
        self._outstanding -= size
        if self._armed & OUT:
            self._link.wait(self)

    def end(self, reason: int) -> None:
        """The worker has closed the connection, or is gone: nothing comes behind what
        waits."""
        lost = reason == Reason.LOST
        self.on(SocketInput.HANG_UP if lost else SocketInput.GIVE_UP)
        self._outstanding = 0
        connection = self.connection
        if connection is None:
            return
        counts = connection.group.counts
        if reason == Reason.IDLE:
            counts.idle += 1
        elif reason == Reason.STALLED:
            counts.stalled += 1
