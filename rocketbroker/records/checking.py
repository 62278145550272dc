# -*- test-case-name: tests.records.test_checking -*-
"""The check of a record's properties that RocketMQ's recovery makes.

A record whose properties are not numbers where dispatch reads numbers ends the log
there: C{docs/facts/store.md} 15.6.
"""

from __future__ import annotations

from rocketbroker.records import names, properties


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
