# -*- test-case-name: tests.metrics.test_problems -*-
"""`/problems`: problems of consumer groups, for people and for programs.

A page of HTML, or JSON, as request 31001 answers, with C{?format=json} or for clients
that accept JSON and no HTML. All of it but the words around comes from clients: it is
escaped, and the page has nothing that a browser would run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from html import escape
from typing import Any, Final, final

from twisted.web.resource import Resource
from twisted.web.server import Request

from rocketbroker.wire.versions import version_name

#: Reads the problems: the body of request 31001, as a value.
Problems = Callable[[], "dict[str, Any]"]

_HEAD: Final = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Problems of consumer groups</title>
<style>body{font-family:sans-serif;margin:2em;max-width:60em}
td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top}
code{white-space:pre-wrap;overflow-wrap:anywhere}</style></head><body>
<h1>Problems of consumer groups</h1>
"""


def wants_json(request: Request) -> bool:
    """Whether a program asks."""
    arguments: dict[bytes, list[bytes]] = request.args or {}
    if b"format" in arguments:
        return arguments[b"format"][-1] == b"json"
    accepted = request.getHeader(b"Accept") or b""
    return b"application/json" in accepted and b"text/html" not in accepted


@final
class ProblemsResource(Resource):
    """`/problems`."""

    isLeaf = True

    def __init__(self, problems: Problems) -> None:
        super().__init__()
        self._problems = problems

    def render_GET(self, request: Request) -> bytes:
        """One look."""
        request.setHeader(b"X-Content-Type-Options", b"nosniff")
        if wants_json(request):
            request.setHeader(b"Content-Type", b"application/json")
            return json.dumps(self._problems()).encode("ascii") + b"\n"
        request.setHeader(b"Content-Type", b"text/html; charset=utf-8")
        request.setHeader(
            b"Content-Security-Policy", b"default-src 'none'; style-src 'unsafe-inline'"
        )
        return page(self._problems()).encode("utf-8", "replace")


def page(value: dict[str, Any]) -> str:
    """The problems as HTML."""
    problems = value["problems"]
    parts = [_HEAD]
    if not problems:
        parts.append("<p>None.</p>\n")
    parts += [section(problem) for problem in problems]
    if value["leftOut"]:
        parts.append(f"<p>And {int(value['leftOut'])} more.</p>\n")
    return "".join([*parts, "</body></html>\n"])


def section(problem: dict[str, Any]) -> str:
    """One problem as HTML."""
    since = datetime.fromtimestamp(problem["sinceMs"] / 1000, UTC)
    new = ", new" if problem["new"] else ""
    parts = [
        f"<h2>{escape(problem['group'])}: {escape(problem['kind'])}, ",
        f"<code>{escape(problem['subject'])}</code></h2>\n",
        f"<p>Since {since:%Y-%m-%d %H:%M:%S} UTC{new}. ",
        f"{escape(problem['leadsTo'])}</p>\n<table>\n",
    ]
    for side in problem["sides"]:
        parts.append(
            f"<tr><th colspan=4><code>{escape(side['what'])}</code>: "
            f"{int(side['count'])} members</th></tr>\n"
        )
        for member in side["members"]:
            cells = (
                member["clientId"],
                member["clientAddr"],
                member["language"],
                version_name(member["version"]) if member["language"] else "",
            )
            parts += ["<tr>", *(f"<td>{escape(cell)}</td>" for cell in cells)]
            parts.append("</tr>\n")
    return "".join([*parts, "</table>\n"])
