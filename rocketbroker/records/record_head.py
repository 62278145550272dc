# -*- test-case-name: tests.records.test_record_head -*-
"""The head of a record: all its fields before the body, declared once.

Layout::

    ==  ==========================================  =============  ======
    #   field                                       width          offset
    ==  ==========================================  =============  ======
    1   total size, this field included             i32            0
    2   magic                                       i32            4
    3   CRC of the body, 31 bits                    i32            8
    4   queue id                                    i32            12
    5   flag of the producer                        i32            16
    6   queue offset                                i64            20
    7   physical offset                             i64            28
    8   system flag                                 i32            36
    9   born time                                   i64            40
    10  born host: address, port as i32             8 or 20        48
    11  store time                                  i64            56
    12  store host                                  8 or 20        64
    13  reconsume times                             i32            72
    14  physical offset of the half message         i64            76
    15  length of the body                          i32            84
    ==  ==========================================  =============  ======

Offsets are those of two IPv4 hosts; bits of the system flag say otherwise.

C{docs/facts/store.md} 3.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from rocketbroker.records.hosts import V4_SIZE, V6_SIZE
from rocketbroker.records.sysflags import BORN_HOST_V6, HOST_MASK, STORE_HOST_V6

#: A topic's length has 8 bits in a record of version 1 and 16 in one of version 2.
MAGIC_V1: Final = -626843481
MAGIC_V2: Final = -626843477

#: The filler at the end of a segment.
MAGIC_BLANK: Final = -875286124

#: Longer topics need version 2.
MAX_V1_TOPIC_BYTES: Final = 127

#: The size of a record of version 1 with IPv4 hosts, without body, topic, properties.
LEAST_SIZE: Final = 91

#: Names and types of the fields, the latter as in C{struct}; both hosts are IPv4.
FIELDS: Final = {
    "size": "i",
    "magic": "i",
    "body_crc": "i",
    "queue_id": "i",
    "flag": "i",
    "queue_offset": "q",
    "position": "q",
    "sys_flag": "i",
    "born_ms": "q",
    "born_host": f"{V4_SIZE}s",
    "store_ms": "q",
    "store_host": f"{V4_SIZE}s",
    "reconsume_times": "i",
    "prepared_offset": "q",
    "body_size": "i",
}


def head_struct(
    sys_flag: int = 0, wanted: Collection[str] = FIELDS.keys()
) -> struct.Struct:
    """The fields of a head; those that are not wanted are skipped.

    @param sys_flag: its host bits tell the widths of the hosts.
    """
    types = dict(FIELDS)
    if sys_flag & BORN_HOST_V6:
        types["born_host"] = f"{V6_SIZE}s"
    if sys_flag & STORE_HOST_V6:
        types["store_host"] = f"{V6_SIZE}s"
    return struct.Struct(
        ">"
        + "".join(
            kind if name in wanted else f"{struct.calcsize(f'>{kind}')}x"
            for name, kind in types.items()
        )
    )


def head_structs(
    wanted: Collection[str] = FIELDS.keys(),
) -> dict[int, struct.Struct]:
    """The fields of the heads of all records, by the host bits of the system flag."""
    return {
        flags: head_struct(flags, wanted)
        for flags in (0, BORN_HOST_V6, STORE_HOST_V6, HOST_MASK)
    }


#: Where the body stands, by the host bits of the system flag.
BODY_AT: Final[Mapping[int, int]] = {
    flags: head.size for flags, head in head_structs().items()
}


def offset_of(field: str) -> int:
    """Where a field stands in a head whose hosts before it are IPv4.

    >>> offset_of("sys_flag"), offset_of("store_ms")
    (36, 56)
    """
    names = list(FIELDS)
    before = names[: names.index(field)]
    return struct.calcsize(">" + "".join(FIELDS[name] for name in before))


class RecordHead(NamedTuple):
    """What a record in the log says of itself, but for its body.

    @ivar position: its physical offset.
    @ivar size: its bytes.
    @ivar topic: the topic.
    @ivar queue_id: the number of the queue.
    @ivar queue_offset: its offset there.
    @ivar sys_flag: see L{rocketbroker.records.sysflags}.
    @ivar store_ms: when it was stored.
    @ivar properties: the properties string.
    """

    position: int
    size: int
    topic: bytes
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_ms: int
    properties: bytes
