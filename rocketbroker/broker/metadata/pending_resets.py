# -*- test-case-name: tests.broker.metadata.test_pending_resets -*-
"""Offsets that an operator has reset, until the group pulls from them.

The answer to a pull (PULL_OFFSET_MOVED) tells the consumer its new offset. A consumer
goes there ten seconds later, and commits its old offset meanwhile. RocketMQ forgets a
reset with the first pull that it has answered, and loses it in two ways: the held pull
of a consumer that has gone takes it; and a consumer that stops within the ten seconds
commits its old offset over it. Here a reset is pending until a pull comes I{from} its
offset. A consumer that was told, and pulls from elsewhere, does not follow; it is not
told again, or it would never get a message.

While a reset is pending, commits for that queue are refused.

C{docs/facts/broker.md} 12.3, 16.2.
"""

from __future__ import annotations

from typing import TypeAlias, final

from rocketbroker.remoting.interfaces import IConnection


@final
class PendingReset:
    """The reset of one queue.

    @ivar answered: the last connection whose pull was answered with it; it may be gone.
    """

    __slots__ = ("answered", "offset")

    def __init__(self, offset: int) -> None:
        self.offset = offset
        self.answered: IConnection | None = None


#: C{topic@group -> queue -> reset}.
Resets: TypeAlias = "dict[str, dict[int, PendingReset]]"


def pending(resets: Resets, key: str, queue_id: int) -> int | None:
    """The offset of a queue's reset, if no pull came from it yet."""
    found = resets.get(key, {}).get(queue_id)
    return None if found is None else found.offset


def for_held_pull(
    resets: Resets, key: str, queue_id: int, connection: IConnection
) -> int | None:
    """The offset for a held pull; the reset stays pending."""
    found = resets.get(key, {}).get(queue_id)
    if found is None:
        return None
    found.answered = connection
    return found.offset


def for_new_pull(
    resets: Resets, key: str, queue_id: int, connection: IConnection, offset: int
) -> int | None:
    """The offset for a pull that has just come.

    @param offset: of the pull.
    @return: where it has to go on; None if it is to be served.
    """
    queues = resets.get(key)
    found = None if queues is None else queues.get(queue_id)
    if queues is None or found is None:
        return None
    if found.offset != offset and found.answered is not connection:
        found.answered = connection
        return found.offset
    del queues[queue_id]
    if not queues:
        del resets[key]
    return None


def taken(resets: Resets, key: str, queue_id: int) -> int | None:
    """The offset of a queue's reset, which is over: what pops follows at once."""
    queues = resets.get(key)
    found = None if queues is None else queues.pop(queue_id, None)
    if queues is None or found is None:
        return None
    if not queues:
        del resets[key]
    return found.offset
