# -*- test-case-name: tests.remoting.test_hub -*-
"""Data connections of the hub: what one keeps, sending, and frames out of its bytes.

L{rocketbroker.remoting.hub} has the reasons and the invariants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from socket import socket
from struct import Struct
from typing import Any, Final, Protocol, cast, final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.remoting.buffers import (
    LARGE_ANSWER_BYTES,
    RECEIVE_BYTES,
    Buffers,
    rest_of,
)
from rocketbroker.remoting.command_channel import CommandChannel
from rocketbroker.remoting.connection_group import ConnectionGroup
from rocketbroker.remoting.table import NOT_SERVED
from rocketbroker.remoting.tls_socket import EnforcingSocket, TlsSocket
from rocketbroker.wire.frames import MAX_HEADER_BYTES, MAX_READ_BYTES, long_header
from rocketbroker.wire.other_protocols import HANDSHAKE, wrong_length

#: Frames longer than this, on average, are sent one by one: copying them together would
#: cost more than a system call each.
LARGE_FRAME: Final = 32768

#: Bodies of this length and more are sent from where they are, and not copied.
LARGE_BODY: Final = 4096

#: The system takes no more parts at once (C{UIO_MAXIOV}).
MAX_PARTS: Final = 1024

_WORDS: Final = Struct(
    ">I"  # length of the rest of the frame
    "I"  # serialization (8 bits), length of the header (24 bits)
)

# The kernel's numbers, so that this module can be imported where there is no epoll.
IN: Final = 0x001
OUT: Final = 0x004
GONE: Final = 0x008 | 0x010  # EPOLLERR, EPOLLHUP

#: No descriptor of the system is so high. Beyond are sockets of other processes, which
#: are relayed.
FIRST_RELAYED: Final = 1 << 32


class ByteSocket(Protocol):
    """A connected socket that does not block, as a connection uses it."""

    def fileno(self) -> int:
        """Its descriptor."""

    def recv(self, size: int, /) -> bytes:
        """Some of the bytes that have come; of a relayed one all of them.

        @raise BlockingIOError: there are none now.
        """

    def send(self, data: bytes | memoryview, /) -> int:
        """Take bytes; how many.

        @raise BlockingIOError: none now.
        """

    def sendmsg(self, parts: list[bytes | memoryview], /) -> int:
        """Take the bytes of parts; how many.

        @raise BlockingIOError: none now.
        """

    def getsockname(self) -> Any:
        """The address of this side; of a relayed one nothing: another process has
        it."""

    def close(self) -> None:
        """Close it."""


class HubTurn(Protocol):
    """The hub, as a connection uses it."""

    now: float
    in_turn: bool
    latest: float
    sent_now: int
    seconds: Callable[[], float]
    buffers: Buffers

    def has_output(self, connection: HubConnection) -> None:
        """It has something to send, or to end."""

    def resume(self, connection: HubConnection) -> None:
        """It is not congested any more and has frames left from before."""

    def rearm(self, descriptor: int, events: int) -> None:
        """Wait for C{events} on that descriptor."""

    def forget(self, descriptor: int) -> None:
        """That descriptor is about to be closed."""


@final
class HubConnection(CommandChannel):
    """A connection of the hub.

    @ivar queued: whether it waits for its turn.
    @ivar halted: whether frames are not to be taken from it: closed, congested, paused
        or held.
    @ivar paused: whether it waits for memory (L{Buffers}, as the attributes C{kept},
        C{is_reserved}, C{is_proven} and C{counted} are).
    @ivar held: whether the other end of a link wants nothing of it for now.
    @ivar partial: received bytes that are no whole frame yet; C{None} for none.
    @ivar wanted: how many bytes C{partial} must have before it is worth a look.
    @ivar since: when C{partial} began.
    @ivar received_at: when the frames that are left came.
    @ivar overdue_at: when the first of them may have waited too long.
    @ivar unsent: bytes that wait to be sent.
    @ivar socket: that of the system, or one of a link.
    """

    __slots__ = (
        "_armed",
        "_descriptor",
        "_in_parts",
        "_out",
        "_rest",
        "buffers",
        "counted",
        "halted",
        "held",
        "hub",
        "is_proven",
        "is_reserved",
        "kept",
        "overdue_at",
        "partial",
        "paused",
        "queued",
        "received_at",
        "since",
        "socket",
        "unsent",
        "wanted",
    )

    def __init__(
        self,
        hub: HubTurn,
        sock: ByteSocket,
        group: ConnectionGroup,
        host: str,
        port: int,
    ) -> None:
        super().__init__(group, host, port)
        self.queued = False
        self.halted = False
        self.held = False
        self.paused = False
        self.kept = 0
        self.is_reserved = False
        self.is_proven = False
        self.counted = 0
        self.partial: bytearray | None = None
        self.wanted = 0
        self.since = 0.0
        self.received_at = 0.0
        self.overdue_at = 0.0
        self.unsent = 0
        self.hub = hub
        self.buffers = hub.buffers
        self.socket = sock
        self._descriptor = sock.fileno()
        self._out: list[bytes | memoryview] | None = None
        self._in_parts = False
        self._rest: memoryview | None = None
        self._armed = IN

    def local_host(self) -> str:
        """See L{IConnection.local_host}."""
        name = None if self.closed else self.socket.getsockname()
        return str(name[0]) if isinstance(name, tuple) else ""

    def send(self, frames: bytes, count: int = 1) -> None:
        """Send whole frames, at the end of this turn; nothing once it is closed."""
        if self.closed:
            return
        out, group, size = self._out, self.group, len(frames)
        if out is None:
            self._out = [frames]
            self.hub.has_output(self)
        else:
            out.append(frames)
        group.counts.frames_out += count
        self.unsent = unsent = self.unsent + size
        if size >= LARGE_ANSWER_BYTES:
            self._count()
        if unsent > group.limits.high_water and not self.congested:
            group.counts.congestions += 1
            self.congested = self.halted = True
            self.hub.has_output(self)  # Or the epoll would go on to report requests.

    def send_now(self, frames: bytes, count: int = 1) -> None:
        """See L{IConnection.send_now}."""
        size = len(frames)
        if self.unsent or self.halted or size >= LARGE_ANSWER_BYTES:
            self.send(frames, count)
            return
        try:
            sent = self.socket.send(frames)
        except OSError:
            # It is full, or the peer is gone: the end of the turn sees to it.
            self.send(frames, count)
            return
        hub, counts = self.hub, self.group.counts
        hub.sent_now += 1
        counts.frames_out += count
        counts.bytes_out += sent
        self.last_moved = hub.now
        if sent < size:
            self.unsent = size - sent
            self._keep_rest(frames, sent)

    def send_parts(
        self, head: bytes, body: Sequence[bytes | memoryview], size: int
    ) -> None:
        """See L{IConnection.send_parts}."""
        if size < LARGE_BODY or self.closed or not self.hub.in_turn:
            self.send(b"".join([head, *body]))
            return
        self.unsent += size
        self.send(head)
        out = self._out
        assert out is not None
        out += body
        self._in_parts = True
        if size >= LARGE_ANSWER_BYTES:
            self._count()

    def flush(self) -> None:
        """Give the kernel all unsent bytes; nearly always it takes them at once."""
        out, size = self._out, self.unsent
        if out is None or self.halted or self._rest is not None:
            self._flush_slowly()
            return
        count = len(out)
        in_parts = self._in_parts and count <= MAX_PARTS
        if count > 1 and size > count * LARGE_FRAME and not in_parts:
            self._flush_slowly()
            return
        self._out = None
        self._in_parts = False
        try:
            if in_parts:
                sent = self.socket.sendmsg(out)
            else:
                sent = self.socket.send(out[0] if count == 1 else b"".join(out))
        except BlockingIOError:
            sent = 0
        except OSError:
            self.lost()
            return
        self.group.counts.bytes_out += sent
        self.last_moved = self.hub.now
        self.unsent = size - sent
        if sent < size:
            self._keep_rest(b"".join(out), sent)
        elif self.counted:
            self._count()

    def _keep_rest(self, data: bytes | memoryview, sent: int) -> None:
        """The kernel has not taken all."""
        self._rest = rest_of(data, sent)
        self._arm()
        self._count()

    def _flush_slowly(self) -> None:
        """Give the kernel what it takes: a rest first, large frames one by one."""
        if self._descriptor < 0:
            return
        if self._in_parts:
            # It may take long.
            self._out = [bytes(each) for each in self._out or ()]
            self._in_parts = False
        while self._rest is not None or self._out:
            data: bytes | memoryview | None = self._rest
            if data is None:
                data = self._next()
            try:
                sent = self.socket.send(data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.lost()
                return
            self.unsent -= sent
            self.group.counts.bytes_out += sent
            if sent:
                self.last_moved = self.hub.now
            if sent < len(data):
                self._rest = rest_of(data, sent)
                break
            self._rest = None
        self._count()
        if self.congested and self.unsent <= self.group.limits.low_water:
            self.congested = False
            self._go_on()
        self._arm()

    def _count(self) -> None:
        """Count the memory of what is unsent: of a rest, all that it is a view of."""
        rest, size = self._rest, self.unsent
        if rest is not None:
            size += len(cast(bytes, rest.obj)) - len(rest)
        self.buffers.unread(self, size)

    def _go_on(self) -> None:
        """Take frames again, and those that are left first, if nothing forbids it."""
        self.halted = self.closed or self.congested or self.paused or self.held
        if self.partial is not None and not self.halted:
            self.hub.resume(self)

    @property
    def crowded(self) -> bool:
        """Whether so many answers are unread that no large one is to be made."""
        return self.buffers.is_crowded

    def pause(self) -> None:
        """It is not read, and its frames are not taken, until L{go_on}."""
        self.paused = self.halted = True
        self.group.counts.pauses += 1
        self._arm()

    def go_on(self) -> None:
        """It is read again."""
        self.paused = False
        self._go_on()
        self._arm()

    def hold(self, held: bool) -> None:
        """Do not read it, nor take its frames, while the other end of a link cannot
        take more."""
        if held != self.held and not self.closed:
            self.held = held
            self.halted = True
            if not held:
                self._go_on()
            self._arm()

    # TLS; L{rocketbroker.remoting.tls_socket}.

    def start_tls(self, first: bytes) -> None:
        """The peer speaks TLS from here on.

        @param first: what it has sent of it.
        """
        port, sock = self.group.tls, self.socket
        assert port is not None
        self.is_new = False
        self.group.counts.bytes_in -= len(first)  # it counts what TLS carries
        system = sock.system if isinstance(sock, EnforcingSocket) else sock
        self.socket = TlsSocket(self, cast(socket, system), first)
        port.begin(self, self.socket)
        self.watch_close(lambda _: port.left(self))

    def failed_tls(self, error: RemoteProtocolError) -> None:
        """See L{TlsOwner.failed_tls}."""
        self.break_off(error)

    def opened_tls(self) -> None:
        """See L{TlsOwner.opened_tls}."""
        port = self.group.tls
        if port is not None:
            port.opened_by(self)

    def go_on_tls(self) -> None:
        """There is a context: read again."""
        self.hub.resume(self)

    def _next(self) -> bytes | memoryview:
        """The next bytes to send: one large frame, or all small ones joined."""
        out = self._out
        assert out is not None
        if self.unsent > len(out) * LARGE_FRAME and len(out) > 1:
            return out.pop(0)
        self._out = None
        return out[0] if len(out) == 1 else b"".join(out)

    def _arm(self) -> None:
        """Set the events to wait for; end a closed connection that has sent all."""
        wanted = 0 if self.halted else IN
        if self._rest is not None:
            wanted |= OUT
        elif self.closed:
            self._finish()
            return
        if wanted != self._armed:
            self._armed = wanted
            self.hub.rearm(self._descriptor, wanted)

    def keep(self, rest: bytes) -> None:
        """Keep bytes that cannot be taken yet."""
        self.partial = bytearray(rest)
        self.since = self.hub.now
        self.buffers.received(self)

    def keep_more(self, data: bytes) -> None:
        """More of the same frame came, and it is not finished."""
        assert self.partial is not None
        self.partial += data
        self.buffers.received(self)

    def take_partial(self) -> bytearray:
        """The kept bytes, which are kept no longer."""
        partial, self.partial = self.partial, None
        self.buffers.taken(self)
        return bytearray() if partial is None else partial

    def close(self) -> None:
        """Close it; bytes sent before still go out if the peer takes them."""
        if self.closed:
            return
        self.closed = self.halted = True
        self.take_partial()
        self.was_closed()
        self.hub.has_output(self)

    def abort(self) -> None:
        """Close it at once; unsent bytes are lost."""
        self._finish()
        if not self.closed:
            self.closed = self.halted = True
            self.was_closed()

    def lost(self) -> None:
        """The peer closed it, or the network broke."""
        if not self.closed:
            self.group.counts.lost += 1
        self.abort()

    def _finish(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor < 0:
            return
        self.hub.forget(descriptor)
        self.socket.close()
        self.take_partial()
        self._rest = None
        self._out = None
        self.unsent = 0
        self._count()
        self.group.left(self)


def serve(connection: HubConnection) -> bool:
    """Take the frames that are left from before; if there are none, receive once, and
    take those that are whole now.

    @return: whether it has had its time and frames are left.
    """
    partial, buffers = connection.partial, connection.buffers
    if partial is not None and len(partial) >= connection.wanted:
        return take_frames(connection, bytes(connection.take_partial()))
    most = buffers.receive_bytes
    if connection.is_reserved:
        most = RECEIVE_BYTES
    elif buffers.is_full:
        buffers.wait_to_read(connection)
        return False
    try:
        data = connection.socket.recv(most)
    except BlockingIOError:
        return False
    except OSError:
        connection.lost()
        return False
    if not data:
        connection.lost()
        return False
    connection.group.counts.bytes_in += len(data)
    if partial is not None:
        if len(partial) + len(data) < connection.wanted:
            connection.keep_more(data)
            return False
        partial = connection.take_partial()
        partial += data
        data = bytes(partial)
    elif connection.is_reserved:
        buffers.taken(connection)
    elif take_single(connection, data):
        return False
    are_left = take_frames(connection, data)
    if connection.partial is not None:
        connection.received_at = now = connection.hub.now
        connection.overdue_at = now + connection.group.table.least_wait
    return are_left


def take_single(connection: HubConnection, data: bytes) -> bool:
    """Hand on the one request that came, if it is for a hot responder.

    That is how clients ask that wait for each answer, and setting out to take several
    frames costs as much again.

    @return: whether it was so; else nothing was done.
    """
    group, size = connection.group, len(data)
    if not 8 < size <= group.limits.frame_bytes:
        return False
    length, word = _WORDS.unpack_from(data)
    if length != size - 4 or word > size - 8:
        return False
    entry = group.table.hot.get(data[8:20])
    if entry is None or entry.is_large or group.relay is not None:
        return False
    group.counts.frames_in += 1
    connection.last_code = entry.code
    if entry.run is not None and entry.run(connection, data, 0, size)[0]:
        entry.taken += 1
        return True
    body = 8 + word
    try:
        if entry.responder(connection, data[8:body], data[body:]):
            entry.taken += 1
        else:
            connection.frame_received(data[4:])
    except Exception as error:
        connection.hot_failed(data[4:], error)
    return True


def take_frames(connection: HubConnection, data: bytes) -> bool:
    """Hand each whole frame to its responder while the connection has time; keep the
    rest.

    @return: whether whole frames are left because its time is over.
    """
    group, hub = connection.group, connection.hub
    if group.relay is not None:
        return _left_of(connection, data, group.relay.frames(connection, data))
    hot = group.table.hot
    most = group.limits.frame_bytes - 4
    unpack = _WORDS.unpack_from
    size = len(data)
    start = 0
    frames = 0
    entry, tried, runs = None, -1, group.table.has_runs
    while size - start >= 8 and not connection.halted:
        length, word = unpack(data, start)
        if not 4 <= length <= most:
            break
        end = start + 4 + length
        if end > size:
            break
        head = start + 8
        # With another serialization in its first byte the word exceeds any length.
        entry = hot.get(data[head : head + 12]) if word <= length - 4 else None
        if runs and entry is not None and entry.run is not None and start != tried:
            count, tried = entry.run(connection, data, start, most)
            if count:
                start = tried
                frames += count
                entry.taken += count
                if hub.seconds() >= hub.latest:
                    break
                continue
        start = end
        frames += 1
        if entry is None:
            connection.frame_received(data[head - 4 : end])
        else:
            if entry.is_large and hub.buffers.is_crowded:
                start = head - 8
                frames -= 1
                hub.buffers.wait_to_ask(connection)
                break
            body = head + word
            try:
                if entry.responder(connection, data[head:body], data[body:end]):
                    entry.taken += 1
                    if frames & entry.unwatched:
                        continue
                else:
                    # Its code may be another one.
                    entry = None
                    connection.frame_received(data[head - 4 : end])
            except Exception as error:
                connection.hot_failed(data[head - 4 : end], error)
        if hub.seconds() >= hub.latest:
            break
    if entry is not None:
        connection.last_code = entry.code
    group.counts.frames_in += frames
    return _left_of(connection, data, start)


def _left_of(connection: HubConnection, data: bytes, start: int) -> bool:
    """Keep what is left of C{data} from C{start} on.

    @return: whether whole frames are left that may be taken.
    """
    if start == len(data) or connection.closed:
        return False
    rest = data[start:] if start else data
    return keep(connection, rest) and not connection.halted


def keep(connection: HubConnection, rest: bytes) -> bool:
    """Keep part of a frame, or the frames with which a congested connection waits.

    Here, off the fast path, lengths that cannot be are found; the header of a proxy has
    one, and so has a ClientHello of TLS. Frames with longer headers than are read here
    all come by, because no reading brings a whole one.

    @return: whether a whole frame is kept.
    """
    size = len(rest)
    connection.wanted = 8
    if size >= 4:
        length = int.from_bytes(rest[:4], "big")
        most = connection.group.limits.frame_bytes
        if length < 4 or length + 4 > most:
            return _keep_foreign(connection, rest, wrong_length(length, most))
    if size >= 8:
        connection.wanted = length + 4
        header = _WORDS.unpack_from(rest)[1] & MAX_HEADER_BYTES
        if header > MAX_READ_BYTES:
            _break_off(connection, rest, long_header(header))
            return False
    connection.keep(rest)
    return size >= connection.wanted


def _keep_foreign(
    connection: HubConnection, rest: bytes, error: RemoteProtocolError
) -> bool:
    """Keep what is behind the header of a proxy, or begin with TLS, before the first
    frame; other bytes break off.

    @return: whether a whole frame is kept.
    """
    behind: bytes | None = rest
    if connection.last_code == NOT_SERVED and _begins_tls(connection, rest):
        return False
    if connection.is_new and connection.last_code == NOT_SERVED:
        try:
            behind = connection.after_proxy(rest)
        except RemoteProtocolError as wrong:
            error = wrong
    if behind is None:
        connection.wanted = len(rest) + 1
        connection.keep(rest)
        return False
    if behind == rest:
        _break_off(connection, rest, error)
        return False
    relay = connection.group.relay
    if relay is not None:
        relay.proxy_header(connection, rest[: len(rest) - len(behind)])
    if isinstance(connection.socket, EnforcingSocket):
        connection.start_tls(behind)
        return False
    return bool(behind) and keep(connection, behind)


def _begins_tls(connection: HubConnection, rest: bytes) -> bool:
    """Whether the peer may and does speak TLS from C{rest} on; it is begun then."""
    if connection.group.tls is None or not rest.startswith(HANDSHAKE):
        return False
    if isinstance(connection.socket, TlsSocket):
        return False
    connection.start_tls(rest)
    return True


def _break_off(
    connection: HubConnection, rest: bytes, error: RemoteProtocolError
) -> None:
    """The peer broke the protocol with C{rest}. The process that answers its requests
    closes the connection, when those before are answered."""
    relay = connection.group.relay
    if relay is None:
        connection.break_off(error)
    else:
        relay.garbage(connection, rest)
