# -*- test-case-name: tests.broker.test_json_bodies -*-
"""Bodies of requests and answers: JSON in, JSON out, and errors for bad ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rocketbroker.errors import RemoteProtocolError, SystemFailure
from rocketbroker.wire.command import Command, response_to
from rocketbroker.wire.fastjson import MAX_LENIENT_BODY, dumps, loads

T = TypeVar("T")


def decoded(request: Command, from_json: Callable[[object], T]) -> T:
    """The value in the body of a request.

    @param from_json: raises RemoteProtocolError for a value of another form.
    @raise SystemFailure: there is no body, or not this one; the remark says why.
    """
    if not request.body:
        raise SystemFailure("the request has no body")
    try:
        return from_json(loads(request.body, MAX_LENIENT_BODY))
    except RemoteProtocolError as error:
        raise SystemFailure(f"the body cannot be read: {error}") from error


def with_body(
    request: Command, value: object, ext: dict[str, str] | None = None
) -> Command:
    """A successful answer whose body is C{value} as JSON."""
    return response_to(request, ext=ext, body=dumps(value))
