# -*- test-case-name: tests.workers.test_relay -*-
"""A client's connection in a worker, what answers its pulls there, and what of it
may be a send."""

from __future__ import annotations

from typing import Final, Protocol, final

from rocketbroker.remoting.hubconnection import HubConnection

#: The codes of sends, as they stand in headers of JSON, and as numbers.
_SENDS: Final = frozenset((b"310,", b"320,", b"324,", b"325,", b'10,"'))
_SEND_CODES: Final = frozenset((10, 310, 320, 324, 325))
_BINARY: Final = 1


def is_send(data: bytes, start: int) -> bool:
    """Whether the frame that begins there may be a send: it is not known to be none."""
    if data[start + 8 : start + 16] == b'{"code":':
        return data[start + 16 : start + 20] in _SENDS
    if data[start + 4] == _BINARY:
        return int.from_bytes(data[start + 8 : start + 10], "big") in _SEND_CODES
    return True


@final
class RelayedClient:
    """A client's connection.

    @ivar id: its number on the link.
    @ivar connection: in the worker's hub.
    @ivar is_held: whether the owner wants nothing of it for now.
    @ivar waits: whether it waits for room on the link.
    @ivar is_broken: whether it has broken the protocol; the owner is about to close it.
    @ivar unacknowledged: bytes of the owner for it that were not acknowledged.
    @ivar fences: how many fences have not come back.
    @ivar is_unfenced: whether sends were relayed that have no fence behind them yet.
    """

    __slots__ = (
        "connection",
        "fences",
        "id",
        "is_broken",
        "is_held",
        "is_unfenced",
        "unacknowledged",
        "waits",
    )

    def __init__(self, connection_id: int, connection: HubConnection) -> None:
        self.id = connection_id
        self.connection = connection
        self.is_held = False
        self.waits = False
        self.is_broken = False
        self.unacknowledged = 0
        self.fences = 0
        self.is_unfenced = False

    def hold(self) -> None:
        """Read it, or do not."""
        self.connection.hold(self.is_held or self.waits or self.is_broken)


class TakesPulls(Protocol):
    """Answers pulls in this worker."""

    def take(self, client: RelayedClient, header: bytes, size: int) -> bool:
        """Answer a pull, or let it wait.

        @param size: the bytes of its frame.
        @return: whether that was done; else it is to be relayed.
        """

    @property
    def is_unreported(self) -> bool:
        """Whether the owner has not been told of all."""

    def report(self) -> None:
        """Tell it."""
