# -*- test-case-name: tests.workers.test_relay -*-
"""The worker's end of a link: requests of clients to the owner, its answers back.

A turn of the worker's hub brings bytes of clients and frames of the link. Whole frames
of a client go on as they came, those of one reading together, and all that a turn has
brought leaves with one write at its end. Nothing is decoded: the length of each frame
is all that is read of it.

The seam
========

The table of the worker's connections has the responders that the worker serves itself:
sends, while it may append them
(L{worker_sends<rocketbroker.workers.worker_sends>}). It looks there first; what is not
there, and what they leave, is relayed.

Sends of one connection are stored in the order in which they came. So while one that
was relayed may not be stored yet, the next ones of that connection are relayed, too:
behind it goes a FENCE, which comes back when the owner has appended what came before
(the states are in L{relayed_client}). And before one is relayed, the worker's own of
this turn are appended.

Back-pressure
=============

  - A client that does not read: the owner sends C{WINDOW_BYTES} for it, and more when
    the client's kernel has taken them (ACK). What else it has for it it keeps, as if
    the kernel's buffer were full; so it finds the connection congested as any other.
  - A client that the owner does not want to read, for that or because its requests
    wait: the owner says PAUSE, and the connection is not read.
  - An owner that is slower than all clients together: the link holds more than
    C{HIGH_WATER}, and each client that brings something waits until it has less than
    C{LOW_WATER}.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from typing import Final, final

from twisted.logger import Logger

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.counts import Counts
from rocketbroker.remoting.hub import Hub
from rocketbroker.remoting.hubconnection import IN, OUT, HubConnection
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.workers.link import HIGH_WATER, LOW_WATER, LinkStream
from rocketbroker.workers.link_frames import (
    ACK_BYTES,
    Kind,
    LinkFrame,
    Reason,
    link_frame,
)
from rocketbroker.workers.relayed_client import (
    BROKEN,
    NO_ROOM,
    PAUSED,
    RelayedClient,
    SendOrder,
    TakesPulls,
    is_send,
)

#: The last code of a connection whose requests were relayed: no code of the protocol.
RELAYED: Final = 0

_WORDS: Final = Struct(
    ">I"  # length of the rest of the frame
    "I"  # serialization (8 bits), length of the header (24 bits)
)


# Members of an enumeration are slow to look up.
_OWN: Final = SendOrder.OWN

#: How the header of a pull begins.
PULL: Final = b'{"code":11,"'

#: Requests with longer headers are relayed: properties have a limit, and the owner's
#: words for it.
MAX_HEADER: Final = 16 << 10


@final
class OwnerRelay:
    """All connections of a worker, relayed to its owner.

    @ivar peer: the owner, for the log.
    @ivar stream: the link.
    @ivar frames_relayed: frames of clients that went to the owner.
    @ivar served: frames of this turn that the worker has taken, in order: of whom, and
        where they are. They are relayed all the same if what was to be done at the end
        of the turn cannot be.
    @ivar own_most: a longer frame, without its first word, is relayed.
    @ivar begin: whether the worker serves anything itself now, before it is asked to.
    @ivar finish: does now what was to be done at the end of the turn.
    @ivar pulls: what answers pulls; C{None}: they are relayed.
    """

    _log = Logger()

    def __init__(
        self,
        hub: Hub,
        group: ConnectionGroup,
        stream: LinkStream,
        told: Callable[[LinkFrame], object],
        gone: Callable[[], object],
    ) -> None:
        """
        @param group: the clients' connections.
        @param told: gets what concerns the worker itself.
        @param gone: called when the owner is.
        """
        self.peer = "the owner"
        self.stream = stream
        self.frames_relayed = 0
        self.served: list[tuple[RelayedClient, bytes, int, int]] = []
        self.own_most = group.limits.frame_bytes
        self.begin: Callable[[], bool] = lambda: True
        self.finish: Callable[[], object] = self.served.clear
        self.pulls: TakesPulls | None = None
        self._unfenced: list[RelayedClient] = []
        self._hub = hub
        self._group = group
        self._told = told
        self._gone = gone
        self._armed = IN
        self._clients: dict[int, RelayedClient] = {}
        self._of: dict[IConnection, RelayedClient] = {}
        self._answered: dict[int, RelayedClient] = {}
        self._waiting: list[RelayedClient] = []
        self._closes = self._reasons(group.counts)
        group.relay = self
        hub.sockets.watch_link(self)
        hub.watch()

    # From clients.

    def frames(self, connection: HubConnection, data: bytes) -> int:
        """Pass whole frames on; how many bytes they are."""
        client = self._of[connection]
        if self.stream.unsent > HIGH_WATER:
            self._waiting.append(client)
            client.hold(NO_ROOM)
            return 0
        if self._group.table.hot or self.pulls is not None:
            start, frames = self._serve(client, data)
        else:
            start, frames = self._whole(data)
            self._pass(client, data[:start])
        if start:
            connection.last_code = RELAYED
        self.frames_relayed += frames
        self._group.counts.frames_in += frames
        return start

    def _whole(self, data: bytes) -> tuple[int, int]:
        """The end of the whole frames with which data begins, and how many they are."""
        most = self._group.limits.frame_bytes - 4
        unpack = _WORDS.unpack_from
        size = len(data)
        start = frames = 0
        while size - start >= 8:
            length, _ = unpack(data, start)
            end = start + 4 + length
            if end > size or not 4 <= length <= most:
                break
            frames += 1
            start = end
        return start, frames

    def _serve(self, client: RelayedClient, data: bytes) -> tuple[int, int]:
        """Let the worker itself serve what it can, and pass on the rest.

        @return: the end of the whole frames, and how many were passed on.
        """
        is_own = client.order is _OWN and self.begin()
        connection, find = client.connection, self._group.table.hot.get
        most, own_most = self._group.limits.frame_bytes - 4, self.own_most
        run_most = min(own_most, MAX_HEADER)
        size, unpack = len(data), _WORDS.unpack_from
        # What is left to be passed on begins there; what is served, if anything is.
        begin, start, frames, served = 0, 0, 0, -1
        while size - start >= 8 and not connection.halted:
            length, word = unpack(data, start)
            head, end = start + 8, start + 4 + length
            if end > size or not 4 <= length <= most:
                break
            key = data[head : head + 12] if word <= length - 4 else b""
            if key == PULL and self.pulls is not None:
                if self._pulled(client, self.pulls, data[start:end], word):
                    served = self._take_span(client, data, served, start)
                    self._pass(client, data[begin:start])
                    begin = start = end
                    if self._hub.seconds() >= self._hub.latest:
                        break
                    continue
                if connection.halted:
                    break
            if is_own and word <= MAX_HEADER and length <= own_most:
                entry = find(key)
                taken = 0
                if entry is not None:
                    if entry.run is not None:
                        taken, stop = entry.run(connection, data, start, run_most)
                    body = head + word
                    try:
                        if taken:
                            end = stop
                        elif entry.responder(
                            connection, data[head:body], data[body:end]
                        ):
                            taken = 1
                    except Exception as error:
                        connection.hot_failed(data[start + 4 : end], error)
                        self._take_span(client, data, served, start)
                        self._pass(client, data[begin:start])
                        begin = start = end
                        served = -1
                        continue
                if taken and entry is not None:
                    entry.taken += taken
                    self._group.counts.frames_in += taken
                    if served < 0:
                        self._pass(client, data[begin:start])
                        served = start
                    begin = start = end
                    continue
            if served >= 0:
                served = self._take_span(client, data, served, start)
            frames += 1
            if is_send(data, start):
                if self.served:
                    self.finish()
                self._fence(client)
                is_own = False
            start = end
        self._take_span(client, data, served, start)
        self._pass(client, data[begin:start])
        return start, frames

    def _pulled(
        self, client: RelayedClient, pulls: TakesPulls, frame: bytes, word: int
    ) -> bool:
        """Let the worker answer a pull; whether it does.

        While unread answers take too much memory the connection waits with it.

        @param word: the length of the header.
        """
        connection = client.connection
        if self._hub.buffers.is_crowded:
            self._hub.buffers.wait_to_ask(connection)
            return False
        try:
            done = pulls.take(client, frame[8 : 8 + word], len(frame))
        except Exception as error:
            connection.hot_failed(frame[4:], error)
            return True
        self._group.counts.frames_in += done
        return done

    def _take_span(
        self, client: RelayedClient, data: bytes, begin: int, end: int
    ) -> int:
        """Frames that follow one another are served, if any are.

        @return: where the next ones begin: nowhere yet.
        """
        if 0 <= begin < end:
            self.served.append((client, data, begin, end))
        return -1

    def _fence(self, client: RelayedClient) -> None:
        """Relay all sends of a client until those before are stored."""
        if client.relayed():
            self._unfenced.append(client)

    def take_back(self) -> None:
        """Relay what was served in this turn."""
        for client, data, begin, end in self.served:
            if client.id in self._clients:
                self._pass(client, data[begin:end])
                self._fence(client)
        self.served.clear()

    def _pass(self, client: RelayedClient, data: bytes) -> None:
        if data:
            pulls = self.pulls
            if pulls is not None and pulls.is_unreported:
                # The owner hears of offsets in the order in which they were committed.
                pulls.report()
            self.stream.write_data(client.id, data)

    def proxy_header(self, connection: HubConnection, header: bytes) -> None:
        """Let the owner see which address logs and tables are to show.

        It may close the connection for it: until it has seen the header, sends go to
        it, too.
        """
        client = self._of[connection]
        self._pass(client, header)
        self._fence(client)

    def garbage(self, connection: HubConnection, data: bytes) -> None:
        """Let the owner see why it has to close the connection."""
        client = self._of[connection]
        client.hold(BROKEN)
        self._pass(client, data)

    def _closed(self, connection: IConnection) -> None:
        """A connection is gone, and the owner has not asked for it."""
        client = self._of.pop(connection, None)
        if client is None:
            return
        del self._clients[client.id]
        before = self._closes
        self._closes = self._reasons(self._group.counts)
        changed = [r for r in Reason if self._closes[r] != before[r]]
        reason = changed[0] if changed else Reason.LOST
        self.tell(link_frame(Kind.CLOSE, client.id, bytes([reason])))

    @staticmethod
    def _reasons(counts: Counts) -> tuple[int, ...]:
        """How many connections were closed so far, for each reason.

        A connection is counted just before it is closed; so the count that differs
        tells why.
        """
        return counts.lost, counts.idle, counts.stalled

    def tell(self, frame: bytes) -> None:
        """Send a frame to the owner."""
        self.stream.write(frame)
        self._hub.link_has_output()

    # From the owner; called by the hub.

    def fileno(self) -> int:
        """The link's descriptor."""
        return self.stream.fileno()

    def ready(self, events: int) -> tuple[HubConnection, ...]:
        """The owner has sent something."""
        try:
            frames = self.stream.read()
        except RemoteProtocolError as error:
            self._log.error("The owner's frames make no sense: {error}.", error=error)
            self.abort()
            return ()
        for kind, connection_id, payload in frames:
            if kind == Kind.DATA:
                client = self._clients.get(connection_id)
                if client is not None:
                    client.connection.send(payload)
                    client.unacknowledged += len(payload)
                    self._answered[connection_id] = client
            elif kind == Kind.OPEN:
                self._open(connection_id, payload)
            elif connection_id:
                self._control(kind, connection_id)
            else:
                self._told(LinkFrame(kind, connection_id, payload))
        if self.stream.is_broken:
            self.abort()
        return ()

    def _open(self, connection_id: int, payload: bytes) -> None:
        host, port = json.loads(payload)
        sock = self.stream.passed_socket()
        connection = self._hub.adopt(sock, self._group, host, port)
        client = RelayedClient(connection_id, connection)
        self._clients[connection_id] = client
        self._of[connection] = client
        connection.watch_close(self._closed)

    def _control(self, kind: int, connection_id: int) -> None:
        client = self._clients.get(connection_id)
        if client is None:
            return  # It was closed before the owner knew.
        if kind == Kind.FENCE:
            client.fence_back()
        elif kind == Kind.CLOSE:
            del self._clients[connection_id]
            del self._of[client.connection]
            client.connection.close()
        elif kind == Kind.PAUSE:
            client.hold(PAUSED)
        elif kind == Kind.RESUME:
            client.free(PAUSED)

    def flush(self) -> None:
        """A turn ends: send all to the owner."""
        if self._answered:
            self._acknowledge()
        stream = self.stream
        for client in self._unfenced:
            client.fenced()
            stream.write(link_frame(Kind.FENCE, client.id))
        self._unfenced.clear()
        if stream.unsent:
            stream.flush()
            if stream.is_broken:
                self.abort()
                return
        wanted = IN | OUT if stream.unsent else IN
        if wanted != self._armed:
            self._armed = wanted
            self._hub.rearm(stream.fileno(), wanted)
        if self._waiting and stream.unsent < LOW_WATER:
            waiting, self._waiting = self._waiting, []
            for client in waiting:
                client.free(NO_ROOM)

    def _acknowledge(self) -> None:
        """Say how much was taken of what those had that were answered lately."""
        answered = self._answered
        for client in [*answered.values()]:
            unsent = client.connection.unsent
            taken = client.unacknowledged - unsent
            if taken >= ACK_BYTES:
                client.unacknowledged = unsent
                payload = taken.to_bytes(4, "big")
                self.stream.write(link_frame(Kind.ACK, client.id, payload))
            if not unsent or client.connection.closed:
                del answered[client.id]

    # The end.

    def abort(self) -> None:
        """The owner is gone, or the link is of no use."""
        if self.stream.fileno() >= 0:
            self._hub.sockets.forget_link(self)
            self.stream.close()
            self._gone()
