# -*- test-case-name: tests.spark.test_reading -*-
"""Reading a range exactly: from the pieces that an origin brings to checked layouts.

Queue offsets are dense, so a range must give each of its offsets once, in order; that
is checked for every batch, not just counted at the end, and a batch that fails says
where. With a tag filter, offsets jump and are only checked to grow; the broker compares
hashes of tags, so the tags themselves are compared here. The Spark sheet, 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, final

import numpy as np

from rocketbroker.records.properties import TAGS, find
from rocketbroker.spark.layout import CUTS, Layout, lay_out, window
from rocketbroker.spark.options import ReadOptions
from rocketbroker.spark.origins import CountMismatch, DataLoss, Origin, Piece
from rocketbroker.spark.ranges import Range

#: Batches of 10 to 20 thousand rows decode best; larger ones only take more memory.
MAX_ROWS: Final = 16_384

#: A batch of large messages ends here.
MAX_BYTES: Final = 16 * 1024 * 1024

#: A topic whose queues hold messages of other topics.
MULTI_QUEUE_PREFIX: Final = "%LMQ%"


@final
class RangeReader:
    """Reads one range once.

    @ivar rows: how many messages it has given.
    @ivar holes: what no longer existed, with C{failOnDataLoss=false}.
    """

    def __init__(self, origin: Origin, wanted: Range, options: ReadOptions) -> None:
        self._origin = origin
        self._wanted = wanted
        self._options = options
        self._dense = options.verify_counts and not options.filtered
        self._tags = tag_set(options.tags) if options.filtered else None
        self._position = wanted.start
        self.rows = 0
        self.holes: list[Range] = []

    def layouts(self) -> Iterator[Layout]:
        """The messages, in order, many at a time.

        @raise DataLoss: something is gone, unless C{failOnDataLoss=false}.
        @raise CountMismatch: what came is not what the range must have.
        """
        gathered: list[bytes] = []
        start, size = self._wanted.start, 0
        for piece in self._origin.pieces(self._wanted, self._options.tags):
            if piece.lost:
                yield from self._checked(gathered, start, piece.start)
                self._lose(piece)
                gathered, start, size = [], piece.until, 0
                continue
            gathered.append(piece.records)
            size += len(piece.records)
            if size >= MAX_BYTES or piece.until - start >= MAX_ROWS:
                yield from self._checked(gathered, start, piece.until)
                gathered, start, size = [], piece.until, 0
        yield from self._checked(gathered, start, self._wanted.until)
        if self._position != self._wanted.until:
            raise CountMismatch(f"reading {self._wanted} ended at {self._position}")

    def _lose(self, piece: Piece) -> None:
        gone = Range(self._wanted.queue, piece.start, piece.until)
        if self._options.fail_on_data_loss:
            raise DataLoss(f"the messages {gone} are gone: {piece.lost}")
        self.holes.append(gone)
        self._position = piece.until

    def _checked(
        self, gathered: list[bytes], start: int, until: int
    ) -> Iterator[Layout]:
        """The records of these offsets, seen to be what they must be."""
        layout = lay_out(b"".join(gathered))
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
        if self._tags is not None:
            layout = with_tags(layout, self._tags)
        self._position = until
        self.rows += layout.size
        if layout.size:
            yield layout

    def _check_places(self, layout: Layout) -> None:
        queue = self._wanted.queue
        if queue.topic.startswith(MULTI_QUEUE_PREFIX):
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


def tag_set(expression: str) -> frozenset[bytes]:
    """The tags of an expression: C{a || b}."""
    return frozenset(
        tag.strip().encode("utf-8") for tag in expression.split("||") if tag.strip()
    )


def with_tags(layout: Layout, wanted: frozenset[bytes]) -> Layout:
    """The records with one of these tags."""
    kept: list[bytes] = []
    ends = (layout.starts + layout.front["size"]).tolist()
    starts, ends_of_all = layout.cuts[4::CUTS].tolist(), layout.cuts[5::CUTS].tolist()
    data = layout.data.tobytes()
    name = TAGS.encode("ascii")
    for row, start in enumerate(layout.starts.tolist()):
        tag = find(data[starts[row] : ends_of_all[row]], name)
        if tag is not None and tag in wanted:
            kept.append(data[start : ends[row]])
    return layout if len(kept) == layout.size else lay_out(b"".join(kept))
