# -*- test-case-name: tests.arrow.test_reading -*-
"""The source interface: messages over the network, or out of a store's files.

Two things provide L{Origin}: L{rocketbroker.sources.network.NetworkOrigin} and
L{rocketbroker.sources.offline.StoreOrigin}. A job's driver asks one for queues and
bounds, its tasks ask one for pieces of ranges. None is ever pickled, only the options
are: L{rocketbroker.sources.open_source} opens the one that they name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from rocketbroker.errors import RocketbrokerError
from rocketbroker.sources.ranges import Queue, Range

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class DataLoss(RocketbrokerError):
    """Messages that were asked for are not there any more."""


class CountMismatch(RocketbrokerError):
    """A range did not give the messages that it must have."""


class Filter(NamedTuple):
    """Which messages are wanted of those in a range.

    @ivar kind: L{TAG}, or L{SQL92}, as brokers call them.
    @ivar expression: tags between which C{||} stands, C{*} for all; or a condition.
    """

    kind: str
    expression: str


# Kinds of filters.
TAG: Final = "TAG"
SQL92: Final = "SQL92"

#: All messages.
EVERYTHING: Final = Filter(TAG, "*")


class Places(NamedTuple):
    """Where the entries of a queue say that records are. Nobody has looked there yet.

    @ivar starts: where each begins in the bytes of a piece, ascending. Between two
        there may be bytes of others.
    @ivar sizes: how many bytes each has.
    @ivar positions: where each begins in the log.
    @ivar one_by_one: reads the piece again, if a record is not what its entry says:
        pieces without places, in which a record that cannot be read is lost.
    """

    starts: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int64]
    one_by_one: Callable[[], Iterator[Piece]]


class Piece(NamedTuple):
    """What one step of reading a range brought.

    @ivar records: whole records one after the other, perhaps none; or with C{places},
        bytes that hold records.
    @ivar start: the first queue offset that this step covers.
    @ivar until: the queue offset up to which, exclusive, the range is done.
    @ivar lost: why there is nothing at these offsets any more; empty if there is.
    """

    records: bytes
    start: int
    until: int
    lost: str
    places: Places | None = None


class Hole(NamedTuple):
    """Offsets of a range at which there is no message.

    @ivar start: the first of them.
    @ivar until: the first one behind.
    @ivar reason: why, in words.
    """

    start: int
    until: int
    reason: str


class Origin(Protocol):
    """Queues, and what is in them."""

    def topics(self) -> list[str]:
        """The names of all topics but the system's, sorted.

        @raise RocketbrokerError: nobody answers.
        """

    def queues(self, topic: str) -> list[Queue]:
        """The readable queues of a topic, sorted.

        @raise RocketbrokerError: there is no such topic, or nobody answers.
        """

    def hidden_queues(self, topic: str) -> list[Queue]:
        """The queues of a topic that exist and from which nobody may read, sorted.

        @raise RocketbrokerError: there is no such topic, or nobody answers.
        """

    def clusters(self, topic: str) -> list[str]:
        """The names of the clusters that have a topic, sorted; empty if they are not
        known here.

        @raise RocketbrokerError: there is no such topic, or nobody answers.
        """

    def bounds(self, queue: Queue) -> tuple[int, int]:
        """The first offset that can be read, and one more than the last."""

    def offset_at(self, queue: Queue, ms: int) -> int:
        """The offset of the first message stored at C{ms} or later; else the end."""

    def group_offset(self, queue: Queue, group: str) -> int | None:
        """Where a consumer group goes on; None if it has not begun.

        @raise ConfigurationError: groups are not known here.
        """

    def pieces(self, wanted: Range, chosen: Filter) -> Iterator[Piece]:
        """The messages of a range, in order, piece by piece;
        L{rocketbroker.arrow.checking.opened} looks at them.

        The first piece starts at C{wanted.start}, each next one where the one before
        ended, the last one ends at C{wanted.until}. A piece may hold records outside
        its offsets; these do not count.

        @param chosen: which messages are wanted. Others may be left out, and need
            not be.
        """

    def close(self) -> None:
        """Give back what is open."""


class StreamOrigin(Origin, Protocol):
    """What a stream needs besides.

    @ivar asked: how many requests L{all_bounds} has sent to brokers.
    """

    asked: int

    def all_bounds(self, queues: Iterable[Queue]) -> dict[Queue, tuple[int, int]]:
        """The bounds of many queues, with as few requests as possible."""

    def commit_offset(self, queue: Queue, group: str, offset: int) -> None:
        """Let a consumer group go on at an offset."""
