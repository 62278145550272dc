# -*- test-case-name: tests.records.test_names -*-
"""Names of topics and groups: what they mean and which are allowed.

C{docs/facts/broker.md} 11.2 to 11.6; C{docs/facts/client.md} 25.
"""

from __future__ import annotations

import re
from typing import Final

RETRY_PREFIX: Final = "%RETRY%"
DLQ_PREFIX: Final = "%DLQ%"
LMQ_PREFIX: Final = "%LMQ%"
SYSTEM_PREFIX: Final = "rmq_sys_"
NAMESPACE_SEPARATOR: Final = "%"
SYSTEM_GROUP_PREFIX: Final = "CID_RMQ_SYS_"
REPLY_SUFFIX: Final = "_REPLY_TOPIC"
REVIVE_PREFIX: Final = "rmq_sys_REVIVE_LOG_"
SYNC_MEMBER_PREFIX: Final = "rmq_sys_SYNC_BROKER_MEMBER_"

AUTO_CREATE_TOPIC: Final = "TBW102"
SCHEDULE_TOPIC: Final = "SCHEDULE_TOPIC_XXXX"
SCHEDULE_TOPIC_BYTES: Final = SCHEDULE_TOPIC.encode()
BENCHMARK_TOPIC: Final = "BenchmarkTest"
HALF_TOPIC: Final = "RMQ_SYS_TRANS_HALF_TOPIC"
OP_HALF_TOPIC: Final = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TRACE_TOPIC: Final = "RMQ_SYS_TRACE_TOPIC"
CHECK_MAX_TIME_TOPIC: Final = "TRANS_CHECK_MAX_TIME_TOPIC"
SELF_TEST_TOPIC: Final = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC: Final = "OFFSET_MOVED_EVENT"
CHECKPOINT_TOPIC: Final = "CHECKPOINT_TOPIC"
TIMER_TOPIC: Final = "rmq_sys_wheel_timer"

#: The topics that are the system's whatever the broker is called.
SYSTEM_TOPICS: Final = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        BENCHMARK_TOPIC,
        HALF_TOPIC,
        TRACE_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        CHECKPOINT_TOPIC,
    }
)

#: The topics to which clients may not send.
NO_SEND_TOPICS: Final = frozenset(
    {
        SCHEDULE_TOPIC,
        HALF_TOPIC,
        OP_HALF_TOPIC,
        CHECK_MAX_TIME_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
    }
)

DEFAULT_PRODUCER: Final = "DEFAULT_PRODUCER"
DEFAULT_CONSUMER: Final = "DEFAULT_CONSUMER"
TOOLS_CONSUMER: Final = "TOOLS_CONSUMER"
SCHEDULE_CONSUMER: Final = "SCHEDULE_CONSUMER"
INNER_PRODUCER: Final = "CLIENT_INNER_PRODUCER"

#: The groups that are the system's, besides those with the prefix.
SYSTEM_GROUPS: Final = frozenset(
    {
        DEFAULT_PRODUCER,
        DEFAULT_CONSUMER,
        TOOLS_CONSUMER,
        SCHEDULE_CONSUMER,
        "FILTERSRV_CONSUMER",
        "__MONITOR_CONSUMER",
        INNER_PRODUCER,
        "SELF_TEST_P_GROUP",
        "SELF_TEST_C_GROUP",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_RMQ_SYS_TRANS",
    }
)

#: The group whose offsets say how far check points are dealt with.
REVIVE_GROUP: Final = "CID_RMQ_SYS_REVIVE_GROUP"

#: The most queues of a topic: each may become files and memory, and clients ask for
#: each. RocketMQ has no bound.
MAX_QUEUES: Final = 16384

#: The length of a topic stands in a signed byte of the record.
MAX_TOPIC_CHARACTERS: Final = 127

#: Retry topics of long groups may be longer in a record (version 2), up to this.
MAX_RETRY_TOPIC_BYTES: Final = 255

#: As clients and the automatic creation of groups have it.
MAX_GROUP_CHARACTERS: Final = 255

_ALLOWED: Final = re.compile(r"[%|a-zA-Z0-9_-]+")


def retry_topic(group: str) -> str:
    """The topic for what a group has to consume again."""
    return RETRY_PREFIX + group


def dlq_topic(group: str) -> str:
    """The dead-letter topic of a group."""
    return DLQ_PREFIX + group


def is_retry_topic(topic: str) -> bool:
    """Whether a topic is a group's retry topic."""
    return topic.startswith(RETRY_PREFIX)


def is_dlq_topic(topic: str) -> bool:
    """Whether a topic is a group's dead-letter topic."""
    return topic.startswith(DLQ_PREFIX)


def is_lmq(name: str) -> bool:
    """Whether a topic or group is an LMQ."""
    return name.startswith(LMQ_PREFIX)


def group_of_retry_topic(topic: str) -> str:
    """The group whose retry topic it is; of the form C{group+topic}, the group."""
    assert is_retry_topic(topic)
    return topic[len(RETRY_PREFIX) :].partition("+")[0]


def pop_retry_topic(group: str, topic: str, v2: bool) -> str:
    """The topic for what a group that pops has to consume again of a topic."""
    return f"{RETRY_PREFIX}{group}{'+' if v2 else '_'}{topic}"


def popped_topic(topic: str, group: str) -> str:
    """The topic whose messages a group's POP retry topic has; any other is its own."""
    if not topic.startswith(RETRY_PREFIX):
        return topic
    for separator in "+_":
        prefix = f"{RETRY_PREFIX}{group}{separator}"
        if topic.startswith(prefix):
            return topic[len(prefix) :]
    return topic


def revive_topic(cluster: str) -> str:
    """The topic of the check points of a cluster's brokers."""
    return REVIVE_PREFIX + cluster


def reply_topic(cluster: str) -> str:
    """The topic for replies in a cluster."""
    return cluster + REPLY_SUFFIX


def is_system_topic(topic: str) -> bool:
    """Whether a topic is the system's; a broker knows more, named after itself."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_system_group(group: str) -> bool:
    """Whether a group is the system's."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def in_namespace(namespace: str, name: str) -> str:
    """A topic or group as brokers know it: C{namespace%name}.

    Behind the prefix of a retry or dead-letter topic; what is the system's, or is there
    already, stays. C{docs/facts/client.md} 25.

    @param namespace: empty for none.
    """
    if not (namespace and name) or is_system_topic(name):
        return name
    prefix, rest = _prefix(name)
    head = namespace + NAMESPACE_SEPARATOR
    if name.startswith(SYSTEM_GROUP_PREFIX) or rest.startswith(head):
        return name
    return prefix + head + rest


def without_namespace(namespace: str, name: str) -> str:
    """A topic or group as the users of a namespace know it."""
    if not namespace:
        return name
    prefix, rest = _prefix(name)
    return prefix + rest.removeprefix(namespace + NAMESPACE_SEPARATOR)


def _prefix(name: str) -> tuple[str, str]:
    """The prefix of a retry or dead-letter topic, and the rest."""
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name


def has_illegal_characters(name: str) -> bool:
    """Whether a name holds characters that neither topics nor groups may have."""
    return _ALLOWED.fullmatch(name) is None


def topic_problem(topic: str) -> str | None:
    """Why clients may not use that topic, in RocketMQ's words, or None."""
    if not topic.strip():
        return "The specified topic is blank."
    if has_illegal_characters(topic):
        return (
            "The specified topic contains illegal characters, allowing only "
            "^[%|a-zA-Z0-9_-]+$"
        )
    if len(topic) > MAX_TOPIC_CHARACTERS:
        return "The specified topic is longer than topic max length."
    return None


def group_problem(group: str) -> str | None:
    """Why a group of that name cannot be made, or None. An empty name passes."""
    if len(group) > MAX_GROUP_CHARACTERS:
        return f"The group is longer than {MAX_GROUP_CHARACTERS} characters."
    if group and has_illegal_characters(group):
        return "The group contains illegal characters, allowing only ^[%|a-zA-Z0-9_-]+$"
    return None
