# -*- test-case-name: tests.broker.send.test_dead_letters -*-
"""Dead letters: messages that a group has failed to consume too often.

A failed message comes back by two ways: the client sends it back by request 36
(L{rocketbroker.broker.send.send_back}), or sends it to the group's retry topic itself,
because the first way failed or because it consumes in order
(L{rocketbroker.broker.send.send}). After the last time it goes to the group's
dead-letter topic, for people to look at.

The two ways count differently: request 36 has the number of failures before this one,
and the message is a dead letter at the limit; a send has the number that the message
would have next, and the message is a dead letter beyond the limit.

A client of 4.9 that consumes in order sends the number as it is, which does not pass
the limit. So every message that a group sends to its retry topic while it has locked a
queue is a dead letter: such a client sends there only after its last try.

C{docs/facts/broker.md} 10.1 (step 6), 10.2, 11.6, traps 12 and 13;
C{docs/facts/client.md} 21.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.metadata.groups import GroupTable
from rocketbroker.broker.metadata.topics import TopicTable
from rocketbroker.broker.send.send_checks import header_of
from rocketbroker.errors import SystemFailure
from rocketbroker.records.names import (
    MAX_TOPIC_CHARACTERS,
    dlq_topic,
    group_of_retry_topic,
    retry_topic,
)
from rocketbroker.records.properties import DELAY, RETRY_TOPIC, TRANSACTION_PREPARED
from rocketbroker.wire.bodies.groups import SubscriptionGroupConfig
from rocketbroker.wire.command import Command
from rocketbroker.wire.hot import SendFields

#: A topic of dead letters has one queue.
DEAD_LETTER_QUEUES: Final = 1

#: From this release on (3.4.9), as commands say it, a client's own limit counts.
LIMITING_VERSION: Final = 121


def max_reconsumed(
    group: SubscriptionGroupConfig, version: int, wanted: int | None
) -> int:
    """How often a group consumes a message again.

    @param version: the client's release, as its command says it.
    @param wanted: what the client says; None if nothing.
    """
    if wanted is None or version < LIMITING_VERSION:
        return group.retry_max_times
    return wanted


@final
class FailureCounts:
    """Counts of messages that failed, by group.

    @ivar messages: how many, by group and topic.
    """

    def __init__(self, topics: TopicTable) -> None:
        self.messages: dict[tuple[str, str], int] = {}
        self._topics = topics

    def count(self, group: str, topic: str) -> None:
        """One more.

        @param topic: where the message says that it comes from. A client may say
            anything, so one that is not known counts as the group's retry topic:
            nobody fills the memory with names.
        """
        known = self._topics.config(topic) is not None
        key = group, topic if known else retry_topic(group)
        self.messages[key] = self.messages.get(key, 0) + 1


@final
class DeadLetters:
    """Makes the topics of dead letters, and counts what goes there.

    @ivar counts: dead letters.
    """

    def __init__(
        self,
        topics: TopicTable,
        groups: GroupTable,
        is_ordered: Callable[[str], bool],
    ) -> None:
        """
        @param is_ordered: whether a member of the group has locked a queue.
        """
        self.counts = FailureCounts(topics)
        self._topics = topics
        self._groups = groups
        self._is_ordered = is_ordered

    def topic(self, group: str) -> str:
        """A group's topic of dead letters; it is made if it is missing.

        @raise SystemFailure: it cannot be made.
        """
        name = dlq_topic(group)
        if self._topics.config(name) is None:
            # No limit but that of groups: a message that has failed must go somewhere.
            if len(name) > MAX_TOPIC_CHARACTERS:
                raise SystemFailure(
                    f"topic[{name}] not exist: a name has at most "
                    f"{MAX_TOPIC_CHARACTERS} characters"
                )
            self._topics.ensure(name, DEAD_LETTER_QUEUES)
        return name

    def topic_instead(
        self, fields: SendFields, request: Command, own: dict[str, str]
    ) -> str | None:
        """The dead-letter topic for a message that was sent to a retry topic.

        @param fields: of the request.
        @param own: the message's properties; if it is a dead letter, they say so.
        @return: the dead-letter topic; None if the message is no dead letter.
        @raise SystemFailure: that topic cannot be made.
        """
        name = group_of_retry_topic(fields.b)
        group = self._groups.config(name)
        assert group is not None, "sends to retry topics of unknown groups are refused"
        most = max_reconsumed(
            group, request.version, header_of(request).max_reconsume_times
        )
        if fields.j <= most and not self._is_ordered(name):
            return None
        topic = self.topic(name)
        own[DELAY] = "-1"
        own.pop(TRANSACTION_PREPARED, None)
        self.counts.count(name, own.get(RETRY_TOPIC, fields.b))
        return topic
