# -*- test-case-name: tests.broker.messages.test_outer_batch -*-
"""The body of request 320, cut into its messages.

A batch is a sequence of messages without topic, queue and times; those of the request
count for all::

    int32   length of all this
    int32   magic, ignored
    int32   CRC, ignored
    int32   flag
    int32   length of the body, body
    int16   length of the properties, properties

Each becomes a record of its own. Its properties are those of the request followed by
its own, so that of two equal names its own counts. RocketMQ writes them in the other
order, so that all messages of a batch are read with the batch's UNIQ_KEY as their id;
no client can rely on that.

The loop is plain and copies nothing twice, as bulk loads come in batches.

C{docs/facts/store.md} 4.4; C{docs/facts/client.md} 10.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from rocketbroker.codec.batches import split as split_natively
from rocketbroker.codec.form import COMPILED
from rocketbroker.errors import MessageIllegal
from rocketbroker.records.hashing import tag_code

_HEAD: Final = Struct(
    ">i"  # length of all
    "8x"  # magic, CRC
    "i"  # flag
    "i"  # length of the body
)
_SIZE: Final = Struct(">h")

#: The properties of a record have a length of 16 bits, signed.
MAX_PROPERTIES_BYTES: Final = 32767

#: Messages of one batch. The smallest takes 22 bytes here and 91 in the log, so that a
#: body of 4 MiB would otherwise become 17 MB of log; clients split at 1 MiB and 4 MiB.
MAX_MESSAGES: Final = 65_536

#: Flag, body, properties and tag code of a message.
Part = tuple[int, bytes, bytes, int]


def tag_code_of(properties: bytes) -> int:
    """The tag code of a properties string; 0 without tags."""
    at = properties.rfind(b"TAGS\x01")
    while at > 0 and properties[at - 1] != 2:
        at = properties.rfind(b"TAGS\x01", 0, at)
    if at < 0:
        return 0
    end = properties.find(b"\x02", at)
    tags = properties[at + 5 : end] if end >= 0 else properties[at + 5 :]
    return tag_code(tags.decode("utf-8", "replace"))


def split(body: bytes, request_properties: bytes) -> list[Part]:
    """The messages of a batch.

    @param request_properties: what each message has besides its own, ending in 0x02.
    @raise MessageIllegal: it is not a batch, or one of the messages is too long.
    """
    parts: list[Part] = []
    size = len(body)
    room = MAX_PROPERTIES_BYTES - len(request_properties)
    shared_code = tag_code_of(request_properties)
    if COMPILED:
        found = split_natively(body, request_properties, shared_code, room, tag_code)
        if found is not None and 0 < len(found) <= MAX_MESSAGES:
            return found
    unpack_head, head_size = _HEAD.unpack_from, _HEAD.size
    unpack_size = _SIZE.unpack_from
    at = 0
    while at < size:
        if size - at < head_size + 2:
            raise MessageIllegal(f"the batch is cut off at byte {at}")
        total, flag, body_size = unpack_head(body, at)
        start = at + head_size
        end = start + body_size
        if body_size < 0 or end + 2 > size:
            raise MessageIllegal(f"a wrong body length in the batch at byte {at}")
        (properties_size,) = unpack_size(body, end)
        after = end + 2 + properties_size
        if properties_size < 0 or after != at + total or after > size:
            raise MessageIllegal(f"a wrong length in the batch at byte {at}")
        own = body[end + 2 : after]
        if properties_size >= room:
            raise MessageIllegal(f"too long properties in the batch at byte {at}")
        if own:
            code = tag_code_of(own) or shared_code
            if own[-1] != 2:
                own += b"\x02"
        else:
            code = shared_code
        parts.append((flag, body[start:end], request_properties + own, code))
        at = after
    if not parts:
        raise MessageIllegal("the batch is empty")
    if len(parts) > MAX_MESSAGES:
        raise MessageIllegal(f"a batch of {len(parts)} messages, at most 65536")
    return parts
