# -*- test-case-name: tests.admin.test_statuses -*-
"""How a verb ends: exit statuses, and errors as one sentence with what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO, Any, Final, final

import click

from rocketbroker.errors import (
    BrokerError,
    ConnectionLost,
    NoPermission,
    QueryNotFound,
    RequestCodeNotSupported,
    RequestTimeout,
    RocketbrokerError,
    SubscriptionGroupNotExist,
    SystemBusy,
    SystemFailure,
    TopicNotExist,
)
from rocketbroker.wire.codes import ResponseCode

#: It did not work; a sentence on standard error says why.
FAILED: Final = 1
#: Wrong use, as click has it.
USAGE: Final = 2
#: The topic, group, message, broker, client or key is not there.
NOT_THERE: Final = 3

#: Answers that mean that something is not there and have no class of their own.
_NOT_THERE_CODES: Final = frozenset(
    {
        ResponseCode.CONSUMER_NOT_ONLINE,
        ResponseCode.NO_MESSAGE,
        ResponseCode.BROKER_NOT_EXIST,
    }
)

#: Words of a refusal by access control, in small letters: C{docs/facts/security-metrics
#: .md} 1 (its code is 1) and 2 (16, as of a topic that may not be written, too).
_ACL_WORDS: Final = (
    "aclexception",
    "accesskey",
    "no acl config",
    "check signature",
    "has no permission to access",
    "user:",
    "username cannot be null",
    "authentication failed",
)

#: How name servers say that there is no topic.
_NO_ROUTE: Final = "No topic route info in name server for the topic: "

ACL_ADVICE: Final = (
    "The cluster controls access: this tool does not sign requests yet. Use mqadmin "
    "with its credentials, or a broker's port without access control."
)
TLS_ADVICE: Final = (
    "If the server speaks only TLS (tls.server.mode=enforcing): this tool does not "
    "yet. Otherwise see the server's log."
)


class NotThere(RocketbrokerError):
    """What was asked for is not there; the text names it, and what there is."""


@final
class Failure(click.ClickException):
    """An error as users see it.

    @ivar exit_code: of this module's statuses.
    """

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # this one's, as click has it

    def show(self, file: IO[Any] | None = None) -> None:
        """See L{click.ClickException.show}."""
        click.echo(f"rocketbroker: {self.message}", file=file, err=file is None)


def explained(error: RocketbrokerError, name_servers: Sequence[str] = ()) -> Failure:
    """An error with what to do next, and its exit status.

    @param name_servers: their addresses, to tell them from brokers.
    """
    status = NOT_THERE if _is_absence(error) else FAILED
    text = str(error) or type(error).__name__
    if isinstance(error, BrokerError) and not error.remark:
        text = f"the server answers with code {error.code} and no reason"
    if isinstance(error, TopicNotExist) and _NO_ROUTE in text:
        name = text.partition(_NO_ROUTE)[2].split()[0]
        text = f"There is no topic {name}"
    advice = _advice(error, text, name_servers)
    end = "" if text.endswith((".", "!", "?")) else "."
    return Failure(f"{text}{end} {advice}".strip(), status)


def _is_absence(error: RocketbrokerError) -> bool:
    if isinstance(error, BrokerError) and error.code in _NOT_THERE_CODES:
        return True
    kinds = (NotThere, TopicNotExist, QueryNotFound, SubscriptionGroupNotExist)
    return isinstance(error, kinds)


def _advice(error: RocketbrokerError, text: str, name_servers: Sequence[str]) -> str:
    """What to do next; empty if the error says it all."""
    if isinstance(error, NoPermission | SystemFailure) and any(
        word in text.lower() for word in _ACL_WORDS
    ):
        return ACL_ADVICE
    if isinstance(error, ConnectionLost):
        if "closed" in text:
            return TLS_ADVICE
        if any(address in text for address in name_servers):
            return (
                "Is the name server running there? Another one is chosen by -n "
                "HOST:PORT, --context, ROCKETMQ_NAMESRV or NAMESRV_ADDR."
            )
        return (
            "The name server told this address of a broker: it has to be reachable "
            "from here (brokerIP1 in the broker's settings, or standalone --advertise)."
        )
    if isinstance(error, RequestTimeout):
        return "--timeout SECONDS waits longer."
    if isinstance(error, RequestCodeNotSupported):
        return "The server is of a version that does not know this request."
    if isinstance(error, SystemBusy):
        return "The broker is overloaded: try again later."
    if isinstance(error, TopicNotExist):
        return "rocketbroker topic ls --all shows which topics there are."
    if isinstance(error, SubscriptionGroupNotExist):
        return "rocketbroker group ls --all shows which groups there are."
    return ""
