# -*- test-case-name: tests.auth.test_permissions -*-
"""Permissions of ACL 1.0, and the ones that a request needs.

A resource is a topic; a group is its retry topic. C{docs/facts/security-metrics.md} 2;
RocketMQ's C{Permission} and C{PlainAccessResource.parse}, of 4.9.8 and of 5.3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, TypeAlias

from rocketbroker.auth.named_in_bodies import consumers
from rocketbroker.auth.request import Asked
from rocketbroker.records.names import is_retry_topic, retry_topic
from rocketbroker.wire.codes import RequestCode

DENY: Final = 1
ANY: Final = 2
PUB: Final = 4
SUB: Final = 8

#: The texts of permissions; all others are DENY.
TEXTS: Final = {
    "PUB": PUB,
    "SUB": SUB,
    "PUB|SUB": PUB | SUB,
    "SUB|PUB": PUB | SUB,
    "DENY": DENY,
}


class Edition(Enum):
    """The release whose rules hold.

    A broker of 4.9 knows no requests of 5, and lets clients send batches (320) to every
    topic; it checks the permissions of an administrator's account that has some, where
    one of 5 lets administrators do everything. C{CLOSED} are the rules of 4.9 without
    their holes: batches and recalls need what sends need, and only administrators
    change accounts.
    """

    V4_9 = "4.9"
    CLOSED = "4.9, closed"
    V5 = "5"


_ADMIN_4_9: Final = frozenset(
    {
        RequestCode.UPDATE_AND_CREATE_TOPIC,
        RequestCode.UPDATE_BROKER_CONFIG,
        RequestCode.DELETE_TOPIC_IN_BROKER,
        RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
        RequestCode.DELETE_SUBSCRIPTIONGROUP,
    }
)

#: Lists all accounts with their secrets; no release after 4.9.7 answers it.
GET_ACL_CONFIG: Final = 54

_ADMIN_5: Final = _ADMIN_4_9 | {
    RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC,
    RequestCode.UPDATE_AND_CREATE_ACL_CONFIG,
    RequestCode.DELETE_ACL_CONFIG,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
    RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG,
    GET_ACL_CONFIG,
}

#: The requests that need an account of an administrator. In RocketMQ 5.3.2 each account
#: may open the broker to everybody (53) all the same; we do not copy that.
ADMIN_CODES: Final = {
    Edition.V4_9: _ADMIN_4_9,
    Edition.CLOSED: _ADMIN_5,
    Edition.V5: _ADMIN_5,
}

#: Resources and the permission that is needed on each.
Needed: TypeAlias = tuple[tuple[str, int], ...]

NOTHING: Final[Needed] = ()


def permission(text: str | None) -> int:
    """The bits of a permission's text."""
    return DENY if text is None else TEXTS.get(text.strip(), DENY)


def covers(owned: int, needed: int) -> bool:
    """Whether permissions that an account has are the needed one."""
    if owned & DENY:
        return False
    if needed & ANY:
        return bool(owned & (PUB | SUB))
    return bool(owned & needed)


def printed(resource: str) -> str:
    """A resource in RocketMQ's answers."""
    if is_retry_topic(resource):
        return f"group:{group_of(resource)}"
    return f"topic:{resource}"


def group_of(resource: str) -> str:
    """The group whose resource it is."""
    return resource[len(retry_topic("")) :]


def needed(asked: Asked, edition: Edition) -> Needed:
    """The permissions that a request needs. A missing field needs nothing.

    @raise RemoteProtocolError: the body of a heartbeat cannot be read.
    """
    find = _OF_CODES[edition].get(asked.code)
    return NOTHING if find is None else find(asked)


def _on(topic: str | None, group: str | None = None, of_topic: int = SUB) -> Needed:
    """C{of_topic} on a topic, and SUB on a group."""
    on_topic = NOTHING if topic is None else ((topic, of_topic),)
    return on_topic if group is None else (*on_topic, (retry_topic(group), SUB))


def _send(topic_key: str, group_key: str) -> _Finder:
    """A send of 4.9: to a retry topic only with the right to consume of the group that
    another field names."""

    def find(asked: Asked) -> Needed:
        topic = asked.fields.get(topic_key)
        if topic is not None and is_retry_topic(topic):
            return _on(None, asked.fields.get(group_key))
        return _on(topic, None, PUB)

    return find


def _send_by_topic(key: str) -> _Finder:
    """A send of 5: the name of a retry topic says whose it is."""

    def find(asked: Asked) -> Needed:
        topic = asked.fields.get(key)
        if topic is not None and is_retry_topic(topic):
            return _on(topic)
        return _on(topic, None, PUB)

    return find


def _fields(topic_key: str | None, group_key: str | None = None) -> _Finder:
    """SUB on the topic and the group of two fields."""

    def find(asked: Asked) -> Needed:
        topic = None if topic_key is None else asked.fields.get(topic_key)
        group = None if group_key is None else asked.fields.get(group_key)
        return _on(topic, group)

    return find


def _heartbeat(asked: Asked) -> Needed:
    """SUB on each group and each topic of a heartbeat."""
    found: dict[str, int] = {}
    for group, topics in consumers(asked.body):
        found[retry_topic(group)] = SUB
        found.update(dict.fromkeys(topics, SUB))
    return tuple(found.items())


def _recall(asked: Asked) -> Needed:
    return _on(asked.fields.get("topic"), None, PUB)


_Finder: TypeAlias = Callable[[Asked], Needed]

_BOTH: Final[Mapping[int, _Finder]] = {
    RequestCode.CONSUMER_SEND_MSG_BACK: _fields(None, "group"),
    RequestCode.PULL_MESSAGE: _fields("topic", "consumerGroup"),
    RequestCode.QUERY_MESSAGE: _fields("topic"),
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UNREGISTER_CLIENT: _fields(None, "consumerGroup"),
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _fields(None, "consumerGroup"),
    RequestCode.UPDATE_CONSUMER_OFFSET: _fields("topic", "consumerGroup"),
}

_OF_4_9: Final[Mapping[int, _Finder]] = {
    **_BOTH,
    RequestCode.SEND_MESSAGE: _send("topic", "group"),
    RequestCode.SEND_MESSAGE_V2: _send("b", "a"),
}

_OF_CODES: Final[Mapping[Edition, Mapping[int, _Finder]]] = {
    Edition.V4_9: _OF_4_9,
    Edition.CLOSED: {
        **_OF_4_9,
        RequestCode.SEND_BATCH_MESSAGE: _send("b", "a"),
        RequestCode.RECALL_MESSAGE: _recall,
    },
    Edition.V5: {
        **_BOTH,
        RequestCode.SEND_MESSAGE: _send_by_topic("topic"),
        RequestCode.SEND_MESSAGE_V2: _send_by_topic("b"),
        RequestCode.SEND_BATCH_MESSAGE: _send_by_topic("b"),
        RequestCode.RECALL_MESSAGE: _recall,
    },
}
