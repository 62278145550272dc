# -*- test-case-name: tests.broker.messages.test_message_types -*-
"""The types of messages, as metrics name them, by the properties of a message.

The order is that of C{docs/facts/security-metrics.md} (messages_in): a message with a
sharding key and a delay is C{fifo}.

The attribute C{message.type} of a topic is for clients of RocketMQ's proxy, which
refuses messages of other types. A broker takes every message, whatever the type of its
topic (C{docs/facts/broker.md} 10.5), and counts it by its own type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rocketbroker.records.properties import SHARDING_KEY

NORMAL: Final = "normal"
FIFO: Final = "fifo"
DELAY: Final = "delay"
TRANSACTION: Final = "transaction"

#: What makes a message wait, in the spellings of all clients.
_WAITING: Final = (
    "DELAY",
    "TIMER_DELIVER_MS",
    "TIMER_DELAY_SEC",
    "TIMER_DELAY_MS",
    "__STARTDELIVERTIME",
)


def message_type_of(own: Mapping[str, str]) -> str:
    """The type of a message with these properties."""
    if own.get("TRAN_MSG", "").lower() == "true":
        return TRANSACTION
    if SHARDING_KEY in own:
        return FIFO
    return DELAY if any(name in own for name in _WAITING) else NORMAL
