# -*- test-case-name: tests.spark.test_reading -*-
"""Where messages come from, whether over the network or out of a store's files.

Two things provide L{Origin}: L{rocketbroker.spark.network.NetworkOrigin} and
L{rocketbroker.spark.offline.StoreOrigin}. A job's driver asks one for queues and
bounds, its tasks ask one for pieces of ranges. None is ever pickled, only the options
are: L{rocketbroker.spark.open_origins} opens the one that they name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from rocketbroker.errors import RocketbrokerError
from rocketbroker.spark.ranges import Queue, Range


class DataLoss(RocketbrokerError):
    """Messages that were asked for are not there any more."""


class CountMismatch(RocketbrokerError):
    """A range did not give the messages that it must have."""


class Piece(NamedTuple):
    """What one step of reading a range brought.

    @ivar records: whole records, perhaps none.
    @ivar start: the first queue offset that this step covers.
    @ivar until: the queue offset up to which, exclusive, the range is done.
    @ivar lost: why there is nothing at these offsets any more; empty if there is.
    """

    records: bytes
    start: int
    until: int
    lost: str


class Origin(Protocol):
    """Queues, and what is in them."""

    def queues(self, topic: str) -> list[Queue]:
        """The readable queues of a topic, sorted.

        @raise RocketbrokerError: there is no such topic, or nobody answers.
        """

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """The first offset that can be read, and one more than the last."""

    def offset_at(self, queue: Queue, ms: int) -> int:
        """The offset of the first message stored at C{ms} or later; else the end."""

    def pieces(self, wanted: Range, tags: str) -> Iterator[Piece]:
        """The messages of a range, in order, piece by piece.

        The first piece starts at C{wanted.start}, each next one where the one before
        ended, the last one ends at C{wanted.until}. A piece may hold records outside
        its offsets; these do not count.

        @param tags: a tag expression; C{*} is all. Messages with other tags may be
            left out, and need not be.
        """

    def close(self) -> None:
        """Give back what is open."""
