# -*- test-case-name: tests.broker.messages.test_message_types -*-
"""The types of messages, as metrics name them: what a sender asks for decides.

The order is that of the sheet of metrics (messages_in): a message with a sharding key
that is delayed too is C{fifo}.

The attribute C{message.type} of a topic is for clients that go through RocketMQ's
proxy, which refuses messages of other types. A broker takes every message, whatever its
topic says (the broker sheet, section 10.5), and counts it as what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

NORMAL: Final = "normal"
FIFO: Final = "fifo"
DELAY: Final = "delay"
TRANSACTION: Final = "transaction"

#: The key of what is consumed in order.
SHARDING_KEY: Final = "__SHARDINGKEY"

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
