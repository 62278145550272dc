# -*- test-case-name: tests.workers.test_relay -*-
"""The owner's end of a link: all relayed connections of one worker.

One reading of the link brings what many clients have sent; the hub serves all of them
in the same turn, each as long as it has time, and their answers leave with one write at
its end.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import Final, Protocol, final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.hubconnection import IN, OUT, HubConnection
from rocketbroker.workers.hello import WorkerLoad
from rocketbroker.workers.link import HIGH_WATER, LOW_WATER, LinkStream
from rocketbroker.workers.link_frames import Kind, link_frame
from rocketbroker.workers.relayed_socket import RelayedSocket

#: So long at once connections of a worker that is gone are closed: what is told of each
#: end takes time, and there may be thousands.
CLOSE_SECONDS: Final = 0.004


class Hears(Protocol):
    """Gets what a worker says of itself."""

    def __call__(self, link: WorkerLink, kind: int, payload: bytes) -> object:
        """A frame that concerns no connection."""


@final
class WorkerLink:
    """The relayed connections of one worker.

    @ivar peer: the worker, for the log.
    @ivar stream: the link.
    @ivar sockets: by connection id.
    @ivar lost: how many of them there were at the end.
    @ivar heard_at: when the worker has sent something last, by the reactor's clock.
    @ivar load: what the worker has said of itself last.
    @ivar hears: gets all else that it says of itself.
    @ivar serves: whether it has begun to serve: it has said how it does.
    @ivar began: called when it has begun.
    """

    _log = Logger()

    def __init__(
        self,
        clock: IReactorTime,
        hub: Hub,
        stream: LinkStream,
        peer: str,
        ids: Iterator[int],
        gone: Callable[[], object],
    ) -> None:
        """
        @param ids: the numbers of connections, of all links of this process.
        @param gone: called when the worker is.
        """
        self.peer = peer
        self.stream = stream
        self.sockets: dict[int, RelayedSocket] = {}
        self.lost = 0
        self.heard_at = clock.seconds()
        self.load = WorkerLoad()
        self.hears: Hears | None = None
        self.serves = False
        self.began: Callable[[], object] = lambda: None
        self._fenced: set[RelayedSocket] = set()
        self._clock = clock
        self._hub = hub
        self._ids = ids
        self._gone = gone
        self._armed = IN
        self._unread: set[RelayedSocket] = set()
        self._waiting: set[RelayedSocket] = set()
        hub.sockets.watch_link(self)
        hub.watch()

    @property
    def is_open(self) -> bool:
        """Whether the worker can be given connections."""
        return not self.stream.is_broken

    def hand_over(
        self, sock: socket.socket, group: ConnectionGroup, host: str, port: int
    ) -> HubConnection:
        """Let the worker have a socket.

        @return: the connection, as the owner's responders see it.
        """
        relayed = RelayedSocket(self, next(self._ids))
        payload = json.dumps([host, port]).encode()
        self.stream.write(link_frame(Kind.OPEN, relayed.id, payload), sock)
        self._hub.link_has_output()
        self.sockets[relayed.id] = relayed
        relayed.connection = self._hub.relay(relayed, group, host, port)
        return relayed.connection

    def tell(self, kind: Kind, payload: bytes = b"") -> None:
        """Send a frame that concerns the worker itself."""
        self.write(link_frame(kind, 0, payload))

    # Called by sockets.

    @property
    def is_full(self) -> bool:
        """Whether it takes nothing now."""
        return self.stream.unsent > HIGH_WATER

    def write(self, data: bytes) -> None:
        """Send at the end of this turn, or soon."""
        self.stream.write(data)
        self._hub.link_has_output()

    def write_data(self, connection_id: int, data: bytes) -> None:
        """Send bytes of a connection at the end of this turn, or soon."""
        self.stream.write_data(connection_id, data)
        self._hub.link_has_output()

    def wait(self, sock: RelayedSocket) -> None:
        """Say when it is not full any more."""
        self._waiting.add(sock)
        self._hub.link_has_output()

    def unread(self, sock: RelayedSocket) -> None:
        """Bytes of that socket wait to be received."""
        self._unread.add(sock)
        self._hub.link_has_output()

    def closed(self, sock: RelayedSocket) -> None:
        """The hub has done with it."""
        self.sockets.pop(sock.id, None)
        self._unread.discard(sock)
        self._waiting.discard(sock)
        self._fenced.discard(sock)

    # Called by the hub.

    def fileno(self) -> int:
        """The link's descriptor."""
        return self.stream.fileno()

    def ready(self, events: int) -> list[HubConnection]:
        """The worker has sent something: the connections that it is for."""
        try:
            frames = self.stream.read()
        except RemoteProtocolError as error:
            self._log.error(
                "The frames of {peer} make no sense: {error}.",
                peer=self.peer,
                error=error,
            )
            self.abort()
            return []
        self.heard_at = self._hub.now
        fresh: list[HubConnection] = []
        find = self.sockets.get
        for kind, connection_id, payload in frames:
            sock = find(connection_id)
            if sock is None or sock.connection is None:
                if kind == Kind.LOAD:
                    self.load = WorkerLoad.from_json(payload)
                    if not self.serves:
                        self.serves = True
                        self.began()
                elif not connection_id and self.hears is not None:
                    self.hears(self, kind, payload)
                continue
            if kind == Kind.DATA:
                sock.deliver(payload)
                if sock.is_readable:
                    fresh.append(sock.connection)
                    self._unread.add(sock)
            elif kind == Kind.CLOSE:
                self._ended(sock, sock.connection, payload)
            elif kind == Kind.ACK:
                sock.acknowledged(int.from_bytes(payload, "big"))
            elif kind == Kind.FENCE:
                sock.fences += 1
                self._fenced.add(sock)
        if self.stream.is_broken:
            self.abort()
        return fresh

    def _ended(
        self, sock: RelayedSocket, connection: HubConnection, payload: bytes
    ) -> None:
        """The worker has closed a connection."""
        sock.end(payload[0] if payload else 0)
        if connection.congested or connection.closed:
            connection.lost()  # Nobody reads what it waits to send.
        else:
            self._unread.add(sock)

    def flush(self) -> None:
        """A turn ends: who has something left is served in the next."""
        stream = self.stream
        if self._fenced:
            self._pass_fences()
        if stream.unsent:
            stream.flush()
            if stream.is_broken:
                self.abort()
                return
        if self._waiting and stream.unsent < LOW_WATER:
            waiting, self._waiting = self._waiting, set()
            for sock in waiting:
                if sock.is_writable and sock.connection is not None:
                    self._hub.has_output(sock.connection)
        if self._unread:
            unread, self._unread = self._unread, set()
            for sock in unread:
                if sock.is_readable and sock.connection is not None:
                    self._unread.add(sock)
                    self._hub.resume(sock.connection)
        wanted = IN | OUT if stream.unsent else IN
        if wanted != self._armed:
            self._armed = wanted
            self._hub.rearm(stream.fileno(), wanted)

    def _pass_fences(self) -> None:
        """Say which connections have nothing left of what came before their fences: the
        turn has appended it."""
        for sock in [sock for sock in self._fenced if sock.is_served]:
            self._fenced.discard(sock)
            for _ in range(sock.fences):
                self.stream.write(link_frame(Kind.FENCE, sock.id))
            sock.fences = 0

    # The end.

    def abort(self) -> None:
        """The worker is gone, or its link of no use: so are its connections."""
        if self.stream.fileno() < 0:
            return
        self._hub.sockets.forget_link(self)
        self.stream.close()
        self.lost = len(self.sockets)
        for sock in self.sockets.values():
            sock.end(0)
        self._gone()
        self._close_some()

    def _close_some(self) -> None:
        """Close connections of a worker that is gone, and others later."""
        latest = self._clock.seconds() + CLOSE_SECONDS
        while self.sockets:
            _, sock = self.sockets.popitem()
            if sock.connection is not None:
                sock.connection.lost()
            if self.sockets and self._clock.seconds() >= latest:
                self._clock.callLater(0, self._close_some)
                return
