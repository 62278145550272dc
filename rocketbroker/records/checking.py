# -*- test-case-name: tests.records.test_checking -*-
"""Whether a record in a segment can be trusted: what recovery goes by.

The store sheet, section 15.6.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from zlib import crc32

from rocketbroker.records import names, properties, record, sysflags

#: A whole record.
GOOD: Final = 0

#: The filler at the end of a segment: go on with the next one.
BLANK: Final = 1

#: Its parts have another sum than its size says: passed over at run time, the end of
#: the log in recovery.
HALF: Final = 2

#: No record.
ERROR: Final = 3


class Checked(NamedTuple):
    """What was found.

    @ivar result: L{GOOD}, L{BLANK}, L{HALF} or L{ERROR}.
    @ivar size: how long the record is, or claims to be (L{HALF}); otherwise 0.
    """

    result: int
    size: int


_NOTHING: Final = Checked(ERROR, 0)


def check(
    data: bytes | memoryview,
    start: int = 0,
    verify_crc: bool = True,
    require_record_crc: bool = False,
) -> Checked:
    """Look at the record that starts at C{start}. Nothing is raised.

    @param verify_crc: compare the CRC of the body.
    @param require_record_crc: instead, compare the CRC of the whole record; one
        without it is an error.
    """
    left = len(data) - start
    if left < 8:
        return _NOTHING
    size, magic = record.SIZE_AND_MAGIC.unpack_from(data, start)
    if size > left or left <= 4:
        return _NOTHING
    if magic == record.MAGIC_BLANK:
        return Checked(BLANK, 0)
    if magic not in (record.MAGIC_V1, record.MAGIC_V2):
        return _NOTHING
    if size < record.LEAST_SIZE:
        return _NOTHING
    sys_flag = record.I32.unpack_from(data, start + 36)[0]
    body_at = start + 88
    body_at += 12 if sys_flag & sysflags.BORN_HOST_V6 else 0
    body_at += 12 if sys_flag & sysflags.STORE_HOST_V6 else 0
    return _check_parts(
        data, start, start + size, body_at, magic, verify_crc, require_record_crc
    )


def _check_parts(
    data: bytes | memoryview,
    start: int,
    end: int,
    body_at: int,
    magic: int,
    verify_crc: bool,
    require_record_crc: bool,
) -> Checked:
    """Body, topic and properties; C{end} is within C{data}."""
    if body_at > end:
        return _NOTHING
    body_end = body_at + max(record.I32.unpack_from(data, body_at - 4)[0], 0)
    topic_at = body_end + (2 if magic == record.MAGIC_V2 else 1)
    if topic_at > end:
        return _NOTHING
    if verify_crc and not require_record_crc and body_end > body_at:
        crc = record.I32.unpack_from(data, start + 8)[0]
        if crc32(memoryview(data)[body_at:body_end]) & 0x7FFFFFFF != crc:
            return _NOTHING
    if magic == record.MAGIC_V2:
        topic_size = record.I16.unpack_from(data, body_end)[0]
    else:
        topic_size = data[body_end] - ((data[body_end] & 0x80) << 1)
    topic_end = topic_at + topic_size
    if topic_size < 0 or topic_end + 2 > end:
        return _NOTHING
    properties_size = max(record.I16.unpack_from(data, topic_end)[0], 0)
    properties_end = topic_end + 2 + properties_size
    if properties_end > end:
        return _NOTHING
    found = bytes(data[topic_end + 2 : properties_end])
    topic = bytes(data[topic_at:topic_end])
    if not numbers_are_numbers(topic, found):
        return _NOTHING
    if verify_crc and require_record_crc and not _record_crc_holds(data, start, end):
        return _NOTHING
    if properties_end != end:
        return Checked(HALF, end - start)
    return Checked(GOOD, end - start)


def numbers_are_numbers(topic: bytes, found: bytes) -> bool:
    """Whether the properties that dispatch takes for numbers are some.

    @param found: the properties of a record, as it has them.
    """
    if topic == names.SCHEDULE_TOPIC.encode("ascii") and not _is_number(
        found, properties.DELAY, 31
    ):
        return False
    return _is_number(found, properties.INNER_NUM, 15) and _is_number(
        found, properties.INNER_BASE, 63
    )


def _is_number(found: bytes, name: str, bits: int) -> bool:
    value = properties.find(found, name.encode("ascii"))
    if value is None:
        return True
    sign = value[:1] in (b"-", b"+")
    digits = value[1:] if sign else value
    if not digits.isdigit() or len(digits) > 20:
        return False
    return -(1 << bits) <= int(value) < 1 << bits


def _record_crc_holds(data: bytes | memoryview, start: int, end: int) -> bool:
    content_end = end - record.CRC_PROPERTY_SIZE
    crc = crc32(memoryview(data)[start:content_end]) & 0x7FFFFFFF
    return data[content_end:end] == record.crc_property(crc)
