# -*- test-case-name: tests.remoting.test_overdue -*-
"""Remarks of answers to requests that waited too long to be begun.

The words are RocketMQ's (C{docs/facts/broker.md} 7), followed by the stage that was
slow, which RocketMQ does not tell.
"""

from __future__ import annotations

from typing import Final

#: The request has waited longer than others of its kind may.
TIMEOUT: Final = "TIMEOUT_CLEAN_QUEUE"

#: The disk takes no message.
PCBUSY: Final = "PCBUSY_CLEAN_QUEUE"


def busy_remark(token: str, waited_ms: int, size: int, stage: str) -> str:
    """What is answered, with SYSTEM_BUSY.

    @param token: L{TIMEOUT} or L{PCBUSY}.
    @param waited_ms: how long the request has waited.
    @param size: how many still wait.
    @param stage: what was slow.
    """
    return (
        f"[{token}]broker busy, start flow control for a while, "
        f"period in queue: {waited_ms}ms, size of queue: {size}, slow stage: {stage}"
    )
