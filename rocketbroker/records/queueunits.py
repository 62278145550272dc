# -*- test-case-name: tests.records.test_queueunits -*-
"""The units of a batch queue, which stand for several messages each, and those of the
extension of a queue, which hold what does not fit into an entry.

Of a batch::

    ======  ============================  =====
    offset  field                         width
    ======  ============================  =====
    0       physical offset               i64
    8       size of the record            i32
    12      tag code                      i64
    20      store time                    i64
    28      offset of the first message   i64
    36      number of messages            i16
    38      compacted offset, -1          i32
    42      reserved, 0                   i32
    ======  ============================  =====

Of an extension, which is as long as its first field says::

    ======  ============================  =====
    offset  field                         width
    ======  ============================  =====
    0       size of all this              i16
    2       tag code                      i64
    10      store time                    i64
    18      size of the bit map           i16
    20      bit map
    ======  ============================  =====

C{docs/facts/store.md} 8 and 9.1.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

_BATCH: Final = struct.Struct(
    ">"
    "q"  # physical offset
    "i"  # size of the record
    "q"  # tag code
    "q"  # store time
    "q"  # offset of the first message
    "h"  # number of messages
    "i"  # compacted offset
    "i"  # reserved
)

BATCH_SIZE: Final = 46
assert _BATCH.size == BATCH_SIZE

#: The number of messages of one batch stands in 16 bits.
MAX_MESSAGES: Final = 32767


class BatchUnit(NamedTuple):
    """Where a batch is.

    @ivar position: its physical offset.
    @ivar size: the size of its record.
    @ivar tag_code: the hash of its TAGS property, as a rule 0.
    @ivar store_ms: when it was stored.
    @ivar base: the queue offset of its first message.
    @ivar messages: how many messages it has.
    """

    position: int
    size: int
    tag_code: int
    store_ms: int
    base: int
    messages: int

    @property
    def is_valid(self) -> bool:
        """Whether it stands for anything: what was never written does not."""
        return (
            self.position >= 0
            and self.size > 0
            and self.base >= 0
            and self.messages > 0
        )

    @property
    def end(self) -> int:
        """The queue offset behind its last message."""
        return self.base + self.messages

    def encode(self) -> bytes:
        """The unit as it stands in a file."""
        return _BATCH.pack(*self, -1, 0)


def decode_batch(data: bytes, at: int = 0) -> BatchUnit:
    """The unit that stands at C{data[at:]}, which are 46 bytes or more."""
    return BatchUnit(*_BATCH.unpack_from(data, at)[:6])


_EXTENSION: Final = struct.Struct(
    ">"
    "h"  # size of all
    "q"  # tag code
    "q"  # store time
    "h"  # size of the bit map
)

#: The size of a unit without a bit map.
EXTENSION_HEAD: Final = 20
assert _EXTENSION.size == EXTENSION_HEAD

#: A longer one could not say its size.
MAX_EXTENSION: Final = 32767

#: Stands where no further unit fits into a file.
FILE_ENDS: Final = (-1).to_bytes(2, "big", signed=True)

#: A tag code is a number of 32 bits; one as small as this is the address of a unit.
LAST_ADDRESS: Final = -(1 << 31) - 1


class ExtensionUnit(NamedTuple):
    """What belongs to one entry.

    @ivar tag_code: the hash of its tag.
    @ivar store_ms: when it was stored.
    @ivar bit_map: which filters want it; empty if that was not asked.
    """

    tag_code: int
    store_ms: int
    bit_map: bytes

    @property
    def size(self) -> int:
        """How many bytes it takes."""
        return EXTENSION_HEAD + len(self.bit_map)


def encode_extension(tag_code: int, store_ms: int, bit_map: bytes) -> bytes:
    """A unit of an extension, which is to be of L{MAX_EXTENSION} bytes at most."""
    size = EXTENSION_HEAD + len(bit_map)
    return _EXTENSION.pack(size, tag_code, store_ms, len(bit_map)) + bit_map


def decode_extension(data: bytes) -> ExtensionUnit | None:
    """The unit that C{data} is; None if it is none."""
    if len(data) < EXTENSION_HEAD:
        return None
    size, tag_code, store_ms, map_size = _EXTENSION.unpack_from(data)
    if size != len(data) or map_size != size - EXTENSION_HEAD:
        return None
    return ExtensionUnit(tag_code, store_ms, data[EXTENSION_HEAD:])
