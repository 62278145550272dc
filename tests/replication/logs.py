"""Logs in memory, and peers that a test plays, for both sides of replication."""

from __future__ import annotations

from struct import Struct

from twisted.internet.protocol import Protocol
from twisted.python.failure import Failure
from zope.interface import implementer

from rocketbroker.errors import StoreError
from rocketbroker.store.raw_log import IRawLog

SEGMENT = 64 << 10

_HEAD = Struct(
    ">i"  # size of the record
    "q"  # its position
)


def records(position: int, *bodies: bytes) -> bytes:
    """Records as a L{MemoryLog} has them."""
    found = b""
    for body in bodies:
        size = _HEAD.size + len(body)
        found += _HEAD.pack(size, position + len(found)) + body
    return found


class Peer(Protocol):
    """The other side, which does what a test says."""

    def __init__(self) -> None:
        self.heard = b""
        self.is_gone = False

    def dataReceived(self, data: bytes) -> None:
        self.heard += data

    def connectionLost(self, reason: Failure | None = None) -> None:
        self.is_gone = True

    def taken(self) -> bytes:
        """What it heard since the last time."""
        heard, self.heard = self.heard, b""
        return heard

    def send(self, data: bytes) -> None:
        """Write."""
        assert self.transport is not None
        self.transport.write(data)


@implementer(IRawLog)
class MemoryLog:
    """A log, and the part of a store that replication uses.

    @ivar refusal: what to raise instead of appending.
    @ivar broken: what to raise instead of reading.
    @ivar appends: how often bytes were to be appended.
    @ivar cold: whether reading needs a thread.
    """

    def __init__(self, *bodies: bytes) -> None:
        self.min_position = 0
        self.data = records(0, *bodies)
        self.refusal: Exception | None = None
        self.broken: Exception | None = None
        self.cold = False
        self.appends = 0
        self.master_flushed = 0

    @property
    def raw_log(self) -> MemoryLog:
        return self

    @property
    def published_position(self) -> int:
        return self.min_position + len(self.data)

    def put(self, *bodies: bytes) -> None:
        """Append as a master does."""
        self.data += records(self.published_position, *bodies)

    def append(self, position: int, data: bytes) -> int:
        self.appends += 1
        if self.refusal is not None:
            raise self.refusal
        if not self.data and position % SEGMENT == 0:
            self.min_position = position
        if position != self.published_position:
            raise StoreError(f"position {position} is not {self.published_position}")
        taken = 0
        while len(data) - taken >= _HEAD.size:
            size, own = _HEAD.unpack_from(data, taken)
            if own != position + taken or size < _HEAD.size:
                raise StoreError(f"no record at {position + taken}")
            if taken + size > len(data):
                break
            taken += size
        self.data += data[:taken]
        return taken

    def read(self, position: int, max_bytes: int) -> bytes:
        if self.broken is not None:
            raise self.broken
        at = position - self.min_position
        if at < 0:
            return b""
        return self.data[at : at + min(max_bytes, SEGMENT - position % SEGMENT)]

    def is_cold(self, position: int) -> bool:
        return self.cold

    def truncate(self, position: int) -> None:
        self.data = self.data[: position - self.min_position]
