# -*- test-case-name: tests.workers.test_link_frames -*-
"""The frames of a link between an owner and a worker.

A frame has a head and a payload. C{length} counts the payload only::

    bytes   0       4      5        8              16
            length  kind   (zero)   connection id  payload...

Both ends are processes of one broker and of one version, so there is none on the wire.

Pure: bytes in, frames out.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import Final, NamedTuple, final

from rocketbroker.errors import RemoteProtocolError

_HEAD: Final = Struct(
    ">I"  # length of the payload
    "B"  # kind
    "3x"  # zero
    "Q"  # connection id; 0 for the worker itself
)
HEAD_BYTES: Final = _HEAD.size

#: The longest payload: one reading of a connection, with the longest request of the
#: protocol (16 MiB) before it, or the answers that one connection is given at once.
MAX_PAYLOAD_BYTES: Final = 64 << 20


class Kind(IntEnum):
    """What a frame says. Connection ids are the owner's and come once only.

    The kinds:

      - START, to the worker: its settings, as JSON
      - OPEN, to the worker, with a descriptor: serve this connection; the payload is
        the other side's address
      - DATA, both ways: bytes of the connection; to the owner these are whole requests
        and responses, and the header of a proxy before the first
      - ACK, to the owner: so many bytes of this connection the client's kernel has
        taken
      - CLOSE, to the worker: close when all is sent; to the owner: it is closed; one
        byte says why
      - PAUSE and RESUME, to the worker: read no more of this connection; again
      - LOAD, to the owner: the worker's counters, as JSON
      - STOP, to the worker: close all connections when all is sent, and end
      - ALLOW, to the worker: what it may append itself, and how, as JSON
      - ASK, to the owner: whether it may append to a queue, as JSON
      - QUEUE, to the worker: the answer
      - APPENDED, to the owner: what the worker has appended, counted, as JSON
      - PULLS, to the worker: which pulls it may answer itself, and how, as JSON
      - ASK_PULL, to the owner: whether it may answer pulls of a group from a queue, as
        JSON; ROUTE, to the worker: the answer
      - PULLED, to the owner: what the worker has answered, counted, as JSON
      - WAIT, to the owner: pulls wait at the end of a queue: its slot and its end, 8
        bytes each
      - WAKE, to the worker: that queue has grown: its slot, 8 bytes; L{WAKE_ALL}: all
        pulls that wait are to be answered
      - FENCE, to the owner: tell when all that came before on this connection is done;
        to the worker: it is
    """

    START = 1
    OPEN = 2
    DATA = 3
    ACK = 4
    CLOSE = 5
    PAUSE = 6
    RESUME = 7
    LOAD = 8
    STOP = 9
    ALLOW = 10
    ASK = 11
    QUEUE = 12
    APPENDED = 13
    FENCE = 14
    PULLS = 15
    ASK_PULL = 16
    ROUTE = 17
    PULLED = 18
    WAIT = 19
    WAKE = 20


class Reason(IntEnum):
    """Why a worker closed a connection."""

    LOST = 0
    IDLE = 1
    STALLED = 2


KINDS: Final = frozenset(Kind)

#: The payload of WAIT: the slot of a queue, and where it ended.
WAIT_WORDS: Final = Struct("<qq")

#: The payload of WAKE: a slot.
WAKE_WORD: Final = Struct("<q")

#: In the place of a slot in WAKE: all queues.
WAKE_ALL: Final = -1

#: Bytes of one connection that the worker may have and the client's kernel has not
#: taken: what the kernel's own buffer may hold of a connection without a worker.
WINDOW_BYTES: Final = 128 * 1024

#: So many bytes are acknowledged together.
ACK_BYTES: Final = WINDOW_BYTES // 4


class LinkFrame(NamedTuple):
    """A frame of the link between owner and worker.

    @ivar kind: one of L{Kind}.
    @ivar connection: the connection's id; 0 for the worker itself.
    @ivar payload: its bytes.
    """

    kind: int
    connection: int
    payload: bytes


def head(kind: int, connection: int, size: int = 0) -> bytes:
    """The head of a frame whose payload of C{size} bytes is to follow."""
    return _HEAD.pack(size, kind, connection)


def link_frame(kind: int, connection: int = 0, payload: bytes = b"") -> bytes:
    """A whole frame."""
    return _HEAD.pack(len(payload), kind, connection) + payload


@final
class LinkDecoder:
    """The decoder of link frames: bytes in, frames out.

    The bytes of a frame that is not whole lie in one bytearray and are copied once when
    it is.
    """

    __slots__ = ("_partial", "_wanted")

    def __init__(self) -> None:
        self._partial: bytearray | None = None
        self._wanted = 0

    def receive(self, data: bytes | bytearray | memoryview) -> list[LinkFrame]:
        """The frames that are whole with C{data}.

        @raise RemoteProtocolError: these bytes are not of a link; what came before them
            is of no use either.
        """
        partial = self._partial
        if partial is not None:
            partial += data
            if len(partial) < self._wanted:
                return []
            self._partial = None
            data = partial
        data = bytes(data)  # Once for all frames: slices of a view cost twice as much.
        frames: list[LinkFrame] = []
        size, start = len(data), 0
        unpack = _HEAD.unpack_from
        while size - start >= HEAD_BYTES:
            length, kind, connection = unpack(data, start)
            if kind not in KINDS or length > MAX_PAYLOAD_BYTES:
                raise RemoteProtocolError(
                    f"a link has no frame of kind {kind} with {length} bytes"
                )
            end = start + HEAD_BYTES + length
            if end > size:
                self._keep(data[start:], HEAD_BYTES + length)
                return frames
            payload = data[start + HEAD_BYTES : end]
            frames.append(LinkFrame(kind, connection, payload))
            start = end
        if start < size:
            self._keep(data[start:], HEAD_BYTES)
        return frames

    def _keep(self, rest: bytes, wanted: int) -> None:
        self._partial = bytearray(rest)
        self._wanted = wanted
