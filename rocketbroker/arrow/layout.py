# -*- test-case-name: tests.arrow.test_decoding -*-
"""Many stored records at once: where each begins, and its fixed fields, as arrays.

The bytes are whole records one after the other, as a pull answers them and as the
commit log holds them (C{docs/facts/store.md} 3). A loop over structs in Python costs
0.44 s per million; here it is a search for the magic (0.25 s) and one gather. The magic
can also occur inside a body, so the candidates count only if they form a chain: each
start plus its size is the next start, from the first byte to the last. If they do not,
the loop decides, and says where the bytes stop making sense.

The width of the two hosts depends on flags, so records with IPv6 hosts are gathered in
three windows instead of one; topics of version 2 have two bytes of length.
"""

from __future__ import annotations

import struct
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from rocketbroker.records import record_head
from rocketbroker.records.malformed import Malformed
from rocketbroker.records.sysflags import BORN_HOST_V6, STORE_HOST_V6

Ints: TypeAlias = npt.NDArray[np.int64]
Bytes: TypeAlias = npt.NDArray[np.uint8]

#: The magics as unsigned numbers, and their bytes; the last byte tells them apart.
MAGIC_V1: Final = record_head.MAGIC_V1 & 0xFFFFFFFF
MAGIC_V2: Final = record_head.MAGIC_V2 & 0xFFFFFFFF
MAGIC: Final = tuple(MAGIC_V1.to_bytes(4, "big")[:3])
V1: Final = MAGIC_V1 & 0xFF
V2: Final = MAGIC_V2 & 0xFF

LEAST: Final = record_head.LEAST_SIZE

SIZE_AND_MAGIC: Final = struct.Struct(">iI")

_KINDS: Final = {"i": ">i4", "q": ">i8"}


def _fields(first: str, last: str) -> np.dtype[Any]:
    """Fields of the head, from one to another."""
    names = list(record_head.FIELDS)
    wanted = names[names.index(first) : names.index(last) + 1]
    return np.dtype([(name, _KINDS[record_head.FIELDS[name]]) for name in wanted])


#: Bytes 0 to 47, the same in all records.
FRONT: Final = _fields("size", "born_ms")

#: Behind the store host: 16 bytes, up to the body.
BACK: Final = _fields("reconsume_times", "body_size")

#: Positions in L{Layout.cuts} for each record.
CUTS: Final = 6


class Layout(NamedTuple):
    """Where everything of N records stands in one buffer.

    @ivar data: the buffer.
    @ivar starts: where each record begins.
    @ivar front: the structured fields of L{FRONT}.
    @ivar back: those of L{BACK}.
    @ivar store_ms: the store timestamp.
    @ivar born_host: where the born host stands; 8 bytes, or 20 where C{born_v6}.
    @ivar store_host: where the store host stands.
    @ivar cuts: 6 positions for each record: begin and end of body, topic, properties.
    @ivar bodies: the stored bodies as an Arrow array, if they were gathered already.
    """

    data: Bytes
    starts: Ints
    front: npt.NDArray[Any]
    back: npt.NDArray[Any]
    store_ms: Ints
    born_host: Ints
    store_host: Ints
    born_v6: npt.NDArray[np.bool_]
    store_v6: npt.NDArray[np.bool_]
    cuts: Ints
    bodies: Any = None

    @property
    def size(self) -> int:
        """How many records these are."""
        return len(self.starts)

    def rows(self, start: int, until: int) -> Layout:
        """Those from row C{start} up to, and without, C{until}."""
        return Layout(
            data=self.data,
            starts=self.starts[start:until],
            front=self.front[start:until],
            back=self.back[start:until],
            store_ms=self.store_ms[start:until],
            born_host=self.born_host[start:until],
            store_host=self.store_host[start:until],
            born_v6=self.born_v6[start:until],
            store_v6=self.store_v6[start:until],
            cuts=self.cuts[CUTS * start : CUTS * until],
            bodies=None if self.bodies is None else self.bodies[start:until],
        )


NOTHING: Final = np.empty(0, np.int64)

EMPTY: Final = Layout(
    data=np.empty(0, np.uint8),
    starts=NOTHING,
    front=np.empty(0, FRONT),
    back=np.empty(0, BACK),
    store_ms=NOTHING,
    born_host=NOTHING,
    store_host=NOTHING,
    born_v6=np.empty(0, np.bool_),
    store_v6=np.empty(0, np.bool_),
    cuts=NOTHING,
)


def record_starts(buffer: bytes) -> Ints:
    """Where each record begins.

    @param buffer: whole records, one after the other.
    @raise Malformed: these are not whole records.
    """
    if not buffer:
        return np.empty(0, np.int64)
    data = np.frombuffer(buffer, np.uint8)
    found: Ints = np.flatnonzero(data[4:-3] == MAGIC[0])
    for place, byte in ((5, MAGIC[1]), (6, MAGIC[2])):
        found = found[data[found + place] == byte]
    last = data[found + 7]
    found = found[(last == V1) | (last == V2)]
    if len(found) and found[0] == 0:
        ends = found + window(data, found, 4).view(">i4")[:, 0]
        if ends[-1] == len(data) and np.array_equal(ends[:-1], found[1:]):
            return found
    return starts_one_by_one(buffer)


def starts_one_by_one(buffer: bytes) -> Ints:
    """The same by a walk from record to record.

    @raise Malformed: it does not end at the end; the position is named.
    """
    starts: list[int] = []
    position, end = 0, len(buffer)
    while position < end:
        if end - position < LEAST:
            raise Malformed(f"half a record at byte {position} of {end}")
        size, magic = SIZE_AND_MAGIC.unpack_from(buffer, position)
        if magic not in (MAGIC_V1, MAGIC_V2):
            raise Malformed(f"no record at byte {position}: {magic:#010x}")
        if not LEAST <= size <= end - position:
            raise Malformed(f"a record of {size} bytes at byte {position} of {end}")
        starts.append(position)
        position += size
    return np.array(starts, np.int64)


def window(data: Bytes, starts: Ints, size: int) -> npt.NDArray[np.uint8]:
    """C{size} bytes from each start, as contiguous rows.

    Each is one element of an array over the data in which elements overlap: numpy
    copies elements of bytes without a type whole, and rows of an array byte by byte.
    """
    kind = np.dtype((np.void, size))
    rows = np.ndarray(max(0, len(data) - size + 1), kind, data, strides=(1,))
    return rows[starts].view(np.uint8).reshape(len(starts), size)


def fields(data: Bytes, starts: Ints, kind: np.dtype[Any]) -> npt.NDArray[Any]:
    """A structure from each start."""
    return window(data, starts, kind.itemsize).view(kind)[:, 0]


def lay_out(buffer: bytes) -> Layout:
    """Find everything in a buffer of whole records.

    @raise Malformed: these are not whole records, or the lengths inside one
        contradict its size.
    """
    return lay_out_at(buffer, record_starts(buffer))


def lay_out_at(buffer: bytes, starts: Ints, sizes: Any = None) -> Layout:
    """The same for records of which it is known where they begin.

    @param starts: ascending.
    @param sizes: the size that each must have, if that is known.
    @raise Malformed: as L{lay_out}; or one has another size.
    """
    data = np.frombuffer(buffer, np.uint8)
    if not len(starts):
        return EMPTY
    front = fields(data, starts, FRONT)
    if sizes is not None and not np.array_equal(front["size"], sizes):
        raise Malformed("a record has another size than its entry says")
    flags = front["sys_flag"]
    born_v6, store_v6 = (flags & BORN_HOST_V6) != 0, (flags & STORE_HOST_V6) != 0
    born_host = starts + FRONT.itemsize
    store_time = born_host + np.where(born_v6, 20, 8)
    store_host = store_time + 8
    rest = store_host + np.where(store_v6, 20, 8)
    sizes = front["size"].astype(np.int64)
    ends = starts + sizes
    # The fixed part, the length of the topic and of the properties must be inside.
    fits = rest + BACK.itemsize + 3 <= ends
    if not fits.all():
        raise contradiction(starts, ~fits)
    store_ms = window(data, store_time, 8).view(">i8")[:, 0].astype(np.int64)
    back = fields(data, rest, BACK)
    cuts = find_cuts(data, starts, front, back, rest + BACK.itemsize, ends)
    return Layout(
        data=data,
        starts=starts,
        front=front,
        back=back,
        store_ms=store_ms,
        born_host=born_host,
        store_host=store_host,
        born_v6=born_v6,
        store_v6=store_v6,
        cuts=cuts,
    )


def find_cuts(
    data: Bytes,
    starts: Ints,
    front: npt.NDArray[Any],
    back: npt.NDArray[Any],
    body: Ints,
    ends: Ints,
) -> Ints:
    """Begin and end of body, topic and properties of each record, flat.

    @raise Malformed: lengths that contradict the record's size.
    """
    second = front["magic"] == record_head.MAGIC_V2
    body_end = body + np.maximum(back["body_size"].astype(np.int64), 0)
    fits = body_end + 3 + second <= ends
    if not fits.all():
        raise contradiction(starts, ~fits)
    topic_size = data[body_end].astype(np.int64)
    if second.any():
        wide = (topic_size << 8) | data[body_end + 1]
        topic_size = np.where(second, wide, topic_size)
        signed = np.where(second, topic_size >= 0x8000, topic_size >= 0x80)
    else:
        signed = topic_size >= 0x80
    topic = body_end + 1 + second
    topic_end = topic + np.where(signed, 0, topic_size)
    fits = topic_end + 2 <= ends
    if not fits.all():
        raise contradiction(starts, ~fits)
    high, low = data[topic_end].astype(np.int64), data[topic_end + 1]
    properties = topic_end + 2
    properties_end = properties + np.where(high >= 0x80, 0, (high << 8) | low)
    fits = properties_end == ends
    if not fits.all():
        raise contradiction(starts, ~fits)
    cuts = np.stack(
        [body, body_end, topic, topic_end, properties, properties_end], axis=1
    )
    return cuts.reshape(-1)


def contradiction(starts: Ints, wrong: npt.NDArray[np.bool_]) -> Malformed:
    """What is said of the first record whose lengths are impossible."""
    position = int(starts[np.flatnonzero(wrong)[0]])
    return Malformed(
        f"the lengths inside the record at byte {position} contradict its size"
    )
