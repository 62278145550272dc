# -*- test-case-name: tests.test_errors -*-
"""Errors: by whose fault, and what to do next.

A L{BrokerError} is an answer: it has a response code and a remark in words, and
becomes the response to the request that caused it. L{RemoteProtocolError} means that a
peer broke the protocol: its connection is closed. L{LocalProtocolError} means that we
were about to.

Codes: C{docs/facts/remoting.md} 19.
"""

from __future__ import annotations

from typing import ClassVar, Final

#: The end of RocketMQ's remarks that its page of questions and answers treats. To one
#: that does not have this, line break included, the Java client adds a link to that
#: page itself, whatever the remark is about.
FAQ: Final = (
    "\nSee https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
)


class RocketbrokerError(Exception):
    """The root of all errors that this package raises on purpose."""


class LocalProtocolError(RocketbrokerError):
    """We were asked to send something that the protocol cannot carry."""


class RemoteProtocolError(RocketbrokerError):
    """A peer sent something that is not the protocol; its connection is closed."""


class ConfigurationError(RocketbrokerError):
    """A setting that cannot be used; the text is one sentence for the operator."""


class StoreError(RocketbrokerError):
    """The store cannot be opened or written; the text names the path and the reason."""


class RequestTimeout(RocketbrokerError):
    """A request had no answer in time; whether it was carried out is not known."""


class ConnectionLost(RocketbrokerError):
    """The connection went away before the answer came."""


class ClientClosed(RocketbrokerError):
    """The client, or this part of it, was closed before."""


class BrokerError(RocketbrokerError):
    """A response other than success.

    @cvar code: the response code.
    @cvar retriable: whether the same request may succeed later, or elsewhere.
    """

    code: ClassVar[int] = 1
    retriable: ClassVar[bool] = False

    def __init__(self, remark: str = "") -> None:
        super().__init__(remark)
        self.remark = remark


class SystemFailure(BrokerError):
    """SYSTEM_ERROR: the broker could not do it, for a reason of its own."""

    code = 1
    retriable = True


class SystemBusy(BrokerError):
    """SYSTEM_BUSY: flow control; the client is to slow down."""

    code = 2
    retriable = True


class RequestCodeNotSupported(BrokerError):
    """REQUEST_CODE_NOT_SUPPORTED: this port does not answer that code."""

    code = 3


class MessageIllegal(BrokerError):
    """MESSAGE_ILLEGAL: too large, or its properties are not allowed."""

    code = 13


class SlaveNotAvailable(BrokerError):
    """SLAVE_NOT_AVAILABLE: this broker is a slave, and only a master does that."""

    code = 11


class ServiceNotAvailable(BrokerError):
    """SERVICE_NOT_AVAILABLE: the store does not take messages now."""

    code = 14
    retriable = True


class NoPermission(BrokerError):
    """NO_PERMISSION: the broker, topic or group does not allow it."""

    code = 16


class TopicNotExist(BrokerError):
    """TOPIC_NOT_EXIST: no such topic here, and it may not be created."""

    code = 17
    retriable = True


class NoBroker(TopicNotExist):
    """The name server knows the topic, but now no broker that could be asked."""


class PullOffsetMoved(BrokerError):
    """PULL_OFFSET_MOVED: the offset asked for is outside the queue."""

    code = 21


class QueryNotFound(BrokerError):
    """QUERY_NOT_FOUND: nothing is stored under that name."""

    code = 22


class SubscriptionParseFailed(BrokerError):
    """SUBSCRIPTION_PARSE_FAILED: the filter expression makes no sense."""

    code = 23


class SubscriptionNotExist(BrokerError):
    """SUBSCRIPTION_NOT_EXIST: the group has no subscription for the topic."""

    code = 24


class SubscriptionNotLatest(BrokerError):
    """SUBSCRIPTION_NOT_LATEST: the broker knows an older subscription."""

    code = 25
    retriable = True


class SubscriptionGroupNotExist(BrokerError):
    """SUBSCRIPTION_GROUP_NOT_EXIST: no such group, and it may not be created."""

    code = 26


class FilterDataNotExist(BrokerError):
    """FILTER_DATA_NOT_EXIST: the broker has no filter of the group for the topic."""

    code = 27


class FilterDataNotLatest(BrokerError):
    """FILTER_DATA_NOT_LATEST: the broker knows an older filter."""

    code = 28
    retriable = True


class InvalidParameter(BrokerError):
    """INVALID_PARAMETER: a value of the request is outside its range."""

    code = 29


class NotLeaderForQueue(BrokerError):
    """NOT_LEADER_FOR_QUEUE: another broker leads that queue of a static topic."""

    code = 501
    retriable = True


class IllegalOperation(BrokerError):
    """ILLEGAL_OPERATION: the operation is not allowed any more."""

    code = 604


def all_broker_errors() -> dict[int, type[BrokerError]]:
    """The exception class of each response code that has one."""
    classes: list[type[BrokerError]] = [BrokerError, *BrokerError.__subclasses__()]
    return {cls.code: cls for cls in classes}


def error_of_response(code: int, remark: str | None) -> BrokerError:
    """The exception that stands for a response other than success.

    @param code: the response code; one without a class of its own becomes a
        L{BrokerError} whose instance carries it.
    @param remark: the peer's words.
    """
    cls = all_broker_errors().get(code)
    if cls is not None:
        return cls(remark or "")
    error = BrokerError(remark or "")
    error.code = code  # type: ignore[misc]  # this instance stands for that code
    return error
