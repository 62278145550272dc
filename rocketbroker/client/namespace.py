# -*- test-case-name: tests.client.test_namespaces -*-
"""A namespace: the names that users say, and those that brokers know.

Brokers know C{INST%topic} and C{INST%group}; users see neither the one nor the other.
Names are changed where a user's call comes in and where something is given to users;
all between, heartbeats, offsets, files and logs, has the names of brokers. Java's name
for it is NamespaceUtil. C{docs/facts/client.md} 25.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, final

import attrs

from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.client.subscription import Subscription
from rocketbroker.records import names
from rocketbroker.routing.topic_view import MessageQueue

#: A name server's address whose first part is a namespace.
_ENDPOINT: Final = re.compile(r"(?:\w+://)?(MQ_INST_\w+_\w+)\.")


def namespace_of(name_servers: Sequence[str]) -> str:
    """The namespace of an address C{MQ_INST_xxx_yyy.domain:port}, or an empty text."""
    found = _ENDPOINT.match(name_servers[0])
    return found[1] if found is not None else ""


@final
class Namespace:
    """The namespace of one client.

    @ivar name: empty for none: then all names stay as they are.
    """

    __slots__ = ("name",)

    def __init__(self, name: str = "") -> None:
        self.name = name

    def inside(self, name: str) -> str:
        """A topic or group as brokers know it."""
        return names.in_namespace(self.name, name)

    def outside(self, name: str) -> str:
        """A topic or group as users know it."""
        return names.without_namespace(self.name, name)

    def queue_inside(self, queue: MessageQueue) -> MessageQueue:
        """A queue as brokers know it."""
        return queue._replace(topic=self.inside(queue.topic)) if self.name else queue

    def queue_outside(self, queue: MessageQueue) -> MessageQueue:
        """A queue as users know it."""
        return queue._replace(topic=self.outside(queue.topic)) if self.name else queue

    def producer_group(self, group: str) -> str:
        """A group of producers as brokers know it; no user has named the inner one."""
        return group if group == names.INNER_PRODUCER else self.inside(group)

    def settings(self, settings: ConsumerSettings) -> ConsumerSettings:
        """Settings, with the group as brokers know it.

        @raise ConfigurationError: the name gets too long.
        """
        return attrs.evolve(settings, group=self.inside(settings.group))

    def subscriptions(self, wanted: Iterable[Subscription]) -> list[Subscription]:
        """Subscriptions, with the topics as brokers know them."""
        return [attrs.evolve(one, topic=self.inside(one.topic)) for one in wanted]
