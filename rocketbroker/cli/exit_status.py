# -*- test-case-name: tests.cli.test_exit_status -*-
"""Exit statuses of verbs, and errors as one sentence with what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import IO, Any, Final, final

import click

from rocketbroker.blocking.answers import PASSING
from rocketbroker.blocking.routes import NoBroker
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
    "The cluster controls access: rocketbroker context set NAME HOST:PORT --access-key "
    "KEY says for whom requests are signed, or ROCKETMQ_CLIENT_ACCESS_KEY and "
    "ROCKETMQ_CLIENT_SECRET_KEY, where no context is used."
)
TLS_ADVICE: Final = (
    "If the server speaks only TLS (tls.server.mode=enforcing): rocketbroker context "
    "set NAME HOST:PORT --tls, or ROCKETMQ_CLIENT_TLS=true, where no context is used. "
    "Otherwise see the server's log."
)
TRUST_ADVICE: Final = (
    "rocketbroker context set NAME HOST:PORT --tls-ca FILE (ROCKETMQ_CLIENT_TLS_CA) "
    "says who has signed certificates, and --no-tls-verify "
    "(ROCKETMQ_CLIENT_TLS_VERIFY=false) takes those that nobody has."
)
NO_TLS_ADVICE: Final = (
    "If the server speaks no TLS, or wants a certificate of ours: rocketbroker context "
    "set NAME HOST:PORT without --tls, or with --tls-certificate and --tls-key "
    "(ROCKETMQ_CLIENT_TLS, ..._TLS_CERTIFICATE, ..._TLS_KEY). The server's log says "
    "more."
)

#: How the error of a handshake begins, and what is said of a certificate.
_NO_TLS: Final = "no TLS with "
_UNTRUSTED: Final = "its certificate is not trusted"


PERMISSION_ADVICE: Final = (
    "rocketbroker topic update TOPIC --perm rw gives it; brokerPermission of a broker "
    "and rocketbroker namesrv wipe take it from all its topics."
)


class NotThere(RocketbrokerError):
    """What was asked for is not there; the text names it, and what there is."""


class NoAnswer(RocketbrokerError):
    """Some brokers did not answer, so what the others say is not all.

    @ivar problem: why the first of them did not.
    """

    def __init__(
        self, reasons: Iterable[tuple[str, RocketbrokerError]], found: str = ""
    ) -> None:
        """
        @param reasons: the name of each broker, and why it did not answer.
        @param found: what would be the outcome without them.
        """
        told = [*reasons]
        text = "; ".join(unanswered(name, reason) for name, reason in told)
        if found:
            text += f". Without {'it' if len(told) == 1 else 'them'}: {found}"
        super().__init__(text)
        self.problem = told[0][1]


def unanswered(name: str, problem: RocketbrokerError) -> str:
    """Words for a broker that does not answer."""
    return f"{name} does not answer: {problem}"


@final
class Failure(click.ClickException):
    """An error as users see it.

    @ivar exit_code: of this module's statuses.
    """

    def __init__(self, message: str, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code  # type: ignore[misc]  # this one's, as click has it

    def show(self, file: IO[Any] | None = None) -> None:
        """See C{click.ClickException.show}."""
        click.echo(f"rocketbroker: {self.message}", file=file, err=file is None)


def broker_of(error: RocketbrokerError, brokers: Mapping[str, str]) -> str:
    """The name of the broker that did not answer; empty if it was none of them.

    @param brokers: their names, by address.
    """
    if isinstance(error, PASSING):
        for address, name in brokers.items():
            # A host of IPv6 stands without its brackets where it cannot be reached.
            host = re.escape(address).replace(r"\[", r"\[?").replace(r"\]", r"\]?")
            if re.search(rf"(?<![\w.:\[]){host}(?!\d)", str(error)):
                return name
    return ""


def named(error: RocketbrokerError, brokers: Mapping[str, str]) -> str:
    """The text of an error, with the name of the broker that did not answer.

    @param brokers: their names, by address.
    """
    name = broker_of(error, brokers)
    if name:
        return unanswered(name, error)
    return str(error) or type(error).__name__


def explained(
    error: RocketbrokerError,
    name_servers: Sequence[str] = (),
    brokers: Mapping[str, str] = {},
) -> Failure:
    """An error with what to do next, and its exit status.

    @param name_servers: their addresses, to tell them from brokers.
    @param brokers: the names of brokers, by address.
    """
    status = NOT_THERE if is_absence(error) else FAILED
    text = named(error, brokers)
    if isinstance(error, BrokerError) and not error.remark:
        text = f"the server answers with code {error.code} and no reason"
    if isinstance(error, TopicNotExist) and _NO_ROUTE in text:
        name = text.partition(_NO_ROUTE)[2].split()[0]
        text = f"There is no topic {name}"
    advice = _advice(error, text, name_servers)
    end = "" if text.endswith((".", "!", "?")) else "."
    return Failure(f"{text}{end} {advice}".strip(), status)


def is_absence(error: RocketbrokerError) -> bool:
    """Whether an error means that what was asked for is not there."""
    if isinstance(error, NoBroker):
        return False  # a broker that is away, and not the topic
    if isinstance(error, BrokerError) and error.code in _NOT_THERE_CODES:
        return True
    kinds = (NotThere, TopicNotExist, QueryNotFound, SubscriptionGroupNotExist)
    return isinstance(error, kinds)


def _advice(error: RocketbrokerError, text: str, name_servers: Sequence[str]) -> str:
    """What to do next; empty if the error says it all."""
    if isinstance(error, NoAnswer):
        return _advice(error.problem, str(error.problem), name_servers)
    if isinstance(error, NoPermission | SystemFailure) and any(
        word in text.lower() for word in _ACL_WORDS
    ):
        return ACL_ADVICE
    if isinstance(error, ConnectionLost):
        if _NO_TLS in text:
            return TRUST_ADVICE if _UNTRUSTED in text else NO_TLS_ADVICE
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
    if isinstance(error, NoPermission) and "may not be" in text:
        return PERMISSION_ADVICE
    if isinstance(error, NoBroker):
        return "rocketbroker cluster ls shows the brokers that are registered."
    if isinstance(error, TopicNotExist):
        return "rocketbroker topic ls --all shows which topics there are."
    if isinstance(error, SubscriptionGroupNotExist):
        return "rocketbroker group ls --all shows which groups there are."
    return ""
