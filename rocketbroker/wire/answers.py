# -*- test-case-name: tests.wire.test_answers -*-
"""Fields of an answer that may not be missing.

The typed headers read as Java does: a number that is missing or is none becomes 0.
From an answer that would be an offset, and a client that goes on at offset 0 because
an answer was damaged reads everything again; so here it is an error.
"""

from __future__ import annotations

from rocketbroker.errors import RemoteProtocolError
from rocketbroker.wire.command import Command


def field(answer: Command, name: str) -> str:
    """One field of an answer.

    @raise RemoteProtocolError: it is missing.
    """
    value = (answer.ext or {}).get(name)
    if value is None:
        raise RemoteProtocolError(f"an answer without {name}")
    return value


def number(answer: Command, name: str) -> int:
    """One field of an answer that is a number of 64 bits.

    @raise RemoteProtocolError: it is missing or no such number.
    """
    value = field(answer, name)
    if len(value) <= 20:
        try:
            found = int(value)
        except ValueError:
            pass
        else:
            if -(1 << 63) <= found < 1 << 63:
                return found
    raise RemoteProtocolError(f"{name} of an answer is not a number: {value[:40]!r}")
