# -*- test-case-name: tests.broker.test_dead_letters -*-
"""When a group has given a message up, and where it goes then.

A message that a group fails to consume comes back by two ways: the client asks the
broker to put it back (L{rocketbroker.broker.sendback}), or sends it to the group's
retry topic itself, because the first way failed or because it consumes in order
(L{rocketbroker.broker.sending}). Either way there is a last time, and what fails then
goes to the group's topic of dead letters, for people to look at.

Rules: the broker sheet, sections 10.1 (step 6), 10.2 and 11.6.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.broker.topics import TopicTable
from rocketbroker.errors import SystemFailure
from rocketbroker.records.names import MOST_TOPIC_CHARACTERS, dlq_topic
from rocketbroker.wire.groups import SubscriptionGroupConfig

#: A topic of dead letters has one queue.
DEAD_LETTER_QUEUES: Final = 1

#: From this release on (3.4.9), as commands say it, a client's own limit counts.
LIMITING_VERSION: Final = 121


def most_reconsumed(
    group: SubscriptionGroupConfig, version: int, said: int | None
) -> int:
    """How often a group consumes a message again.

    @param version: the client's release, as its command says it.
    @param said: what the client says; None if nothing.
    """
    if said is None or version < LIMITING_VERSION:
        return group.retry_max_times
    return said


@final
class DeadLetters:
    """Makes the topics of dead letters, and counts what goes there.

    @ivar counts: messages stored as dead letters, by group and the topic that they
        came from.
    """

    def __init__(self, topics: TopicTable) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self._topics = topics

    def topic(self, group: str) -> str:
        """A group's topic of dead letters; it is made if it is missing.

        @raise SystemFailure: it cannot be made.
        """
        name = dlq_topic(group)
        if self._topics.config(name) is None:
            # Only what the log takes; and as any client may invent groups, not more
            # than may be made by sending.
            if len(name) > MOST_TOPIC_CHARACTERS or self._topics.is_full:
                raise SystemFailure(f"topic[{name}] not exist")
            self._topics.ensure(name, DEAD_LETTER_QUEUES)
        return name

    def count(self, group: str, topic: str) -> None:
        """One more was stored."""
        key = group, topic
        self.counts[key] = self.counts.get(key, 0) + 1
