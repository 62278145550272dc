# -*- test-case-name: tests.proxy.test_names -*-
"""Names of topics and groups, as far as calls may use them.

C{docs/facts/proxy.md} 6.1.
"""

from __future__ import annotations

import re
from typing import Final

from rocketbroker.proxy.messages_pb2 import Code, Resource
from rocketbroker.proxy.statuses import Refusal
from rocketbroker.records.names import SYSTEM_GROUP_PREFIX, is_system_topic

MAX_TOPIC: Final = 127
MAX_GROUP: Final = 255

_ALLOWED: Final = "^[%|a-zA-Z0-9_-]+$"
_FULL: Final = re.compile(_ALLOWED[1:-1])


def topic_of(resource: Resource) -> str:
    """The name of a topic.

    @raise Refusal: nobody may use such a one.
    """
    name = resource.name
    if not name.strip():
        raise Refusal(Code.ILLEGAL_TOPIC, "The specified topic is blank")
    if len(name) > MAX_TOPIC:
        raise Refusal(
            Code.ILLEGAL_TOPIC,
            f"The specified topic is longer than topic max length {MAX_TOPIC}.",
        )
    if not _FULL.fullmatch(name):
        raise Refusal(
            Code.ILLEGAL_TOPIC,
            f"The specified topic[{name}] contains illegal characters, allowing only "
            f"{_ALLOWED}",
        )
    if is_system_topic(name):
        raise Refusal(Code.ILLEGAL_TOPIC, "cannot access system topic")
    return name


def group_of(resource: Resource) -> str:
    """The name of a group of consumers.

    @raise Refusal: nobody may use such a one.
    """
    code = Code.ILLEGAL_CONSUMER_GROUP
    name = resource.name
    if not name.strip():
        raise Refusal(code, "the specified group is blank")
    if len(name) > MAX_GROUP:
        words = f"the specified group is longer than group max length {MAX_GROUP}."
        raise Refusal(code, words)
    if not _FULL.fullmatch(name):
        raise Refusal(
            code,
            f"the specified group[{name}] contains illegal characters, allowing only "
            f"{_ALLOWED}",
        )
    if name.startswith(SYSTEM_GROUP_PREFIX):
        raise Refusal(code, "cannot use system consumer group")
    return name
