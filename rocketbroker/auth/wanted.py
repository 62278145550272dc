# -*- test-case-name: tests.auth.test_wanted -*-
"""Resources and actions that a remoting request asks for, under ACL 2.0.

The table is RocketMQ 5.3.3's: a part of it stands in its
C{DefaultAuthorizationContextBuilder}, the other in marks of its header classes
(C{docs/facts/security-metrics.md} 3.6). A code that is in no table asks for nothing:
to be a known user is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, TypeAlias

import attrs

from rocketbroker.auth.entries import Action
from rocketbroker.auth.java_strings import tokens
from rocketbroker.auth.named_in_bodies import consumers, locked
from rocketbroker.auth.request import Asked
from rocketbroker.auth.resources import (
    Resource,
    ResourceType,
    cluster,
    group,
    topic,
)
from rocketbroker.records.names import is_retry_topic
from rocketbroker.wire.codes import RequestCode


class Release(Enum):
    """The release whose rules hold.

    5.4 turned the order of entries round (L{rocketbroker.auth.order}), looks at
    disabled users once more when it authorizes, and takes the group of a send to a
    retry topic from the topic's name alone.
    """

    V5_3 = "5.3"
    V5_4 = "5.4"


@attrs.frozen(cache_hash=True)
class Want:
    """A resource, and actions of which one must be allowed."""

    resource: Resource
    actions: tuple[Action, ...]


Wants: TypeAlias = tuple[Want, ...]

_PUB: Final = (Action.PUB,)
_SUB: Final = (Action.SUB,)
_SUB_GET: Final = (Action.SUB, Action.GET)
_SUB_UPDATE: Final = (Action.SUB, Action.UPDATE)
_ROUTE: Final = (Action.PUB, Action.SUB, Action.GET)
_GET: Final = (Action.GET,)
_UPDATE: Final = (Action.UPDATE,)


def wanted(asked: Asked, release: Release, own_cluster: str) -> Wants:
    """What a request asks for; all of it must be allowed.

    @param own_cluster: the name of the broker's cluster.
    @raise RemoteProtocolError: the body names resources, and cannot be read.
    """
    if not asked.fields:
        return ()
    code = asked.code
    send = _SENDS.get(code)
    if send is not None:
        return _send(asked.fields, *send, release)
    find = _FOUND.get(code)
    if find is not None:
        return find(asked)
    marked = _MARKED.get(code)
    if marked is not None:
        return _of_fields(asked.fields, *marked)
    actions = _ON_CLUSTER.get(code)
    if actions is not None:
        field = _CLUSTER_FIELDS.get(code)
        named = None if field is None else asked.fields.get(field)
        if named is None and code == RequestCode.GET_BROKER_MEMBER_GROUP:
            return ()
        return (Want(cluster(own_cluster if named is None else named), actions),)
    return ()


def _send(
    fields: Mapping[str, str], topic_key: str, group_key: str, release: Release
) -> Wants:
    """A send: PUB on the topic, or SUB on the group whose retry topic it is."""
    name = fields.get(topic_key)
    if name is None or not is_retry_topic(name):
        return (Want(topic(name), _PUB),)
    named = fields.get(group_key)
    if release is Release.V5_3 and named is not None and named.strip():
        name = named
    return (Want(group(name), _SUB),)


def _both(
    fields: Mapping[str, str], topic_key: str, group_key: str, actions: Actions
) -> Wants:
    """Actions on a topic that is no retry topic, and on a group."""
    on_group = Want(group(fields.get(group_key)), actions)
    name = fields.get(topic_key)
    if name is not None and is_retry_topic(name):
        return (on_group,)
    return Want(topic(name), actions), on_group


def _of_consumer(actions: Actions) -> _Finder:
    return lambda asked: _both(asked.fields, "topic", "consumerGroup", actions)


def _of_topic(actions: Actions) -> _Finder:
    return lambda asked: (Want(topic(asked.fields.get("topic")), actions),)


def _of_group(key: str, actions: Actions) -> _Finder:
    return lambda asked: (Want(group(asked.fields.get(key)), actions),)


def _route(asked: Asked) -> Wants:
    name = asked.fields.get("topic")
    if name is not None and is_retry_topic(name):
        return (Want(group(name), _SUB_GET),)
    return (Want(topic(name), _ROUTE),)


def _end_transaction(asked: Asked) -> Wants:
    """PUB on the topic, which clients before 5.3 do not name."""
    name = asked.fields.get("topic")
    return (Want(topic(name), _PUB),) if name is not None and name.strip() else ()


def _unregister(asked: Asked) -> Wants:
    name = asked.fields.get("consumerGroup")
    return (Want(group(name), _SUB),) if name is not None and name.strip() else ()


def _subscribed(name: str, topics: Iterable[str]) -> list[Want]:
    """SUB on a group, and on topics that are no retry topics."""
    found = [Want(group(name), _SUB)]
    found += [Want(topic(each), _SUB) for each in topics if not is_retry_topic(each)]
    return found


def _heartbeat(asked: Asked) -> Wants:
    return tuple(
        want
        for name, topics in consumers(asked.body)
        for want in _subscribed(name, topics)
    )


def _locks(asked: Asked) -> Wants:
    return tuple(_subscribed(*locked(asked.body)))


def _of_fields(
    fields: Mapping[str, str], actions: Actions, names: tuple[tuple[str, str], ...]
) -> Wants:
    """Actions on what fields name, those that are there. A retry topic is its group.

    @param names: of fields, each with the kind of resource, and for a list with what
        stands between its entries.
    """
    found = []
    for key, kind in names:
        text = fields.get(key)
        if text is None:
            continue
        separator = kind[1:]
        for name in tokens(text, separator) if separator else [text]:
            if kind[0] == "t" and is_retry_topic(name):
                found.append(Want(group(name), actions))
            else:
                found.append(Want(Resource(_KINDS[kind[0]], name), actions))
    return tuple(found)


Actions: TypeAlias = tuple[Action, ...]
_Finder: TypeAlias = Callable[[Asked], Wants]

_KINDS: Final = {"t": ResourceType.TOPIC, "g": ResourceType.GROUP}

#: The fields of topic and group of sends.
_SENDS: Final[Mapping[int, tuple[str, str]]] = {
    RequestCode.SEND_MESSAGE: ("topic", "group"),
    RequestCode.SEND_MESSAGE_V2: ("b", "a"),
    RequestCode.SEND_BATCH_MESSAGE: ("b", "a"),
}

_FOUND: Final[Mapping[int, _Finder]] = {
    RequestCode.GET_ROUTEINFO_BY_TOPIC: _route,
    RequestCode.RECALL_MESSAGE: _of_topic(_PUB),
    RequestCode.END_TRANSACTION: _end_transaction,
    RequestCode.CONSUMER_SEND_MSG_BACK: _of_group("group", _SUB),
    RequestCode.PULL_MESSAGE: _of_consumer(_SUB),
    RequestCode.QUERY_MESSAGE: _of_topic(_SUB_GET),
    RequestCode.HEART_BEAT: _heartbeat,
    RequestCode.UNREGISTER_CLIENT: _unregister,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP: _of_group("consumerGroup", _SUB_GET),
    RequestCode.QUERY_CONSUMER_OFFSET: _of_consumer(_SUB_GET),
    RequestCode.UPDATE_CONSUMER_OFFSET: _of_consumer(_SUB_UPDATE),
    RequestCode.LOCK_BATCH_MQ: _locks,
    RequestCode.UNLOCK_BATCH_MQ: _locks,
}

_TOPIC: Final = (("topic", "t"),)
_GROUP: Final = (("group", "g"),)
_CONSUMER: Final = (("consumerGroup", "g"),)
# The order decides which resource a refusal names.
_TOPIC_GROUP: Final = (*_TOPIC, *_GROUP)
_GROUP_TOPIC: Final = (*_GROUP, *_TOPIC)
_TOPIC_CONSUMER: Final = (*_TOPIC, *_CONSUMER)
_CONSUMER_TOPIC: Final = (*_CONSUMER, *_TOPIC)

#: Actions, and the fields that name the resources.
_MARKED: Final[Mapping[int, tuple[Actions, tuple[tuple[str, str], ...]]]] = {
    RequestCode.UPDATE_AND_CREATE_TOPIC: ((Action.CREATE,), _TOPIC),
    RequestCode.DELETE_TOPIC_IN_BROKER: ((Action.DELETE,), _TOPIC),
    RequestCode.RESUME_CHECK_HALF_MESSAGE: (_UPDATE, _TOPIC),
    RequestCode.DELETE_SUBSCRIPTIONGROUP: ((Action.DELETE,), (("groupName", "g"),)),
    **dict.fromkeys(
        (
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP,
            RequestCode.GET_MAX_OFFSET,
            RequestCode.GET_MIN_OFFSET,
            RequestCode.GET_EARLIEST_MSG_STORETIME,
            RequestCode.VIEW_MESSAGE_BY_ID,
            RequestCode.GET_TOPIC_STATS_INFO,
            RequestCode.QUERY_TOPIC_CONSUME_BY_WHO,
            RequestCode.GET_TOPIC_CONFIG,
            RequestCode.CHECK_ROCKSDB_CQ_WRITE_PROGRESS,
        ),
        (_GET, _TOPIC),
    ),
    RequestCode.GET_CONSUMER_CONNECTION_LIST: (_GET, _CONSUMER),
    RequestCode.GET_CONSUMER_RUNNING_INFO: (_GET, _CONSUMER),
    RequestCode.QUERY_TOPICS_BY_CONSUMER: (_GET, _GROUP),
    RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: (_GET, _GROUP),
    RequestCode.GET_CONSUME_STATS: (_GET, (*_CONSUMER_TOPIC, ("topicList", "t;"))),
    RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS: (_GET, _TOPIC_GROUP),
    RequestCode.QUERY_CONSUME_TIME_SPAN: (_GET, _TOPIC_GROUP),
    RequestCode.QUERY_CORRECTION_OFFSET: (
        _GET,
        (("filterGroups", "g,"), ("compareGroup", "g"), *_TOPIC),
    ),
    RequestCode.QUERY_CONSUME_QUEUE: (_GET, _TOPIC_CONSUMER),
    RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER: (_GET, _GROUP_TOPIC),
    RequestCode.POLLING_INFO: (_GET, _CONSUMER_TOPIC),
    RequestCode.INVOKE_BROKER_TO_RESET_OFFSET: (_UPDATE, _GROUP_TOPIC),
    RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: (_UPDATE, _GROUP_TOPIC),
    RequestCode.CLONE_GROUP_OFFSET: (_UPDATE, (("destGroup", "g"), *_TOPIC)),
    **dict.fromkeys(
        (
            RequestCode.CONSUME_MESSAGE_DIRECTLY,
            RequestCode.POP_MESSAGE,
            RequestCode.ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
            RequestCode.NOTIFICATION,
        ),
        (_SUB, _CONSUMER_TOPIC),
    ),
    RequestCode.PEEK_MESSAGE: (_SUB, _TOPIC_CONSUMER),
}

_ON_CLUSTER: Final[Mapping[int, Actions]] = {
    **dict.fromkeys(
        (101, 204, 219, 315, 317, 322, 328, 355, 901, 1004, 1012)
        + (3004, 3005, 3009, 3010),
        _GET,
    ),
    **dict.fromkeys(
        (100, 102, 103, 104, 205, 216, 217, 327, 902, 903, 904, 905, 906, 908)
        + (1001, 1002, 1003, 1008, 1011, 1013)
        + (3001, 3002, 3003, 3006, 3007, 3008),
        _UPDATE,
    ),
}

#: The fields that name a cluster; without it, it is the broker's own.
_CLUSTER_FIELDS: Final[Mapping[int, str]] = {
    **dict.fromkeys(
        (103, 104, 216, 322, 901, 904, 1002, 1003, 1011, 1012, 1013), "clusterName"
    ),
    903: "brokerClusterName",
}

#: The requests that make the load: what they ask for depends on these two fields alone.
DEPENDS_ON: Final[Mapping[int, tuple[str, str]]] = {
    **_SENDS,
    **dict.fromkeys(
        (
            RequestCode.PULL_MESSAGE,
            RequestCode.QUERY_CONSUMER_OFFSET,
            RequestCode.UPDATE_CONSUMER_OFFSET,
            RequestCode.POP_MESSAGE,
            RequestCode.ACK_MESSAGE,
            RequestCode.CHANGE_MESSAGE_INVISIBLETIME,
        ),
        ("topic", "consumerGroup"),
    ),
}
