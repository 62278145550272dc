# -*- test-case-name: tests.auth.test_wanted_by_calls -*-
"""Resources and actions that a gRPC call asks for, under ACL 2.0.

The table is that of RocketMQ's Proxy (C{docs/facts/proxy.md} 14; its
C{DefaultAuthorizationContextBuilder}). Messages are taken by the names and members of
the protocol: this module imports no library for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from rocketbroker.auth.entries import Action
from rocketbroker.auth.resources import group, topic
from rocketbroker.auth.wanted import Want, Wants
from rocketbroker.errors import NoPermission

#: The package of RocketMQ's messages. Ours are in one of their own, so that both can
#: be in one process.
PACKAGE: Final = "apache.rocketmq.v2"

#: Client types that consume: PUSH_CONSUMER, SIMPLE_CONSUMER, PULL_CONSUMER.
_CONSUMERS: Final = frozenset({2, 3, 4})

_PUB: Final = (Action.PUB,)
_SUB: Final = (Action.SUB,)


def full_name(message: Any) -> str:
    """The name of a call's message in white lists:
    C{apache.rocketmq.v2.SendMessageRequest}."""
    return f"{PACKAGE}.{message.DESCRIPTOR.name}"


def wanted(message: Any) -> Wants:
    """What a call asks for; all of it must be allowed.

    @param message: the call's message.
    @raise NoPermission: a name that it needs is blank, in the Proxy's words.
    """
    find = _FOUND.get(message.DESCRIPTOR.name)
    return () if find is None else find(message)


def _on_topic(resource: Any, actions: tuple[Action, ...]) -> Want:
    if not resource.name.strip():
        raise NoPermission("topic is null.")
    return Want(topic(resource.name), actions)


def _on_group(resource: Any) -> Want:
    if not resource.name.strip():
        raise NoPermission("group is null.")
    return Want(group(resource.name), _SUB)


def _send(message: Any) -> Wants:
    """PUB on the topic of the first message; all others must have the same."""
    if not message.messages:
        raise NoPermission("message is null.")
    return (_on_topic(message.messages[0].topic, _PUB),)


def _publish(message: Any) -> Wants:
    return (_on_topic(message.topic, _PUB),)


def _route(message: Any) -> Wants:
    return (_on_topic(message.topic, _PUB + _SUB),)


def _consume(message: Any) -> Wants:
    return _on_group(message.group), _on_topic(message.topic, _SUB)


def _receive(message: Any) -> Wants:
    if not message.HasField("message_queue"):
        raise NoPermission("messageQueue is null.")
    queue = message.message_queue
    return _on_group(message.group), _on_topic(queue.topic, _SUB)


def _heartbeat(message: Any) -> Wants:
    return (_on_group(message.group),) if message.client_type in _CONSUMERS else ()


def _of_group(message: Any) -> Wants:
    return (_on_group(message.group),)


def _termination(message: Any) -> Wants:
    return (_on_group(message.group),) if message.group.name.strip() else ()


def _telemetry(message: Any) -> Wants:
    """What settings name; other commands ask for nothing."""
    if not message.HasField("settings"):
        return ()
    settings = message.settings
    publishing = settings.HasField("publishing")
    subscription = settings.HasField("subscription")
    if not publishing and not subscription:
        raise NoPermission("settings command doesn't have publishing or subscription.")
    found: list[Want] = []
    if publishing:
        found += [_on_topic(each, _PUB) for each in settings.publishing.topics]
    if subscription:
        found.append(_on_group(settings.subscription.group))
        entries = settings.subscription.subscriptions
        found += [_on_topic(each.topic, _SUB) for each in entries]
    return tuple(found)


_FOUND: Final[Mapping[str, Callable[[Any], Wants]]] = {
    "SendMessageRequest": _send,
    "RecallMessageRequest": _publish,
    "EndTransactionRequest": _publish,
    "QueryRouteRequest": _route,
    "HeartbeatRequest": _heartbeat,
    "ReceiveMessageRequest": _receive,
    "AckMessageRequest": _consume,
    "ForwardMessageToDeadLetterQueueRequest": _consume,
    "QueryAssignmentRequest": _consume,
    "ChangeInvisibleDurationRequest": _of_group,
    "NotifyClientTerminationRequest": _termination,
    "TelemetryCommand": _telemetry,
}
