# -*- test-case-name: tests.wire.test_hastream -*-
"""The replication stream: frames of the log one way, reports of positions the other.

There is no handshake, no version and no checksum. The slave's first report says from
where it wants the log; each later one, up to where it has stored it::

    report, slave to master             frame, master to slave
    0  position, i64                    0   position of the first byte, i64
                                        8   number of bytes n, i32; 0: a heartbeat
                                        12  n bytes of the commit log

Frames follow one another without a gap, so what a slave takes from them is one run of
bytes: it need not see where they begin.

C{docs/facts/ha.md} 2.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, final

from rocketbroker.errors import RemoteProtocolError

_REPORT: Final = Struct(
    ">q"  # position
)
_HEAD: Final = Struct(
    ">q"  # position of the first byte
    "i"  # number of bytes
)

#: The bytes of a frame before its data.
HEAD_BYTES: Final = _HEAD.size


def report(position: int) -> bytes:
    """A slave's report."""
    return _REPORT.pack(position)


def frames(position: int, log: bytes, max_bytes: int) -> bytes:
    """Bytes of the log as frames of at most C{max_bytes} each.

    @param position: of the first byte. Without any the frame is a heartbeat.
    """
    size = len(log)
    if size <= max_bytes:
        return _HEAD.pack(position, size) + log
    view = memoryview(log)
    pieces: list[bytes | memoryview] = []
    for at in range(0, size, max_bytes):
        piece = view[at : at + max_bytes]
        pieces.append(_HEAD.pack(position + at, len(piece)))
        pieces.append(piece)
    return b"".join(pieces)


@final
class ReportReader:
    """Cuts reports out of what a slave sends."""

    __slots__ = ("_partial",)

    def __init__(self) -> None:
        self._partial = b""

    def feed(self, data: bytes) -> int | None:
        """Take bytes, cut anywhere.

        @return: the last position that is reported now, as it supersedes those before;
            None: no report is whole.
        """
        if self._partial:
            data = self._partial + data
        whole = len(data) // _REPORT.size * _REPORT.size
        self._partial = data[whole:]
        if not whole:
            return None
        position: int = _REPORT.unpack_from(data, whole - _REPORT.size)[0]
        return position


@final
class FrameReader:
    """Takes the bytes of the log out of what a master sends.

    It keeps nothing of a frame but a head that is cut: bytes of the log are handed on
    as they come.

    @ivar position: of the next byte of the log; None until the first, if any will do.
    @ivar heartbeats: how many frames without data have come.
    """

    __slots__ = ("_head", "_left", "heartbeats", "position")

    def __init__(self, position: int | None) -> None:
        self.position = position
        self.heartbeats = 0
        self._left = 0
        self._head = b""

    def feed(self, data: bytes) -> bytes:
        """Take bytes, cut anywhere.

        @return: the bytes of the log in them, which end at C{position}.
        @raise RemoteProtocolError: a frame is not the next one.
        """
        if self._head:
            data = self._head + data
            self._head = b""
        size = len(data)
        left, at = self._left, 0
        pieces: list[bytes] = []
        while at < size:
            if not left:
                if size - at < HEAD_BYTES:
                    self._head = data[at:]
                    break
                left = self._begin(*_HEAD.unpack_from(data, at))
                at += HEAD_BYTES
                continue
            piece = data[at : at + left]
            at += len(piece)
            left -= len(piece)
            pieces.append(piece)
            assert self.position is not None
            self.position += len(piece)
        self._left = left
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _begin(self, start: int, size: int) -> int:
        """A frame begins; how many bytes of the log it brings."""
        if size < 0 or start < 0:
            raise RemoteProtocolError(f"a frame of {size} bytes at position {start}")
        if self.position is None:
            if size:
                self.position = start
        elif start != self.position:
            raise RemoteProtocolError(
                f"a frame at position {start} where {self.position} was to follow"
            )
        if not size:
            self.heartbeats += 1
        return size
