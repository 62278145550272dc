# -*- test-case-name: tests.records.test_receipt_handle -*-
"""The receipt handle: text that a consumer gets with a popped message and gives back.

A receipt handle names one message and the check point that it belongs to. It is the
property POP_CK, and C{extraInfo} of acknowledgements; its parts are separated by
blanks::

    10 1700000000000 30000 2 0 b-a 3 11
    |  |             |     | | |   | +- queue offset of the message; may be missing
    |  |             |     | | |   +- queue
    |  |             |     | | +- broker
    |  |             |     | +- kind of topic: 0 normal, 1 and 2 retry
    |  |             |     +- revive queue; 999: consumed in order
    |  |             +- invisible time
    |  +- pop time
    +- start offset of the check point

The answer to a pop has three fields, which are entries joined by C{;}.

C{docs/facts/transaction-timer-pop.md} C6; C{docs/facts/broker.md} 20.1.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, final

import msgspec

from rocketbroker.records.malformed import Malformed
from rocketbroker.records.names import is_retry_topic

#: Kinds of topics that messages come from.
NORMAL: Final = "0"
RETRY_V1: Final = "1"
RETRY_V2: Final = "2"

#: The revive queue of what is consumed in order, which needs none.
ORDERED: Final = 999

#: How many parts a handle has that names no message.
_PARTS: Final = 7

#: The numbers of a handle, with or without the last one.
_NUMBERS: Final = re.compile(r"-?[0-9]{1,19}(?: -?[0-9]{1,19}){4,5}")


def kind_of(topic: str) -> str:
    """The kind of a topic; any retry topic with a plus counts as version 2."""
    if not is_retry_topic(topic):
        return NORMAL
    return RETRY_V2 if "+" in topic else RETRY_V1


@final
class ReceiptHandle:
    """One handle.

    @ivar kind: of topic.
    @ivar offset: the queue offset of the message; None if it is not named.
    """

    __slots__ = (
        "broker_name",
        "invisible_ms",
        "kind",
        "offset",
        "pop_ms",
        "queue_id",
        "revive_queue",
        "start_offset",
    )

    def __init__(
        self,
        start_offset: int,
        pop_ms: int,
        invisible_ms: int,
        revive_queue: int,
        kind: str,
        broker_name: str,
        queue_id: int,
        offset: int | None = None,
    ) -> None:
        self.start_offset = start_offset
        self.pop_ms = pop_ms
        self.invisible_ms = invisible_ms
        self.revive_queue = revive_queue
        self.kind = kind
        self.broker_name = broker_name
        self.queue_id = queue_id
        self.offset = offset

    def text(self) -> str:
        """The handle as text."""
        last = "" if self.offset is None else f" {self.offset}"
        return (
            f"{self.start_offset} {self.pop_ms} {self.invisible_ms} "
            f"{self.revive_queue} {self.kind} {self.broker_name} {self.queue_id}{last}"
        )

    @classmethod
    def parse(cls, text: str) -> ReceiptHandle:
        """Read one.

        @raise Malformed: it is none.
        """
        parts = text.split(" ")
        if len(parts) < _PARTS:
            raise Malformed(f"a receipt handle of {len(parts)} parts: {text[:80]!r}")
        numbers = [*parts[:4], parts[6], *parts[7:8]]
        if not _NUMBERS.fullmatch(" ".join(numbers)):
            raise Malformed(f"a receipt handle with a wrong number: {text[:80]!r}")
        return cls(
            int(parts[0]),
            int(parts[1]),
            int(parts[2]),
            int(parts[3]),
            parts[4],
            parts[5],
            int(parts[6]),
            int(parts[7]) if len(parts) > _PARTS else None,
        )


def start_offset_info(kind: str, queue_id: int, offset: int) -> str:
    """An entry of C{startOffsetInfo}: where a read began."""
    return f"{kind} {queue_id} {offset}"


def message_offset_info(kind: str, queue_id: int, offsets: Sequence[int]) -> str:
    """An entry of C{msgOffsetInfo}: the messages of a queue, in the body's order."""
    return f"{kind} {queue_id} {msgspec.json.encode(offsets)[1:-1].decode()}"


def order_count_info(kind: str, queue_id: int, counts: dict[int, int]) -> list[str]:
    """The entries of C{orderCountInfo} for a queue.

    @param counts: how often each message was given out before, 0 if never.
    """
    entries = [
        f"{kind} qo{queue_id}%{offset} {count}"
        for offset, count in counts.items()
        if count
    ]
    return [*entries, f"{kind} {queue_id} {min(counts.values(), default=0)}"]
