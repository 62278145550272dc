# -*- test-case-name: tests.broker.messages.test_delay_messages -*-
"""Messages with a delay level, before and after their delivery.

A message with a delay level is stored in SCHEDULE_TOPIC_XXXX, in the queue of its
level; its real topic and queue are among its properties. When it is due, it is stored
again in its real topic with I{the same} properties: clients and tools see DELAY,
REAL_TOPIC and REAL_QID, as from RocketMQ. What waits for another time than that of a
level is told by L{timer_messages}.

C{docs/facts/store.md} 18, trap 8; C{docs/facts/broker.md} 10.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final

from rocketbroker.broker.messages.timer_messages import (
    TIMER_NAMES,
    TimerMessages,
    wants_time,
)
from rocketbroker.config.levels import MAX_LEVELS, parse_levels
from rocketbroker.errors import SystemFailure
from rocketbroker.records.hashing import tag_code
from rocketbroker.records.names import (
    HALF_TOPIC,
    MAX_QUEUES,
    MAX_RETRY_TOPIC_BYTES,
    SCHEDULE_TOPIC,
    TIMER_TOPIC,
    has_illegal_characters,
)
from rocketbroker.records.properties import (
    CRC32,
    DELAY,
    REAL_QUEUE_ID,
    REAL_TOPIC,
    TAGS,
    TIMER_DELAY_LEVEL,
    encode,
)
from rocketbroker.records.record import StoredMessage
from rocketbroker.records.sysflags import HOST_MASK
from rocketbroker.store.interfaces import Draft, IQueue

assert MAX_LEVELS <= MAX_QUEUES

#: What Java's parseInt takes.
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,10}\Z")


def level_of(properties: dict[str, str]) -> int:
    """The delay level that a message asks for; 0 or less: none.

    @raise SystemFailure: it is no number of 32 bits.
    """
    text = properties.get(DELAY)
    if text is None:
        return 0
    level = int(text) if _WHOLE.match(text) else 1 << 31
    if not -(1 << 31) <= level < 1 << 31:
        raise SystemFailure("the DELAY property is no number")
    return level


@final
class DelayMessages:
    """Knows the levels, and what waits for any other time.

    @ivar delays: the delay of each level in ms; that of level 1 is the first.
    """

    def __init__(
        self, levels: str, timers: TimerMessages, wall_ms: Callable[[], int]
    ) -> None:
        """
        @param levels: messageDelayLevel.
        """
        self.delays = parse_levels(levels)
        self._timers = timers
        self._wall_ms = wall_ms

    def place(
        self, properties: dict[str, str], topic: str, queue_id: int
    ) -> tuple[str, int] | None:
        """Topic and queue where a message has to wait; None if it does not.

        @param properties: as its sender gave them; changed in place if it waits.
        @param topic: where it belongs.
        @raise BrokerError: it cannot wait so.
        """
        level = level_of(properties)
        if level > 0:
            return self.postpone(properties, topic, queue_id, level)
        if wants_time(properties) and self._timers.postpone(
            properties, topic, queue_id, self._wall_ms()
        ):
            return TIMER_TOPIC, 0
        return None

    def postpone(
        self, properties: dict[str, str], topic: str, queue_id: int, level: int
    ) -> tuple[str, int]:
        """Turn a message's properties into those that it has while it waits.

        The tag code is the store's to find.

        @param properties: changed in place.
        @param topic: where it belongs.
        @param level: greater than 0; one too high is the highest.
        @return: topic and queue that it waits in.
        @raise BrokerError: it cannot wait so.
        """
        assert level > 0
        level = min(level, len(self.delays))
        for name in TIMER_NAMES:
            properties.pop(name, None)
        if self._timers.takes_levels:
            properties.pop(DELAY, None)
            properties[TIMER_DELAY_LEVEL] = str(level)
            deliver_ms = self._wall_ms() + self.delays[level - 1]
            self._timers.wait(properties, topic, queue_id, deliver_ms)
            return TIMER_TOPIC, 0
        properties[DELAY] = str(level)
        properties[REAL_TOPIC] = topic
        properties[REAL_QUEUE_ID] = str(queue_id)
        return SCHEDULE_TOPIC, level - 1


def destination(message: StoredMessage) -> tuple[str, int] | None:
    """Topic and queue where a message that has waited belongs.

    @return: None if it does not say so, or names what cannot be: a disk may say
        anything. Half messages do not wait, so their topic cannot be either.
    """
    properties = message.properties
    topic = properties.get(REAL_TOPIC, "")
    number = properties.get(REAL_QUEUE_ID, "")
    if not _WHOLE.match(number) or not 0 <= int(number) < MAX_QUEUES:
        return None
    if (
        topic in ("", HALF_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC)
        or len(topic) > MAX_RETRY_TOPIC_BYTES
        or has_illegal_characters(topic)
    ):
        return None
    return topic, int(number)


def delivered(message: StoredMessage, queue: IQueue, context: object) -> Draft:
    """The draft by which a message that has waited gets to where it belongs.

    Only the checksum property is left out: it is that of the record which waited.

    @param context: the draft's.
    """
    properties = message.property_bytes
    if CRC32.encode() in properties:
        rest = dict(message.properties)
        rest.pop(CRC32, None)
        properties = encode(rest)
    return Draft(
        queue,
        message.body,
        properties,
        message.flag,
        message.sys_flag & ~HOST_MASK,
        message.born_ms,
        message.born_host,
        message.reconsume_times,
        tag_code(message.properties.get(TAGS, "")),
        context,
    )
