# -*- test-case-name: tests.blocking.test_client -*-
"""Failures that another try may cure, and fields of answers."""

from __future__ import annotations

from typing import Final

from rocketbroker.errors import (
    BrokerError,
    ConnectionLost,
    RemoteProtocolError,
    RequestTimeout,
    RocketbrokerError,
)
from rocketbroker.wire.answers import field, number

__all__ = ["PASSING", "field", "may_pass", "number"]

#: Failures of a connection, which another one may cure.
PASSING: Final = (ConnectionLost, RequestTimeout, RemoteProtocolError)


def may_pass(problem: RocketbrokerError) -> bool:
    """Whether asking again may help."""
    if isinstance(problem, BrokerError):
        return problem.retriable
    return isinstance(problem, PASSING)
