# -*- test-case-name: tests.client.test_rebalance -*-
"""Which queues are ours: each member works it out for itself, by the same rule.

All members see the same queues and the same members, both sorted, so their shares fit
together. While one of them sees it otherwise, a queue may have two owners or none; it
passes with the next round. C{docs/facts/client.md} 17.
"""

from __future__ import annotations

import logging
from typing import Final, final

from rocketbroker.client.instance import Instance
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.errors import (
    ConfigurationError,
    RocketbrokerError,
    TopicNotExist,
)
from rocketbroker.records.names import is_retry_topic
from rocketbroker.routing.allocation import STRATEGIES, allocate
from rocketbroker.routing.topic_view import MessageQueue

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Rebalance:
    """The shares of one consumer."""

    def __init__(self, instance: Instance, settings: ConsumerSettings) -> None:
        """
        @raise ConfigurationError: there is no such strategy.
        """
        if settings.strategy not in STRATEGIES:
            raise ConfigurationError(
                f"there is no strategy {settings.strategy!r}; there are "
                f"{', '.join(sorted(STRATEGIES))}"
            )
        self._instance = instance
        self._settings = settings
        self._unknown: set[str] = set()

    async def assigned(self, topic: str) -> list[MessageQueue] | None:
        """The queues of a topic that are ours; None if that cannot be known now."""
        instance = self._instance
        try:
            view = await instance.routes.view(topic)
        except TopicNotExist:
            self._wait_for(topic)
            return None
        except RocketbrokerError as problem:
            instance.outages.failed("the name server", problem)
            return None
        instance.outages.worked("the name server")
        self._unknown.discard(topic)
        queues = sorted(view.read)
        if self._settings.broadcast:
            return queues
        try:
            members = await instance.requests.members(topic, self._settings.group)
        except RocketbrokerError as problem:
            _log.debug("The members of %s: %s", self._settings.group, problem)
            return None
        me = instance.membership.client_id
        return allocate(self._settings.strategy, queues, sorted(members), me)

    def _wait_for(self, topic: str) -> None:
        if topic not in self._unknown and not is_retry_topic(topic):
            _log.warning("Topic %s does not exist yet; it is waited for", topic)
        self._unknown.add(topic)
