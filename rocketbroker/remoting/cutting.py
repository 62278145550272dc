# -*- test-case-name: tests.remoting.test_hub -*-
"""From the bytes of the hub's connections to frames, and to their responders.

L{rocketbroker.remoting.hub} has the reasons and the invariants.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.remoting.buffers import RECEIVE_BYTES
from rocketbroker.remoting.hubconnection import HubConnection
from rocketbroker.remoting.table import NOT_SERVED
from rocketbroker.wire.foreign import wrong_length
from rocketbroker.wire.frames import MAX_HEADER_BYTES, MAX_READ_BYTES, long_header

_WORDS: Final = Struct(
    ">I"  # length of the rest of the frame
    "I"  # serialization (8 bits), length of the header (24 bits)
)


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
    one. Frames with longer headers than are read here all come by, because no reading
    brings a whole one.

    @return: whether a whole frame is kept.
    """
    size = len(rest)
    connection.wanted = 8
    if size >= 4:
        length = int.from_bytes(rest[:4], "big")
        most = connection.group.limits.frame_bytes
        if length < 4 or length + 4 > most:
            return _keep_proxied(connection, rest, wrong_length(length, most))
    if size >= 8:
        connection.wanted = length + 4
        header = _WORDS.unpack_from(rest)[1] & MAX_HEADER_BYTES
        if header > MAX_READ_BYTES:
            _break_off(connection, rest, long_header(header))
            return False
    connection.keep(rest)
    return size >= connection.wanted


def _keep_proxied(
    connection: HubConnection, rest: bytes, error: RemoteProtocolError
) -> bool:
    """Keep what is behind the header of a proxy; bytes that are none break off.

    @return: whether a whole frame is kept.
    """
    behind: bytes | None = rest
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
    return bool(behind) and keep(connection, behind)


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
