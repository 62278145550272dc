# -*- test-case-name: tests.broker.access -*-
"""Words on decisions: a line of the log, and request 31012, of ours.

The request asks who the asker is, and which rule decides about a resource.

Fields: C{user}, the asker unless it is given; C{resource}, as C{Topic:Orders}, and
C{action}, as C{Pub}; without these it is only told who that is. Only administrators ask
about others. The answer is JSON::

    {"user": "billing", "allowed": false, "rule": "account billing: topicPerms A=SUB",
     "remark": "No default permission for topic:A", "generation": "1.0"}
"""

from __future__ import annotations

from rocketbroker.auth.decision import Decision
from rocketbroker.auth.request import Asked
from rocketbroker.remoting.audit_line import MAX_SHOWN
from rocketbroker.remoting.interfaces import IConnection
from rocketbroker.wire import fastjson
from rocketbroker.wire.command import Command, response_to


def refusal_line(connection: IConnection, asked: Asked, decision: Decision) -> str:
    """What the log says of a refused request."""
    words = decision.remark[:MAX_SHOWN].rstrip(".")
    return f"Request {asked.code} of {connection.peer} is refused: {words}."


def answer_of(
    request: Command, user: str | None, decision: Decision, generation: str
) -> Command:
    """The answer.

    @param user: who it is about.
    @param generation: of access control.
    """
    body = {
        "user": user,
        "allowed": decision.allowed,
        "rule": decision.rule,
        "remark": decision.remark,
        "generation": generation,
    }
    return response_to(request, body=fastjson.dumps(body))
