# -*- test-case-name: tests.records.test_queueunits -*-
"""The units of a batch queue, which stand for several messages each.

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

The store sheet, section 9.1.
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
MOST_MESSAGES: Final = 32767


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
