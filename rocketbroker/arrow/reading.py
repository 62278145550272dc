# -*- test-case-name: tests.arrow.test_reading -*-
"""Reading a range exactly: from the pieces that an origin brings to checked layouts.

Queue offsets are dense, so a range must give each of its offsets once, in order; that
is checked for every batch, not just counted at the end, and a batch that fails says
where. With a filter, offsets jump and are only checked to grow; the broker compares
hashes of tags, and a store's files compare nothing, so tags and SQL92 are evaluated
here, too. docs/facts/spark.md 5.

With C{failOnDataLoss=false} a message that is gone or damaged is a hole, and the rest
is given. Where the bytes of many messages make no sense, which one is damaged is found
by reading halves of their range, and halves of halves; no origin has to know how.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, final

import numpy as np

from rocketbroker.arrow.checking import opened
from rocketbroker.arrow.layout import CUTS, Layout, lay_out, window
from rocketbroker.arrow.unwrapping import unwrapped
from rocketbroker.errors import PullOffsetMoved, RemoteProtocolError, RocketbrokerError
from rocketbroker.filtering.sql import compiled
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.properties import TAGS, find
from rocketbroker.sources.options import ReadOptions
from rocketbroker.sources.ranges import Range
from rocketbroker.sources.source import (
    EVERYTHING,
    SQL92,
    CountMismatch,
    DataLoss,
    Filter,
    Hole,
    Origin,
)

#: Batches of 10 to 20 thousand rows decode best; larger ones only take more memory.
MAX_ROWS: Final = 16_384

#: A batch of large messages ends here.
MAX_BYTES: Final = 16 * 1024 * 1024

#: A topic whose queues hold messages of other topics.
MULTI_QUEUE_PREFIX: Final = "%LMQ%"

#: What is said of bytes, or of offsets, that are not those of the messages asked for.
DAMAGE: Final = (CountMismatch, Malformed, PullOffsetMoved, RemoteProtocolError)


@final
class RangeReader:
    """Reads one range once.

    @ivar rows: how many messages it has given.
    @ivar holes: what no longer existed or was damaged, with C{failOnDataLoss=false}.
    """

    def __init__(self, origin: Origin, wanted: Range, options: ReadOptions) -> None:
        self._origin = origin
        self._wanted = wanted
        self._options = options
        self._dense = options.verify_counts and not options.filtered
        self._multi = wanted.queue.topic.startswith(MULTI_QUEUE_PREFIX)
        self._chosen = filter_of(options.filter)
        self._position = wanted.start
        self.rows = 0
        self.holes: list[Hole] = []

    def layouts(self) -> Iterator[Layout]:
        """The messages, in order, many at a time.

        @raise DataLoss: something is gone, unless C{failOnDataLoss=false}.
        @raise CountMismatch: what came is not what the range must have.
        """
        yield from self._read(self._wanted.start, self._wanted.until)
        if self._position != self._wanted.until:
            raise CountMismatch(f"reading {self._wanted} ended at {self._position}")

    def _read(self, first: int, until: int) -> Iterator[Layout]:
        """The messages of a part of the range, around what is damaged."""
        try:
            yield from self._read_whole(first, until)
        except DAMAGE as error:
            if self._options.fail_on_data_loss or not self._dense or passes(error):
                raise
            reason, start = str(error), self._position
            if until - start == 1:
                self._lose(start, until, reason)
                return
            middle = (start + until) // 2
            yield from self._read(start, middle)
            yield from self._read(middle, until)

    def _read_whole(self, first: int, until: int) -> Iterator[Layout]:
        gathered: list[bytes] = []
        start, size = first, 0
        wanted = Range(self._wanted.queue, first, until)
        for piece, layout in opened(self._origin.pieces(wanted, self._options.filter)):
            if piece.lost or layout is not None:
                yield from self._checked(gathered, start, piece.start)
                gathered, start, size = [], piece.until, 0
                if layout is not None:
                    yield from self._seen(layout, piece.start, piece.until)
                else:
                    self._lose(piece.start, piece.until, piece.lost)
                continue
            gathered.append(piece.records)
            size += len(piece.records)
            if size >= MAX_BYTES or piece.until - start >= MAX_ROWS:
                yield from self._checked(gathered, start, piece.until)
                gathered, start, size = [], piece.until, 0
        yield from self._checked(gathered, start, until)

    def _lose(self, start: int, until: int, reason: str) -> None:
        if self._options.fail_on_data_loss:
            gone = Range(self._wanted.queue, start, until)
            raise DataLoss(f"the messages {gone} are gone: {reason}")
        if self.holes and self.holes[-1].until == start:
            # One after the other for one reason, mostly: the first one is told.
            last = self.holes.pop()
            start, reason = last.start, last.reason
        self.holes.append(Hole(start, until, reason))
        self._position = until

    def _checked(
        self, gathered: list[bytes], start: int, until: int
    ) -> Iterator[Layout]:
        """See L{_seen}; the records in these bytes."""
        yield from self._seen(lay_out(b"".join(gathered)), start, until)

    def _seen(self, layout: Layout, start: int, until: int) -> Iterator[Layout]:
        """The records of these offsets, seen to be what they must be."""
        layout = unwrapped(layout)
        if self._multi:
            layout = self._numbered(layout, start, until)
        offsets = layout.front["queue_offset"].astype(np.int64)
        low, high = np.searchsorted(offsets, (start, until)).tolist()
        if (low, high) != (0, layout.size):
            layout, offsets = layout.rows(low, high), offsets[low:high]
        if self._dense:
            if not np.array_equal(offsets, np.arange(start, until)):
                raise self._mismatch(offsets.tolist(), start, until)
        elif len(offsets) and (np.diff(offsets) <= 0).any():
            raise CountMismatch(f"offsets out of order in {self._wanted}")
        self._check_places(layout)
        if self._chosen is not None:
            layout = those(layout, self._chosen)
        self._position = until
        self.rows += layout.size
        if layout.size:
            yield layout

    def _numbered(self, layout: Layout, start: int, until: int) -> Layout:
        """Records of a queue of many topics: their own offsets are of other queues."""
        layout = layout.rows(0, until - start)
        front = layout.front.copy()
        front["queue_offset"] = np.arange(start, start + layout.size)
        front["queue_id"] = self._wanted.queue.queue_id
        return layout._replace(front=front)

    def _check_places(self, layout: Layout) -> None:
        queue = self._wanted.queue
        if self._multi:
            return
        topic = np.frombuffer(queue.topic.encode("utf-8"), np.uint8)
        starts, ends = layout.cuts[2::CUTS], layout.cuts[3::CUTS]
        if (layout.front["queue_id"] != queue.queue_id).any() or (
            ends - starts != len(topic)
        ).any():
            raise CountMismatch(f"messages of another queue in {self._wanted}")
        if layout.size and (window(layout.data, starts, len(topic)) != topic).any():
            raise CountMismatch(f"messages of another topic in {self._wanted}")

    def _mismatch(self, offsets: list[int], start: int, until: int) -> CountMismatch:
        queue = self._wanted.queue
        for expected, found in enumerate(offsets, start):
            if expected != found:
                return CountMismatch(
                    f"{queue} gave offset {found} where {expected} must be"
                )
        return CountMismatch(
            f"{queue} gave {len(offsets)} messages for {until - start} offsets "
            f"from {start} on"
        )


def passes(error: RocketbrokerError) -> bool:
    """Whether another attempt may go better."""
    return isinstance(error, PullOffsetMoved) and error.retriable


def filter_of(chosen: Filter) -> Callable[[bytes], bool] | None:
    """Whether a message with certain stored properties is wanted; None if all are.

    @raise SubscriptionParseFailed: the expression is none.
    """
    if chosen == EVERYTHING:
        return None
    if chosen.kind == SQL92:
        return compiled(chosen.expression).matches
    tags, name = tag_set(chosen.expression), TAGS.encode("ascii")
    return lambda properties: find(properties, name) in tags


def tag_set(expression: str) -> frozenset[bytes]:
    """The tags of an expression: C{a || b}."""
    return frozenset(
        tag.strip().encode("utf-8") for tag in expression.split("||") if tag.strip()
    )


def those(layout: Layout, wanted: Callable[[bytes], bool]) -> Layout:
    """The records whose properties are of a wanted message."""
    kept: list[bytes] = []
    ends = (layout.starts + layout.front["size"]).tolist()
    starts, ends_of_all = layout.cuts[4::CUTS].tolist(), layout.cuts[5::CUTS].tolist()
    data = layout.data.tobytes()
    for row, start in enumerate(layout.starts.tolist()):
        if wanted(data[starts[row] : ends_of_all[row]]):
            kept.append(data[start : ends[row]])
    return layout if len(kept) == layout.size else lay_out(b"".join(kept))
