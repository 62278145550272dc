# -*- test-case-name: tests.broker.messages.test_lmq -*-
"""Messages that are in LMQs (light message queues) besides their own queue.

With C{enableLmq} a message may name LMQs in its property C{INNER_MULTI_DISPATCH}; it
gets the next offset of each, and with C{enableMultiDispatch} an entry in each. So a
bridge of another protocol stores one record of a message that a hundred thousand of its
clients read from their own queues. The topics of LMQs begin with C{%LMQ%}, have one
queue, and need not be created.

In RocketMQ a name that is not one of an LMQ spoils the dispatch of the message, or of
all messages after it; here such a message is refused.

C{docs/facts/store.md} 4.6; C{docs/facts/broker.md} 16.2.
"""

from __future__ import annotations

from typing import Final, final

from rocketbroker.errors import MessageIllegal
from rocketbroker.records import properties
from rocketbroker.records.names import (
    HALF_TOPIC,
    SCHEDULE_TOPIC,
    SYSTEM_PREFIX,
    TIMER_TOPIC,
    is_lmq,
    is_retry_topic,
    topic_problem,
)
from rocketbroker.records.properties import (
    INNER_MULTI_DISPATCH,
    INNER_MULTI_QUEUE_OFFSET,
)
from rocketbroker.store.interfaces import Draft, IStore, Placed

#: LMQs of one message. Each may be a new one, so a handle and a file, made while all
#: other requests wait: a thousand take a tenth of a second.
MAX_OF_ONE: Final = 1024

_OFFSETS: Final = INNER_MULTI_QUEUE_OFFSET.encode() + b"\x01"


@final
class Lmq:
    """The LMQs that a message is in."""

    def __init__(self, store: IStore, enabled: bool) -> None:
        """
        @param enabled: enableLmq.
        """
        self._store = store
        self._enabled = enabled

    def check_batch(self, body: bytes) -> None:
        """Refuse a batch whose messages say offsets that only the broker may say."""
        if self._enabled and _OFFSETS in body:
            raise MessageIllegal(f"{INNER_MULTI_QUEUE_OFFSET} is not for clients")

    def spread(self, draft: Draft) -> None:
        """Let a draft get its offsets in the LMQs that it names.

        @raise MessageIllegal: it names what is none, or too many.
        @raise BrokerError: there is no room for another LMQ.
        """
        if not self._enabled or INNER_MULTI_DISPATCH.encode() not in draft.properties:
            return
        own = properties.decode(draft.properties)
        if draft.queue.topic in (SCHEDULE_TOPIC, HALF_TOPIC, TIMER_TOPIC):
            # It gets there when it is delivered.
            return
        names = self.named(own, draft.queue.topic)
        if not names:
            return
        own.pop(INNER_MULTI_QUEUE_OFFSET, None)
        own[INNER_MULTI_DISPATCH] = ",".join(names)
        lmqs = [self._store.queue(name, 0) for name in names]
        draft.parts = Placed(properties.encode(own), 1, lmqs)

    def named(self, own: dict[str, str], topic: str) -> list[str]:
        """The LMQs that a message for a topic names.

        @param own: its properties.
        @raise MessageIllegal: it names what is none, or too many.
        """
        named = own.get(INNER_MULTI_DISPATCH, "").strip() if self._enabled else ""
        if not named or is_retry_topic(topic) or topic.startswith(SYSTEM_PREFIX):
            return []
        names = [*dict.fromkeys(named.split(","))]
        if len(names) > MAX_OF_ONE:
            raise MessageIllegal(f"{len(names)} LMQs, at most {MAX_OF_ONE}")
        for name in names:
            if not is_lmq(name) or topic_problem(name) is not None or name == topic:
                raise MessageIllegal(f"{name[:64]!r} is not an LMQ for {topic}")
        return names
