# -*- test-case-name: tests.broker.test_json_bodies -*-
"""Bodies of requests and answers: JSON in, JSON out, and errors for bad ones.

What is done with each entry of a list is done in slices
(L{rocketbroker.remoting.cooperative_tasks.soon}). The body of one thing is read at once
and is short (L{bounded}); that of a list is read by
L{LongRequests.read<rocketbroker.broker.long_requests.LongRequests.read>}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from rocketbroker.errors import RemoteProtocolError, SystemFailure
from rocketbroker.wire import json_reader
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import (
    MAX_LENIENT_TURN_BODY,
    MAX_TURN_BODY,
    dumps,
    loads,
    loads_in_steps,
)
from rocketbroker.wire.steps import Steps

T = TypeVar("T")

#: A body of one thing, a group or a mode: more than any has, written again in the
#: longest form within twenty milliseconds.
MAX_BODY: Final = 1 << 16

#: What the body of a list may have for each entry that its request may have: bytes, of
#: which Java writes some 400 for a group and fewer for others, and objects and arrays,
#: of which most entries have two at most, and groups many; and values, of which Java
#: writes up to 40 for a group.
ENTRY_BYTES: Final = 512
ENTRY_OBJECTS: Final = 3
GROUP_OBJECTS: Final = 10
ENTRY_VALUES: Final = 48

#: How many entries are dealt with in one step: half a millisecond.
STEP_ENTRIES: Final = 16

#: How many values one entry may hold, however they nest: a group keeps some of them as
#: they are, and writes them again in three milliseconds.
MAX_VALUES: Final = 4096


def decoded(
    request: Command,
    from_json: Callable[[object], T],
    lenient: int = MAX_LENIENT_TURN_BODY,
) -> T:
    """The value in the body of a request, read in this turn.

    @param from_json: raises RemoteProtocolError for a value of another form.
    @param lenient: how many bytes it may have if it is not strict JSON.
    @raise SystemFailure: there is no body, or not this one, or it is too long to be
        read at once; the remark says why.
    """
    if not request.body:
        raise _no_body()
    try:
        return from_json(loads(request.body, lenient, MAX_TURN_BODY))
    except RemoteProtocolError as error:
        raise unreadable(error) from error


def body_in_steps(
    request: Command, max_values: int = json_reader.MAX_VALUES
) -> Steps[object]:
    """What C{from_json} takes, of a body of any length: C{yield from} this in what
    L{ISlices.run <rocketbroker.remoting.interfaces.ISlices.run>} runs.

    @param max_values: how many values it may have, about: a comma is one.
    @return: the value, where the generator ends.
    @raise SystemFailure: there is no body, or it cannot be read; the remark says why.
    """
    if not request.body:
        raise _no_body()
    try:
        return (yield from loads_in_steps(request.body, max_values))
    except RemoteProtocolError as error:
        raise unreadable(error) from error


def _no_body() -> SystemFailure:
    return SystemFailure("the request has no body")


def unreadable(error: RemoteProtocolError) -> SystemFailure:
    """The answer to a body that C{from_json} does not take."""
    return SystemFailure(f"the body cannot be read: {error}")


def check_size(request: Command, entries: int = 1, objects: int = ENTRY_OBJECTS) -> int:
    """Refuse a body that takes too long to be read.

    @param entries: how many the request may have: rocketbrokerMaxRequestEntries.
    @param objects: how many objects and arrays for each.
    @return: how many values it may have: its commas and opening brackets.
    @raise SystemFailure: it has too many bytes, objects and arrays, or values.
    """
    body = request.body
    room = max(MAX_BODY // ENTRY_BYTES, entries)
    if len(body) > room * ENTRY_BYTES:
        raise SystemFailure(
            f"a body of {len(body)} bytes, at most {room * ENTRY_BYTES}: ask for less "
            "at once"
        )
    brackets = body.count(b"{") + body.count(b"[")
    for count, most, what in (
        (brackets, room * objects, "objects and arrays"),
        (brackets + body.count(b","), room * ENTRY_VALUES, "values"),
    ):
        if count > most:
            raise SystemFailure(
                f"a body of {count} {what}, at most {most} "
                "(rocketbrokerMaxRequestEntries): ask for less at once"
            )
    return room * ENTRY_VALUES


def bounded(
    request: Command, from_json: Callable[[object], T], objects: int = ENTRY_OBJECTS
) -> T:
    """L{decoded}, of the body of one thing, which passes L{check_size}."""
    check_size(request, objects=objects)
    return decoded(request, from_json, MAX_BODY)


def check_count(count: int, what: str, most: int) -> None:
    """Refuse a request of too many entries.

    @param what: the entries are, for the error.
    @param most: rocketbrokerMaxRequestEntries.
    @raise SystemFailure: it has more.
    """
    if count > most:
        raise SystemFailure(
            f"{count} {what} in one request, at most {most} "
            "(rocketbrokerMaxRequestEntries): ask for them in several requests"
        )


def read(from_json: Callable[[object], T], value: object) -> T:
    """An entry of a list.

    @raise SystemFailure: it has another form, or too many values; the remark says so.
    """
    if values_in(value, MAX_VALUES) > MAX_VALUES:
        raise SystemFailure(f"an entry of more than {MAX_VALUES} values")
    try:
        return from_json(value)
    except RemoteProtocolError as error:
        raise unreadable(error) from error


def values_in(value: object, most: int) -> int:
    """How many values a JSON value is, with all that it holds; it is counted no further
    than a little beyond C{most}."""
    count, left = 0, [value]
    while left and count <= most:
        count += 1
        each = left.pop()
        if isinstance(each, dict):
            left.extend(each.values())
        elif isinstance(each, list):
            left.extend(each)
    return count


def with_body(
    request: Command, value: object, ext: dict[str, str] | None = None
) -> Command:
    """A successful answer whose body is C{value} as JSON."""
    return response_to(request, ext=ext, body=dumps(value))
