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

from collections.abc import Iterator
from struct import Struct
from typing import Final

from rocketbroker.codec.batches import split as split_natively
from rocketbroker.codec.build import COMPILED
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

#: Messages of one batch. They are cut in slices, but stored at once, so that the batch
#: is whole and in order: 25 milliseconds, in which no other client is served. Clients
#: split at 1 MiB, which is 14,000 messages at most: this form and the properties that
#: they add take 75 bytes of each. Of 4 MiB, more have bodies of less than 53 bytes.
MAX_MESSAGES: Final = 32_768

#: So many are cut out in one step, half a millisecond, ...
STEP_MESSAGES: Final = 512

#: ... and so many in the turn of their request; the rest of a longer batch in slices.
MAX_AT_ONCE: Final = 8192

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
    """All messages of a batch.

    @param request_properties: what each message has besides its own, ending in 0x02.
    @raise MessageIllegal: it is not a batch, has too many messages, or one of them is
        too long.
    """
    found = split_at_once(body, request_properties, len(body))
    assert found is not None
    return found


def split_at_once(
    body: bytes, request_properties: bytes, most: int = MAX_AT_ONCE
) -> list[Part] | None:
    """The same, of a batch that does not take long.

    @return: None if it has more than C{most} messages: they are for L{split_steps}.
    @raise MessageIllegal: as L{split}.
    """
    first = max(int.from_bytes(body[:4]), _HEAD.size)
    if len(body) // first > most:
        # If all are like the first one, there are more.
        return None
    if COMPILED:
        room = MAX_PROPERTIES_BYTES - len(request_properties)
        shared_code = tag_code_of(request_properties)
        found = split_natively(body, request_properties, shared_code, room, tag_code)
        if found is not None and 0 < len(found) <= min(most, MAX_MESSAGES):
            return found
    parts: list[Part] = []
    for _ in split_steps(body, request_properties, parts):
        if len(parts) >= most:
            return None
    return parts


def split_steps(
    body: bytes, request_properties: bytes, parts: list[Part]
) -> Iterator[None]:
    """Cut a batch, some messages at each step.

    @param request_properties: what each message has besides its own, ending in 0x02.
    @param parts: gets the messages.
    @raise MessageIllegal: it is not a batch, has too many messages, or one of them is
        too long.
    """
    size = len(body)
    room = MAX_PROPERTIES_BYTES - len(request_properties)
    shared_code = tag_code_of(request_properties)
    unpack_head, head_size = _HEAD.unpack_from, _HEAD.size
    unpack_size = _SIZE.unpack_from
    at = 0
    while at < size:
        for _ in range(STEP_MESSAGES):
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
            if at == size:
                break
        if len(parts) > MAX_MESSAGES:
            raise MessageIllegal(f"a batch of more than {MAX_MESSAGES} messages")
        if at < size:
            yield
    if not parts:
        raise MessageIllegal("the batch is empty")
