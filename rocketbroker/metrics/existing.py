# -*- test-case-name: tests.metrics.test_existing -*-
"""The topics and groups that have samples of their own.

Those that are there, and for an hour those that were deleted. Counters of what is gone
longer stay where they are, as they count for totals, and are not shown.
"""

from __future__ import annotations

from typing import final

from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.records.names import is_system_group


@final
class ExistingNames:
    """The topics and groups of one broker."""

    def __init__(self, topics: TopicTable, groups: GroupTable) -> None:
        self._topics = topics
        self._groups = groups

    def topic(self, name: str) -> bool:
        """Whether a topic has samples."""
        topics = self._topics
        return (
            topics.config(name) is not None
            or topics.is_system(name)
            or topics.deletions.is_recent(name)
        )

    def group(self, name: str) -> bool:
        """Whether a group has samples."""
        groups = self._groups
        return (
            groups.config(name) is not None
            or is_system_group(name)
            or groups.deletions.is_recent(name)
        )

    def both(self, group: str, topic: str) -> bool:
        """Whether a group in a topic has samples."""
        return self.topic(topic) and self.group(group)
