# -*- test-case-name: tests.codec.test_batches -*-
"""The body of request 320, cut into its messages, and their ids: compiled.

L{rocketbroker.broker.messages.outer_batch} has the layout, and says what is wrong with
a body that is none.

C{docs/facts/store.md} 4.4.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rocketbroker.codec.mypyc_types import (
    BytesWriter,
    i64,
    read_i16_be,
    read_i32_be,
    write_i64_be,
)

_HEAD: Final = 20
_END: Final = 2
_MARK: Final = 1
_TAGS: Final = 0x54414753  # TAGS


def split(
    body: bytes,
    shared: bytes,
    shared_code: int,
    room: i64,
    tag_code: Callable[[str], int],
) -> list[tuple[int, bytes, bytes, int]] | None:
    """The messages of a batch: flag, body, properties and tag code of each.

    @param shared: the properties that each has besides its own, ending in 0x02.
    @param shared_code: their tag code.
    @param room: so many bytes of its own no message may have.
    @return: None if it is not a batch, or one of the messages is too long.
    """
    parts: list[tuple[int, bytes, bytes, int]] = []
    size: i64 = len(body)
    at: i64 = 0
    while at < size:
        if size - at < _HEAD + 2:
            return None
        total = i64(read_i32_be(body, at))
        flag = int(read_i32_be(body, at + 12))
        body_size = i64(read_i32_be(body, at + 16))
        start = at + _HEAD
        end = start + body_size
        if body_size < 0 or end + 2 > size:
            return None
        own_size = i64(read_i16_be(body, end))
        after = end + 2 + own_size
        if own_size < 0 or after != at + total or after > size or own_size >= room:
            return None
        own = body[end + 2 : after]
        code = shared_code
        if own_size > 0:
            found = tags_of(own)
            if found:
                code = tag_code(found.decode("utf-8", "replace")) or shared_code
            if own[own_size - 1] != _END:
                own += b"\x02"
        parts.append((flag, body[start:end], shared + own, code))
        at = after
    return parts


def tags_of(own: bytes) -> bytes:
    """The value of TAGS in a properties string; the last one counts."""
    size: i64 = len(own)
    name: i64 = 0
    start: i64 = -1
    end: i64 = -1
    at: i64 = 0
    while at < size:
        unit: i64 = own[at]
        if unit == _END:
            if start > end:
                end = at
            name = at + 1
        elif unit == _MARK and at - name == 4 and read_i32_be(own, name) == _TAGS:
            start = at + 1
        at += 1
    if start < 0:
        return b""
    return own[start : end if end >= start else size]


def ids_of(positions: list[int], host: bytes) -> bytes:
    """The ends of the offset ids of messages but the last, each followed by the host
    that the next begins with."""
    writer = BytesWriter()
    last: i64 = len(positions) - 1
    number: i64 = 0
    digits = BytesWriter()
    while number < last:
        digits.truncate(0)
        write_i64_be(digits, positions[number])
        writer.write(digits.getvalue().hex().upper().encode())
        writer.write(b",")
        writer.write(host)
        number += 1
    return writer.getvalue()
