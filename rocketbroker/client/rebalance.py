# -*- test-case-name: tests.client.test_rebalance -*-
"""The rebalance: each member works out its queues for itself, by the same rule.

All members see the same queues and the same members, both sorted, so their shares fit
together. While one of them sees it otherwise, a queue may have two owners or none; it
passes with the next round. C{docs/facts/client.md} 17.
"""

from __future__ import annotations

import logging
from typing import Final, final

from rocketbroker.client.instance import Instance
from rocketbroker.client.settings import ConsumerSettings
from rocketbroker.errors import RocketbrokerError, TopicNotExist
from rocketbroker.records.names import is_retry_topic
from rocketbroker.routing.allocation import named
from rocketbroker.routing.topic_view import MessageQueue

_log: Final = logging.getLogger("rocketbroker.client")


@final
class Rebalance:
    """The shares of one consumer."""

    def __init__(self, instance: Instance, settings: ConsumerSettings) -> None:
        """
        @raise ConfigurationError: there is no such strategy.
        """
        self._instance = instance
        self._settings = settings
        self._strategy = named(settings.strategy)
        self._unknown: set[str] = set()
        self._undecided: set[str] = set()

    async def assigned(self, topic: str) -> list[MessageQueue] | None:
        """The queues of a topic that are ours; None if that cannot be known now."""
        queues = await self.queues(topic)
        if queues is None or self._settings.broadcast:
            return queues
        try:
            members = await self._instance.requests.members(topic, self._settings.group)
        except RocketbrokerError as problem:
            _log.debug("The members of %s: %s", self._settings.group, problem)
            return None
        return self._share(topic, queues, sorted(members))

    async def queues(self, topic: str) -> list[MessageQueue] | None:
        """All queues of a topic; None if they cannot be known now."""
        instance = self._instance
        try:
            view = await instance.routes.view(topic)
        except TopicNotExist:
            self._wait_for(topic)
            return None
        except RocketbrokerError as problem:
            _log.debug("The route of %s: %s", topic, problem)
            return None
        self._unknown.discard(topic)
        return sorted(view.read)

    def _share(
        self, topic: str, queues: list[MessageQueue], members: list[str]
    ) -> list[MessageQueue] | None:
        """What the strategy says; None if it fails, so that nothing changes.

        It may name any queues; those of the topic that can be read count.
        """
        me = self._instance.membership.client_id
        try:
            chosen = set(self._strategy(queues, members, me) or ())
        except Exception as problem:
            if topic not in self._undecided:
                _log.warning(
                    "Strategy %r cannot share the queues of %s, which stay where they "
                    "are: %s",
                    self._settings.strategy,
                    topic,
                    problem or type(problem).__name__,
                )
            self._undecided.add(topic)
            return None
        self._undecided.discard(topic)
        return [queue for queue in queues if queue in chosen]

    def _wait_for(self, topic: str) -> None:
        if topic not in self._unknown and not is_retry_topic(topic):
            _log.warning("Topic %s does not exist yet; it is waited for", topic)
        self._unknown.add(topic)
