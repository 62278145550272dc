# -*- test-case-name: tests.arrow.test_message_identity -*-
"""The identity of a message: fields that differ between two messages at one offset.

Topics have no id: one that was deleted and created again looks like the old one. So
whoever remembers an offset remembers, too, when a message beside it was stored and what
its id is. C{docs/facts/spark.md 5}.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rocketbroker.arrow.checking import opened
from rocketbroker.arrow.columns import NATIVE, chosen
from rocketbroker.arrow.decoding import Decoder
from rocketbroker.arrow.layout import EMPTY, Layout, lay_out
from rocketbroker.arrow.unwrapping import unwrapped
from rocketbroker.sources.ranges import Queue, Range
from rocketbroker.sources.source import EVERYTHING, DataLoss, Origin


class Fingerprint(NamedTuple):
    """The store time (ms since 1970) and the id of one message."""

    store_ms: int
    message_id: str


def fingerprint_at(origin: Origin, queue: Queue, offset: int) -> Fingerprint:
    """The fingerprint of the message at an offset.

    @raise DataLoss: it is not there.
    """
    layout = first_messages(origin, Range(queue, offset, offset + 1))
    if layout.size == 0:
        raise DataLoss(f"the message {offset} of {queue} is gone")
    return fingerprint_of(layout, 0, queue.broker)


def fingerprint_of(layout: Layout, row: int, broker: str) -> Fingerprint:
    """The fingerprint of a message.

    @param row: which one of these.
    @param broker: the name of its broker.
    """
    decoder = Decoder(chosen(["msgId"], NATIVE), broker, False)
    (batch,) = decoder.batches(layout.rows(row, row + 1))
    return Fingerprint(int(layout.store_ms[row]), batch.column("msgId")[0].as_py())


def first_messages(origin: Origin, wanted: Range) -> Layout:
    """The first messages of a range, as many as come at once."""
    for piece, layout in opened(origin.pieces(wanted, EVERYTHING)):
        if layout is None and not piece.lost and piece.records:
            layout = lay_out(piece.records)
        if layout is not None:
            whole = unwrapped(layout)
            if whole is layout:
                return layout
            # A batch may begin before the range.
            offsets = whole.front["queue_offset"]
            return whole.rows(int(np.searchsorted(offsets, wanted.start)), whole.size)
    return EMPTY
