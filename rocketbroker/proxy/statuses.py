# -*- test-case-name: tests.proxy.test_statuses -*-
"""Statuses: the answer to a call says by a code what came of it, and in words why.

The status of gRPC itself stays OK but for the telemetry stream.
C{docs/facts/proxy.md} 11.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.errors import (
    BrokerError,
    ConnectionLost,
    RequestTimeout,
    RocketbrokerError,
)
from rocketbroker.proxy.messages_pb2 import Code, Status

#: Codes of brokers that have one of their own here; all others are internal errors.
_CODES: Final = {
    0: Code.OK,
    2: Code.TOO_MANY_REQUESTS,
    3: Code.NOT_IMPLEMENTED,
    17: Code.TOPIC_NOT_FOUND,
    26: Code.CONSUMER_GROUP_NOT_FOUND,
}


@final
class Refusal(RocketbrokerError):
    """A call that is refused.

    @ivar code: why, for programs.
    """

    def __init__(self, code: Code, words: str) -> None:
        super().__init__(words)
        self.code = code

    def __reduce__(self) -> tuple[object, ...]:
        return Refusal, (self.code, str(self))


def ok() -> Status:
    """The status of what went well."""
    return Status(code=Code.OK, message="OK")


def of_remoting(code: int) -> Code:
    """The code here for one of a broker."""
    return _CODES.get(code, Code.INTERNAL_SERVER_ERROR)


def status_of(problem: RocketbrokerError) -> Status:
    """The status that tells a problem."""
    code = Code.INTERNAL_SERVER_ERROR
    if isinstance(problem, Refusal):
        code = problem.code
    elif isinstance(problem, BrokerError):
        code = of_remoting(problem.code)
    elif isinstance(problem, RequestTimeout | ConnectionLost):
        code = Code.PROXY_TIMEOUT
    return Status(code=code, message=str(problem) or Code.Name(code))
