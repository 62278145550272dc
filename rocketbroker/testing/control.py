# -*- test-case-name: tests.testing.test_control -*-
"""Moves the time of a broker in testing mode, and makes it fail.

For C{rocketbroker standalone --testing}; any other broker refuses with
L{RequestCodeNotSupported <rocketbroker.errors.RequestCodeNotSupported>}. What is asked
is described in C{docs/testing-faults.rst}::

    with Client(Settings(name_server)) as client:
        advance(client, broker, "3d")
        number = add_fault(client, broker, "busy", topic="Orders", times=1)
        ...
        assert faults(client, broker)[0].hits == 1
        clear_faults(client, broker)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, NamedTuple, final

import attrs

from rocketbroker.blocking.client import Client
from rocketbroker.errors import ConfigurationError
from rocketbroker.wire.codes import RequestCode
from rocketbroker.wire.command import Command

#: How long a move may take, in seconds: the broker does all that is due meanwhile.
MOVE_SECONDS: Final = 60.0

_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


class BrokerTime(NamedTuple):
    """What time it is for a broker.

    @ivar time_ms: its time of day, in milliseconds since 1970.
    @ivar ahead_ms: how far that is ahead of the machine's.
    """

    time_ms: int
    ahead_ms: int


@final
@attrs.frozen(kw_only=True)
class Fault:
    """A rule of a broker, and what it has met.

    @ivar number: removes it.
    @ivar action: what happens.
    @ivar request: the codes of the requests that it is about; None: all.
    @ivar hits: how many requests it has met.
    @ivar last: the last of these, each with C{time}, C{request}, C{topic}, C{group} and
        C{client}.
    """

    number: int
    action: str
    topic: str | None
    group: str | None
    client: str | None
    request: Sequence[int] | None
    code: int | None
    remark: str | None
    ms: int
    times: int | None
    owner: str | None
    hits: int
    last: Sequence[Mapping[str, Any]]


def milliseconds(span: str | float | timedelta) -> int:
    """A span of time: seconds, a timedelta, or a text as C{3d}, C{+1h30m}, C{200ms}.

    @raise ConfigurationError: the text is none.
    """
    if isinstance(span, timedelta):
        return round(span.total_seconds() * 1000)
    if not isinstance(span, str):
        return round(span * 1000)
    text = span.removeprefix("+")
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ConfigurationError(
            f"{span!r} is no span of time: give +3d, 1h30m, 6s or 200ms."
        )
    return round(sum(float(number) * _UNITS[unit] for number, unit in parts))


def advance(
    client: Client,
    broker: str,
    span: str | float | timedelta,
    keep_clients: bool = False,
) -> BrokerTime:
    """Move the time of a broker forward; what is due by then has been begun.

    @param client: asks the broker.
    @param broker: its address, C{host:port}.
    @param span: how far; 0 only asks for the time.
    @param keep_clients: connected clients have not been silent for so long.
    @return: the time afterwards.
    @raise RequestCodeNotSupported: it is not in testing mode.
    @raise InvalidParameter: time goes forward only.
    """
    ext = {"advanceMillis": str(milliseconds(span))}
    if keep_clients:
        ext["keepClients"] = "true"
    answer = client.ask_server(
        broker, RequestCode.TESTING_TIME, ext, seconds=MOVE_SECONDS
    )
    found = answer.ext or {}
    return BrokerTime(int(found["timeMillis"]), int(found["aheadMillis"]))


def broker_time(client: Client, broker: str) -> BrokerTime:
    """What time it is for a broker; errors as L{advance}."""
    return advance(client, broker, 0)


def add_fault(
    client: Client,
    broker: str,
    action: str,
    *,
    topic: str | None = None,
    group: str | None = None,
    client_id: str | None = None,
    request: str | int | Sequence[str | int] | None = None,
    code: int | None = None,
    remark: str | None = None,
    ms: int | None = None,
    times: int | None = None,
    owner: str | None = None,
) -> int:
    """Let requests fail that fit all that is given.

    @param action: C{code}, C{busy}, C{delay}, C{drop}, C{cut}, C{flush_timeout},
        C{slave_timeout}, C{slave_missing}, C{corrupt} or C{duplicate}.
    @param client_id: the id of the client, or its address and port.
    @param request: a request code, its name, or C{send}, C{pull}, C{pop}, C{ack} or
        C{heartbeat}; or several.
    @param code: of the answer, for the action C{code}.
    @param remark: of the answer, instead of RocketMQ's.
    @param ms: how long the broker waits first.
    @param times: how many requests it meets; None: it has no end.
    @param owner: whose it is, so that it can be removed with all others of the owner.
    @return: the number of the rule.
    @raise RequestCodeNotSupported: the broker is not in testing mode.
    @raise InvalidParameter: there is no such rule; a sentence says why.
    """
    rule = {
        "action": action,
        "topic": topic,
        "group": group,
        "client": client_id,
        "request": list(request) if isinstance(request, tuple) else request,
        "code": code,
        "remark": remark,
        "ms": ms,
        "times": times,
        "owner": owner,
    }
    given = {key: value for key, value in rule.items() if value is not None}
    return int(_ask(client, broker, {"add": given})["id"])


def faults(
    client: Client, broker: str, number: int | None = None, owner: str | None = None
) -> list[Fault]:
    """The rules of a broker, the oldest first, with what they have met.

    @param number: only that one.
    @param owner: only those of one owner.
    @raise RequestCodeNotSupported: the broker is not in testing mode.
    """
    found = _ask(client, broker, {"list": _which(number, owner)})
    return [
        Fault(
            number=row["id"],
            last=row["lastHits"],
            **{key: row[key] for key in _SAME},
        )
        for row in found["rules"]
    ]


def clear_faults(
    client: Client, broker: str, number: int | None = None, owner: str | None = None
) -> int:
    """Remove rules: all, or that with a number, or those of an owner.

    @return: how many there were.
    @raise RequestCodeNotSupported: the broker is not in testing mode.
    """
    found = _ask(client, broker, {"clear": _which(number, owner)})
    return int(found["cleared"])


#: What is called as in the rules.
_SAME: Final = (
    "action",
    "topic",
    "group",
    "client",
    "request",
    "code",
    "remark",
    "ms",
    "times",
    "owner",
    "hits",
)


def _which(number: int | None, owner: str | None) -> dict[str, object]:
    named = {"id": number, "owner": owner}
    return {key: value for key, value in named.items() if value is not None}


def _ask(client: Client, broker: str, body: dict[str, Any]) -> dict[str, Any]:
    answer: Command = client.ask_server(
        broker, RequestCode.TESTING_FAULTS, body=json.dumps(body).encode()
    )
    found: dict[str, Any] = json.loads(answer.body)
    return found
