# -*- test-case-name: tests.broker.metadata.test_topic_attributes -*-
"""The attributes of a topic, and how a request changes them.

A request has C{+key=value} to add or alter an attribute and C{-key} to delete it,
separated by commas.

C{docs/facts/broker.md} 11.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketbroker.errors import InvalidParameter, SystemFailure

#: The values that an attribute may have; what is not here takes a number.
CHOICES: Final[Mapping[str, frozenset[str]]] = {
    "queue.type": frozenset({"SimpleCQ", "BatchCQ"}),
    "cleanup.policy": frozenset({"DELETE", "COMPACTION"}),
    "message.type": frozenset(
        {"UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"}
    ),
}

#: Hours; -1: as the broker has it.
RESERVE_TIME: Final = "reserve.time"
LEAST_RESERVE_TIME: Final = -1

#: Attributes that stay as they were made.
UNCHANGEABLE: Final = frozenset({"queue.type", "cleanup.policy"})

MESSAGE_TYPE: Final = "message.type"

CLEANUP_POLICY: Final = "cleanup.policy"
COMPACTION: Final = "COMPACTION"


def parsed(text: str | None) -> dict[str, str]:
    """What a request says about attributes: signed key to value, C{""} for a deletion.

    @raise SystemFailure: it is not written as it must be.
    """
    found: dict[str, str] = {}
    keys: set[str] = set()
    for part in (text or "").split(","):
        entry = part.strip()
        if not entry:
            continue
        key, equals, value = entry.partition("=")
        if equals:
            if not key.startswith("+") or len(key) < 2 or not value:
                raise SystemFailure("add/alter attribute format is wrong")
        elif not key.startswith("-") or len(key) < 2:
            raise SystemFailure("delete attribute format is wrong")
        if key[1:] in keys:
            raise SystemFailure(f"key duplication: {key[1:]}")
        keys.add(key[1:])
        found[key] = value
    return found


def check_message_type(changes: Mapping[str, str], mixed: bool) -> None:
    """Refuse topics of mixed messages where they are not enabled.

    @param mixed: enableMixedMessageType.
    @raise InvalidParameter: that is what is asked for.
    """
    if not mixed and changes.get("+" + MESSAGE_TYPE) == "MIXED":
        raise InvalidParameter("MIXED message type is not supported.")


def altered(
    create: bool, current: Mapping[str, str], changes: Mapping[str, str]
) -> dict[str, str]:
    """A topic's attributes after C{changes}.

    @param create: whether the topic is made now.
    @raise SystemFailure: a change that is not allowed.
    """
    result = dict(current)
    for signed, value in changes.items():
        sign, key = signed[0], signed[1:]
        check_key(key)
        if sign == "-":
            if create:
                raise SystemFailure(
                    "only add attribute is supported while creating topic. key: " + key
                )
            if key not in current:
                raise SystemFailure(f"attempt to delete a nonexistent key: {key}")
            if key in UNCHANGEABLE:
                raise SystemFailure(f"attempt to delete an unchangeable key: {key}")
            del result[key]
        else:
            if not create and key in UNCHANGEABLE:
                raise SystemFailure(
                    f"attempt to update an unchangeable attribute: {key}"
                )
            check_value(key, value)
            result[key] = value
    return result


def check_key(key: str) -> None:
    """Refuse an attribute that there is not.

    @raise SystemFailure: there is none of that name.
    """
    if key not in CHOICES and key != RESERVE_TIME:
        raise SystemFailure(f"unsupported key: {key}")


def check_value(key: str, value: str) -> None:
    """Refuse a value that an attribute cannot have.

    @raise SystemFailure: it cannot.
    """
    choices = CHOICES.get(key)
    if choices is not None:
        if value not in choices:
            raise SystemFailure(f"value is not in set: {key}={value}")
        if (key, value) == (CLEANUP_POLICY, COMPACTION):
            raise SystemFailure(
                "this broker has no compaction topics: cleanup.policy can be DELETE"
            )
        return
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise SystemFailure(f"value is not a number: {key}={value}")
    if int(value) < LEAST_RESERVE_TIME:
        raise SystemFailure(f"value is not in range: {key}={value}")
