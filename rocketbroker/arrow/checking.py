# -*- test-case-name: tests.arrow.test_checking -*-
"""Records at places that a queue's entries name: are they what they must be?

The same is checked as by a broker that looks up a message: magic, size, position, the
lengths inside, and the CRC of the body. All of them at once, as arrays; only the CRCs
need a call for each body, made without a step of the interpreter between. If anything
is wrong, the piece is read again record by record, which finds the one and says why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np

from rocketbroker.arrow.binary_arrays import cut_and_take
from rocketbroker.arrow.layout import CUTS, LEAST, Ints, Layout, lay_out_at
from rocketbroker.records import record_head
from rocketbroker.records.entries import SIZE
from rocketbroker.records.malformed import Malformed
from rocketbroker.sources.source import Piece, Places

try:
    # A quarter of zlib's time for bodies of some hundred bytes.
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

#: RocketMQ keeps CRCs without their highest bit.
CRC_BITS: Final = 0x7FFFFFFF

#: So many bodies become objects at a time.
CRC_BATCH: Final = 1024

#: The highest queue offset: behind it an entry's place does not fit 63 bits.
MAX_OFFSET: Final = (1 << 63) // SIZE - 1


def opened(pieces: Iterable[Piece]) -> Iterator[tuple[Piece, Layout | None]]:
    """Pieces, of those with places the checked records.

    @param pieces: of one range.
    @return: pieces without places, as they came; and of each piece with places either
        its layout, or the pieces that reading it one by one gives.
    """
    for piece in pieces:
        if piece.places is None:
            yield piece, None
            continue
        try:
            yield piece, checked(piece.records, piece.places)
        except Malformed:
            for each in piece.places.one_by_one():
                yield each, None


def checked(buffer: bytes, places: Places) -> Layout:
    """The records at these places.

    @raise Malformed: one of them is none, or damaged.
    """
    sizes = places.sizes
    if (sizes < LEAST).any():
        raise Malformed("an entry names a size that no record has")
    layout = lay_out_at(buffer, places.starts, sizes)
    front = layout.front
    first, second = record_head.MAGIC_V1, record_head.MAGIC_V2
    if not ((front["magic"] == first) | (front["magic"] == second)).all():
        raise Malformed("no record at a place that an entry names")
    if not np.array_equal(front["position"], places.positions):
        raise Malformed("a record is not where it says")
    offsets = front["queue_offset"]
    if ((offsets < 0) | (offsets > MAX_OFFSET)).any():
        raise Malformed("a record has an impossible queue offset")
    bodies = cut_and_take(layout.data, layout.cuts, 0, CUTS)
    wrong = body_crcs(bodies) != front["body_crc"]
    if (wrong & (layout.back["body_size"] > 0)).any():
        raise Malformed("the CRC of a body is another")
    return layout._replace(bodies=bodies)


def body_crcs(bodies: Any) -> Ints:
    """The CRC of each body as records have it.

    @param bodies: a binary array. A few of them at a time become objects, whose memory
        then is still near when the next few need it.
    """
    found = np.empty(len(bodies), np.int64)
    for start in range(0, len(bodies), CRC_BATCH):
        few = bodies.slice(start, CRC_BATCH).to_numpy(zero_copy_only=False)
        found[start : start + len(few)] = np.fromiter(
            map(crc32, few), np.int64, len(few)
        )
    return found & CRC_BITS
