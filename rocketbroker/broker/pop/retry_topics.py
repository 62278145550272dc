# -*- test-case-name: tests.broker.pop.test_pop -*-
"""The retry topics of groups that pop: which is read, which is written, and when made.

Messages that were not acknowledged in time go to a topic of the group and their topic,
under one of two names: version 1 joins them by an underscore, which may stand in
either; version 2 (enableRetryTopicV2) by a plus, which no client may use. Both are
read, as one directory may have both.

C{docs/facts/transaction-timer-pop.md} C1, C3, C13.
"""

from __future__ import annotations

from typing import final

from rocketbroker.broker.metadata.offsets import NONE, OffsetTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.config.broker import BrokerOptions
from rocketbroker.config.broker_settings import BrokerSettings
from rocketbroker.records.names import is_retry_topic, pop_retry_topic


@final
class RetryTopics:
    """The retry topics of POP, made when they are first needed."""

    def __init__(
        self, topics: TopicTable, offsets: OffsetTable, options: BrokerOptions
    ) -> None:
        self._topics = topics
        self._offsets = offsets
        self._options = options

    def configure(self, settings: BrokerSettings) -> None:
        """Obey these settings from now on."""
        self._options = settings.broker

    def written(self, group: str, topic: str) -> str:
        """Where messages of a topic go; those of a retry topic stay there."""
        if is_retry_topic(topic):
            return topic
        return pop_retry_topic(group, topic, self._options.enable_retry_topic_v2)

    def read(self, group: str, topic: str, chance: int) -> str:
        """Where a pop looks: with both versions in use, at either in turn.

        @param chance: any number; its last bit tells the turn.
        """
        options = self._options
        v2 = options.enable_retry_topic_v2
        if v2 and options.retrieve_message_from_pop_retry_topic_v1 and not chance & 1:
            v2 = False
        return pop_retry_topic(group, topic, v2)

    def ensure(self, group: str, name: str) -> None:
        """Make a retry topic, whose messages all are for the group."""
        if self._topics.config(name) is None:
            self._topics.ensure(name, 1)
        if self._offsets.query(group, name, 0) == NONE:
            self._offsets.commit(group, name, 0, 0)
